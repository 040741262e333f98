//! Scenarios: real connections and the TCP model on simulated networks, in virtual time. A failure names its seed and its command.

mod bursts;
mod company;
mod crowd;
mod golden;
mod grid;
mod named;
mod plans;
mod robustness;
mod schedulers;
mod sharing;
mod short_paths;
mod stalls;
mod weather;

use haul_scenarios::{Kind, measure};
use haul_sim::{Outcome, Plan};

/// Runs a plan, and panics if a check fails.
pub fn run(plan: &Plan<Kind>) -> Outcome {
    let plan = Plan { seed: golden::seed(plan.seed), ..plan.clone() };
    let outcome = measure(&plan);
    let command = format!("cargo test -p haul-scenarios --test scenarios {}", plan.name);
    plan.check(&outcome, &command).unwrap_or_else(|failure| panic!("{failure}\n{outcome:?}"));
    outcome
}
