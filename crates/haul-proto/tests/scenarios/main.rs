//! Scenarios: real connections and the TCP model on simulated networks, in virtual time. A failure names its seed and its command.

mod connection;
mod golden;
mod grid;
mod plans;
mod sharing;

use haul_cc::ControllerChoice;
use haul_sim::{Mixed, Outcome, Plan, Tcp, TcpConfig};

/// What a flow is made of.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A haul connection with this controller.
    Haul(ControllerChoice),
    /// The TCP model.
    Tcp(TcpConfig),
}

/// Runs a plan, and panics if a check fails.
pub fn run(plan: &Plan<Kind>) -> Outcome {
    let plan = Plan { seed: golden::seed(plan.seed), ..plan.clone() };
    let outcome = measure(&plan);
    let command = format!("cargo test -p haul-proto --test scenarios {}", plan.name);
    plan.check(&outcome, &command).unwrap_or_else(|failure| panic!("{failure}\n{outcome:?}"));
    outcome
}

/// Runs a plan.
pub fn measure(plan: &Plan<Kind>) -> Outcome {
    plan.run(|flow| match *flow.kind {
        Kind::Haul(controller) => {
            let (sender, receiver) = connection::ends(flow, controller);
            (Mixed::First(sender), Mixed::First(receiver))
        }
        Kind::Tcp(config) => {
            let sender = Tcp::sender(config, flow.receiver, flow.start, flow.size);
            (Mixed::Second(sender), Mixed::Second(Tcp::receiver(config, flow.size)))
        }
    })
}
