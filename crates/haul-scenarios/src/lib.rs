//! The haul transport on simulated networks, in virtual time: real handshakes, real encryption, real recovery and control, beside
//! the TCP model and the constant flows of haul-sim.
//!
//! A plan of haul-sim with flows of a [`Kind`] is [`measure`]d; the same plans serve the golden tables (`tests/`) and the experiments of
//! `haul lab`. The bytes sent are all zero, the keys are the process's own: nothing random shows in an outcome but the plan's seed.

//!
//! The driver of one [`End`] serves plans and, by itself, the tests of haul-proto: two real connections on links of their own.

mod end;
pub mod fattree;
mod flow;
mod placed;

use haul_cc::ControllerChoice;
use haul_proto::{Pacing, Scheduler, StreamKind, TransportConfig};
use haul_sim::{Cbr, CbrConfig, CbrMeter, EndpointId, FlowSpec, Mixed, Outcome, Plan, Tcp, TcpConfig};

pub use end::{Datagram, End, Way};
pub use flow::Haul;
use flow::Hosts;
pub use placed::{Content, Placed, pattern};

/// What a flow is made of.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A haul connection with this controller.
    Haul(ControllerChoice),
    /// The same on one ordered stream: what has come too early waits.
    Ordered(ControllerChoice),
    /// As `Haul`, or on one ordered stream, with this scheduler of paths.
    Scheduled {
        /// Its controller.
        controller: ControllerChoice,
        /// Which path is asked first.
        scheduler: Scheduler,
        /// On one ordered stream.
        ordered: bool,
    },
    /// As `Haul` without pacing: whatever the window lets go, goes at once.
    Unpaced(ControllerChoice),
    /// The TCP model.
    Tcp(TcpConfig),
    /// Datagrams at a constant rate.
    Cbr(CbrConfig),
}

/// An end of a flow of any kind.
pub type AnyEnd = Mixed<Haul, Mixed<Tcp, Cbr>>;

/// Runs a plan.
pub fn measure(plan: &Plan<Kind>) -> Outcome {
    plan.run(any_ends)
}

/// Runs a plan; gives for each flow at a constant rate what its receiver has measured.
pub fn measure_constant(plan: &Plan<Kind>) -> (Outcome, Vec<Option<CbrMeter>>) {
    let mut scene = plan.build(any_ends);
    let outcome = plan.play(&mut scene);
    let meter = |flow| match scene.network.endpoint(EndpointId(flow * 2 + 1)) {
        Mixed::Second(Mixed::Second(end)) => end.meter().cloned(),
        _ => None,
    };
    (outcome, (0..plan.flows.len()).map(meter).collect())
}

/// As [`any_ends`], on hosts that remember what their connections have met.
pub(crate) fn ends_on(hosts: &Hosts) -> impl Fn(&FlowSpec<'_, Kind>) -> (AnyEnd, AnyEnd) + use<> {
    let hosts = hosts.clone();
    move |flow| match any_ends(flow) {
        (Mixed::First(sender), receiver) => (Mixed::First(sender.on_host(&hosts, flow.host)), receiver),
        others => others,
    }
}

/// The ends of a flow of any kind, for whoever drives the network.
pub fn any_ends(flow: &FlowSpec<'_, Kind>) -> (AnyEnd, AnyEnd) {
    let haul = |transport: TransportConfig, stream| {
        let (sender, receiver) = Haul::pair(flow, transport, stream);
        (Mixed::First(sender), Mixed::First(receiver))
    };
    let driven_by = |controller| TransportConfig { controller, ..TransportConfig::default() };
    match *flow.kind {
        Kind::Haul(controller) => haul(driven_by(controller), StreamKind::Placed),
        Kind::Ordered(controller) => haul(driven_by(controller), StreamKind::Bidirectional),
        Kind::Scheduled { controller, scheduler, ordered } => {
            let stream = if ordered { StreamKind::Bidirectional } else { StreamKind::Placed };
            haul(TransportConfig { scheduler, ..driven_by(controller) }, stream)
        }
        Kind::Unpaced(controller) => haul(TransportConfig { pacing: Pacing::Off, ..driven_by(controller) }, StreamKind::Placed),
        Kind::Tcp(config) => {
            let (sender, receiver) = Tcp::pair(config, flow);
            (Mixed::Second(Mixed::First(sender)), Mixed::Second(Mixed::First(receiver)))
        }
        Kind::Cbr(config) => {
            let (sender, receiver) = (Cbr::sender(config, flow.receiver, flow.start), Cbr::receiver(config));
            (Mixed::Second(Mixed::Second(sender)), Mixed::Second(Mixed::Second(receiver)))
        }
    }
}
