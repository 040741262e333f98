//! Which phase may follow which.
//!
//! ```text
//! startup -> drain -> cruise <-> up -> down -> cruise
//!    ^         |        ^  ^
//!    '---------'        |  '---> compete      and, after an outage, from any but startup to up
//!    (a stall)          '------> probe rtt
//! ```

/// A phase by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lfn) enum Kind {
    Startup,
    Drain,
    Cruise,
    Up,
    Down,
    Compete,
    ProbeRtt,
}

impl Kind {
    pub(in crate::lfn) const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Cruise => "cruise",
            Self::Up => "up",
            Self::Down => "down",
            Self::Compete => "compete",
            Self::ProbeRtt => "probe rtt",
        }
    }

    /// Phases that may follow this one.
    const fn next(self) -> &'static [Self] {
        match self {
            // Straight to cruise, or to an attempt at more, where the path is known or another path of the connection carries already.
            Self::Startup => &[Self::Drain, Self::Cruise, Self::Up],
            // Back to startup where the delay that ended it was no queue.
            Self::Drain => &[Self::Startup, Self::Cruise, Self::Up],
            Self::Cruise => &[Self::Up, Self::Compete, Self::ProbeRtt],
            Self::Up => &[Self::Cruise, Self::Down, Self::Up],
            Self::Down | Self::ProbeRtt => &[Self::Cruise, Self::Up],
            // Down where nobody is there and the queue is ours, cruise where the others are gone and it is empty.
            Self::Compete => &[Self::Down, Self::Cruise, Self::Up],
        }
    }

    pub(super) fn may_become(self, next: Self) -> bool {
        self.next().contains(&next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 7] = [Kind::Startup, Kind::Drain, Kind::Cruise, Kind::Up, Kind::Down, Kind::Compete, Kind::ProbeRtt];

    #[test]
    fn every_phase_is_reached_from_startup_and_leads_to_cruise() {
        let reached = |from: Kind| {
            let mut reached = vec![from];
            for n in 0.. {
                let Some(kind) = reached.get(n) else { break };
                reached.extend(
                    ALL.iter().filter(|next| kind.may_become(**next) && !reached.contains(next)).copied().collect::<Vec<_>>(),
                );
            }
            reached
        };
        assert!(ALL.iter().all(|kind| reached(Kind::Startup).contains(kind)));
        assert!(ALL.iter().all(|kind| reached(*kind).contains(&Kind::Cruise)));
        assert!(!Kind::Cruise.may_become(Kind::Startup), "what is known is not thrown away");
    }
}
