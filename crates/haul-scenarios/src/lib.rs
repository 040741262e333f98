//! The haul transport on simulated networks, in virtual time: real handshakes, real encryption, real recovery and control, beside the
//! TCP model of haul-sim.
//!
//! A plan of haul-sim with flows of a [`Kind`] is [`measure`]d; the same plans serve the golden tables (`tests/`) and the experiments of
//! `haul lab`. The bytes sent are all zero, the keys are the process's own: nothing random shows in an outcome but the plan's seed.

mod connection;

use haul_cc::ControllerChoice;
use haul_sim::{Mixed, Outcome, Plan, Tcp, TcpConfig};

pub use connection::{Datagram, End, ends};

/// What a flow is made of.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A haul connection with this controller.
    Haul(ControllerChoice),
    /// The TCP model.
    Tcp(TcpConfig),
}

/// Runs a plan.
pub fn measure(plan: &Plan<Kind>) -> Outcome {
    plan.run(|flow| match *flow.kind {
        Kind::Haul(controller) => {
            let (sender, receiver) = ends(flow, controller);
            (Mixed::First(sender), Mixed::First(receiver))
        }
        Kind::Tcp(config) => {
            let sender = Tcp::sender(config, flow.receiver, flow.start, flow.size);
            (Mixed::Second(sender), Mixed::Second(Tcp::receiver(config, flow.size)))
        }
    })
}
