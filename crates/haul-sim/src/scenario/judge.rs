//! Whether what must hold of a scenario does, and what is said when it does not.

use std::fmt;

use super::{Check, Outcome, Plan};

/// The demands of a plan that were not met. Prints them, the seed, and the command that runs the plan again.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    plan: &'static str,
    seed: u64,
    replay: String,
    missed: Vec<String>,
}

impl Check {
    /// What was missed, if it was.
    fn missed(&self, outcome: &Outcome) -> Option<String> {
        let (met, what) = match *self {
            Self::UtilisationAtLeast(least) => {
                (outcome.utilisation >= least, format!("utilisation {:.3}, at least {least}", outcome.utilisation))
            }
            Self::QueueDelayP95AtMost(most) => {
                (outcome.queue_p95 <= most, format!("p95 queueing delay {:?}, at most {most:?}", outcome.queue_p95))
            }
            Self::CompletesWithin(limit) => match outcome.completion(1.0) {
                Some(last) => (last <= limit, format!("complete after {last:?}, within {limit:?}")),
                None => (false, format!("not complete within {:?}; wanted within {limit:?}", outcome.length)),
            },
            Self::JainAtLeast(least) => {
                (outcome.jain() >= least, format!("Jain's index {:.3}, at least {least}", outcome.jain()))
            }
            Self::ShareBetween { flow, least, most } => {
                let share = outcome.share(flow);
                ((least..=most).contains(&share), format!("flow {flow} has a share of {share:.3}, wanted {least} to {most}"))
            }
            Self::DroppedAtMost(most) => (outcome.dropped <= most, format!("dropped {:.4}, at most {most}", outcome.dropped)),
        };
        (!met).then_some(what)
    }
}

impl<K: Clone> Plan<K> {
    /// Whether all demands are met. `command`: what runs this plan; it is told the seed by the variable `HAUL_SEED`.
    pub fn check(&self, outcome: &Outcome, command: &str) -> Result<(), Failure> {
        let missed: Vec<String> = self.checks.iter().filter_map(|check| check.missed(outcome)).collect();
        if missed.is_empty() {
            return Ok(());
        }
        let replay = format!("HAUL_SEED={} {command}", self.seed);
        Err(Failure { plan: self.name, seed: self.seed, replay, missed })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (seed {}):", self.plan, self.seed)?;
        for missed in &self.missed {
            writeln!(f, "  {missed}")?;
        }
        write!(f, "  again: {}", self.replay)
    }
}

impl std::error::Error for Failure {}
