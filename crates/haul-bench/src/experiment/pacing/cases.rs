//! Who sends how.

use std::fmt;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::Pacing;
use haul_tcp::Law;
use haul_units::{BitRate, Bytes};

use crate::experiment::Scale;
use crate::experiment::ground::Program;

/// Whose flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// haul's transport by this algorithm.
    Haul(ControllerChoice),
    /// The kernel's Standard TCP.
    KernelReno,
    /// The kernel's TCP with FAST TCP (`haul tcp`).
    KernelFast,
}

impl Who {
    /// Which program sends; what the kernel's TCP is paced by is beside it.
    pub const fn program(self, pacing: Pacing) -> Program {
        match self {
            Self::Haul(algorithm) => Program::Haul(algorithm, pacing),
            Self::KernelReno => Program::Tcp("reno"),
            Self::KernelFast => Program::Tcp(Law::Fast.kernel_name()),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Haul(algorithm) => write!(f, "{algorithm}"),
            Self::KernelReno => f.write_str("kernel reno"),
            Self::KernelFast => f.write_str("kernel fast"),
        }
    }
}

/// One or two flows, and perhaps a constant one.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Whose they are, and how they find their window.
    pub who: Who,
    /// Whether their packets are spaced.
    pub pacing: Pacing,
    /// How many there are.
    pub flows: usize,
    /// Rate of the constant flow.
    pub cross: Option<BitRate>,
    /// Of the path.
    pub rtt: Duration,
    /// Of the path.
    pub rate: BitRate,
}

/// What differs between charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// A flow alone.
    One,
    /// Two flows.
    Two,
    /// A flow beside a constant one.
    Cross,
}

impl Case {
    /// Which group of charts shows it.
    pub fn group(&self) -> Group {
        match (self.cross, self.flows) {
            (Some(_), _) => Group::Cross,
            (None, 1) => Group::One,
            _ => Group::Two,
        }
    }

    /// What a chart of it is called; cases that differ in pacing alone share one.
    pub fn title(&self) -> String {
        let rtt = self.rtt.as_millis();
        let name = self.who;
        match (self.group(), self.cross) {
            (Group::Cross, Some(cross)) => format!("{name}, {rtt} ms, beside {cross} of UDP"),
            (Group::Two, _) => format!("two {name}, {rtt} ms"),
            _ => format!("{name}, {rtt} ms"),
        }
    }

    /// The same among cases with constant traffic alone.
    pub fn short_title(&self) -> String {
        self.cross.map_or_else(|| self.title(), |cross| format!("{}, {cross}", self.who))
    }

    /// The memory of a switch, not a product of bandwidth and delay: bursts must be able to overflow it. 8 ms of the path's rate.
    pub fn queue(&self) -> Bytes {
        self.rate.bytes_in(Duration::from_millis(8))
    }
}

/// Those of haul's transport.
pub fn of_haul(scale: Scale) -> Vec<Case> {
    cases(scale, &[Who::Haul(ControllerChoice::Reno), Who::Haul(ControllerChoice::Fast)])
}

/// The same of the kernel's TCP.
pub fn of_the_kernel(scale: Scale) -> Vec<Case> {
    cases(scale, &[Who::KernelReno, Who::KernelFast])
}

fn cases(scale: Scale, parties: &[Who]) -> Vec<Case> {
    let rate = scale.pick(BitRate::mbps(50), BitRate::gbps(1));
    let round_trips: &[u64] = scale.pick(&[50], &[50, 100, 150, 200]);
    let crosses: &[f64] = scale.pick(&[0.2], &[0.1, 0.2]);
    let middle = Duration::from_millis(scale.pick(50, 100));
    let mut cases = Vec::new();
    for &who in parties {
        for pacing in [Pacing::On, Pacing::Off] {
            let case = Case { who, pacing, flows: 1, cross: None, rtt: middle, rate };
            cases.extend(round_trips.iter().map(|&ms| Case { rtt: Duration::from_millis(ms), ..case }));
            cases.push(Case { flows: 2, ..case });
            cases.extend(crosses.iter().map(|&part| Case { cross: Some(rate.scaled(part)), ..case }));
        }
    }
    cases
}

/// Between the starts of two flows.
pub const APART: Duration = Duration::from_secs(1);
