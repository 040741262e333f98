//! What comes of a measurement: what each end counted, interval by interval and in all.

use std::fmt;
use std::time::Duration;

use haul_units::{BitRate, Bytes, PeerText};
use serde::{Deserialize, Serialize};

use super::plan::{Direction, Role};
use super::sample::{CpuUse, PathSample};
use super::spread::Spreads;

/// One interval of one direction, from both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Both {
    /// Which flow.
    pub direction: Direction,
    /// The sender's view.
    pub sender: Interval,
    /// The receiver's view: its bytes are the result.
    pub receiver: Interval,
}

/// All that came of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Every interval, in the order of time.
    pub intervals: Vec<Both>,
    /// The totals.
    pub totals: Vec<Total>,
    /// This side's processor time.
    pub cpu: CpuUse,
    /// The server's last word.
    pub done: Option<Done>,
    /// It was stopped before its end ([`haul_units::Cancel`]).
    pub interrupted: bool,
    /// Round-trip times of pings before the load and under it, as the application sees them.
    pub pings: Pings,
}

impl Outcome {
    /// One end's total of a direction.
    pub fn total(&self, direction: Direction, role: Role) -> Option<&Total> {
        self.totals.iter().find(|total| total.direction == direction && total.role == role)
    }

    /// The first thing that went wrong in a measurement that has results all the same.
    pub fn first_error(&self) -> Option<&PeerText> {
        self.totals.iter().find_map(|total| total.error.as_ref())
    }
}

/// Round-trip times of small messages on the control stream, as an application sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pings {
    /// On the idle path.
    pub idle: Vec<Duration>,
    /// While data flows.
    pub loaded: Vec<Duration>,
}

/// What one role counted in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Which flow.
    pub direction: Direction,
    /// Who counted.
    pub role: Role,
    /// Counts from 0, the omitted ones too.
    pub index: u32,
    /// Beginning, since the start or the end of what is omitted.
    pub start_us: u64,
    /// End.
    pub end_us: u64,
    /// Whether it counts.
    pub omitted: bool,
    /// Bytes of each stream.
    pub bytes: Vec<u64>,
    /// From a sender: one for haul's connection, one for each of TCP's.
    #[serde(default)]
    pub paths: Vec<PathSample>,
}

impl Interval {
    /// How long it was.
    pub const fn time_us(&self) -> u64 {
        self.end_us.saturating_sub(self.start_us)
    }
}

/// What one role counted in all, without what is omitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// Which flow.
    pub direction: Direction,
    /// Who counted.
    pub role: Role,
    /// Time that counts.
    pub time_us: u64,
    /// Bytes of each stream.
    pub bytes: Vec<u64>,
    /// From a sender.
    #[serde(default)]
    pub paths: Vec<PathSample>,
    /// How the figures of its packets are spread, over haul.
    #[serde(default)]
    pub spreads: Option<Spreads>,
    /// Congestion control of the sender.
    #[serde(default)]
    pub congestion: Option<PeerText>,
    /// What went wrong, if it ended before its time.
    #[serde(default)]
    pub error: Option<PeerText>,
}

/// In a line: which way, how much, how fast, and what went wrong.
impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, time) = (Bytes(self.bytes.iter().sum()), Duration::from_micros(self.time_us));
        let verb = if self.role == Role::Sender { "sent" } else { "received" };
        write!(f, "{verb} {bytes} in {:.2} s, {}", time.as_secs_f64(), rate(bytes.as_u64(), self.time_us))?;
        self.error.as_ref().map_or(Ok(()), |error| write!(f, " ({error})"))
    }
}

/// None for what took no time: it would be endless.
pub(crate) fn rate(bytes: u64, time_us: u64) -> BitRate {
    if time_us == 0 { BitRate::from_bps(0) } else { BitRate::of(Bytes(bytes), Duration::from_micros(time_us)) }
}

/// The server's last word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The server's processor time.
    pub cpu: CpuUse,
    /// The server's own output, if it was asked for.
    #[serde(default)]
    pub output: Option<Vec<PeerText>>,
}
