//! By which rule the next train goes on which path.

use std::fmt;
use std::str::FromStr;

/// Which of the paths that carry data is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Scheduler {
    /// Where it ends first: the shortest round trip that has room; at the end of what there is to send none by which a packet would come later than the shorter ones are
    /// through with all (earliest completion first, Lim et al., CoNEXT 2017). The last packets of a path go on another one too.
    #[default]
    Completion,
    /// The shortest round trip that has room, as Linux had it.
    ShortestRtt,
    /// Each in turn, whatever its round trip.
    RoundRobin,
    /// Everything on every path, from the first byte on: for what is short and must not wait. Carries as much as the best path does.
    Redundant,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Completion, Self::ShortestRtt, Self::RoundRobin, Self::Redundant];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::ShortestRtt => "shortest-rtt",
            Self::RoundRobin => "round-robin",
            Self::Redundant => "redundant",
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no scheduler is called {0:?}: there are completion, shortest-rtt, round-robin and redundant")]
pub struct UnknownScheduler(String);

impl FromStr for Scheduler {
    type Err = UnknownScheduler;

    fn from_str(text: &str) -> Result<Self, UnknownScheduler> {
        Self::ALL.into_iter().find(|scheduler| scheduler.name() == text).ok_or_else(|| UnknownScheduler(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for scheduler in Scheduler::ALL {
            assert_eq!(scheduler.to_string().parse(), Ok(scheduler));
        }
        assert!("fastest".parse::<Scheduler>().unwrap_err().to_string().contains("round-robin"));
    }
}
