//! One measurement: what is sent, which way, for how long.
//!
//! The client makes the plan from its arguments and sends it; the server checks it against its own bounds. Times are in microseconds, so
//! that a plan is the same on both sides.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_units::{BitRate, PeerText};
use serde::{Deserialize, Serialize};

/// Streams at most.
pub const MAX_STREAMS: u16 = 128;
/// The shortest interval: reports come no more often.
pub const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// The longest time that a plan may name; a server may allow less.
pub const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Which way data flows, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// Which end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It sends.
    Sender,
    /// It receives: its counts are the result.
    Receiver,
}

/// The directions of one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ways {
    /// The client sends.
    Up,
    /// The server sends.
    Down,
    /// Both do at once.
    Both,
}

impl Ways {
    /// Each direction.
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Up => &[Direction::Up],
            Self::Down => &[Direction::Down],
            Self::Both => &[Direction::Up, Direction::Down],
        }
    }

    /// Whether data flows this way.
    pub fn contains(self, direction: Direction) -> bool {
        self.directions().contains(&direction)
    }
}

/// When a measurement is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// After so many microseconds.
    Time(u64),
    /// When so many bytes have arrived, over all streams.
    Bytes(u64),
}

/// How the kernel's TCP is to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpPlan {
    /// Congestion control; the system's where there is none.
    #[serde(default)]
    pub congestion: Option<PeerText>,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which way.
    pub ways: Ways,
    /// Streams each way.
    pub streams: u16,
    /// Bytes handed to the transport at once.
    pub block_bytes: u32,
    /// For how long.
    pub amount: Amount,
    /// Time at the beginning that does not count.
    #[serde(default)]
    pub omit_us: u64,
    /// Time between two reports.
    pub interval_us: u64,
    /// What each stream is to send at most.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// haul's congestion control.
    pub mode: PeerText,
    /// Over the kernel's TCP instead of haul.
    #[serde(default)]
    pub tcp: Option<TcpPlan>,
}

impl Default for Plan {
    /// What `haul perf` does that is not told otherwise: ten seconds to the server, on one stream of blocks of 1 MiB, a report a second, by the usual congestion control.
    fn default() -> Self {
        Self {
            ways: Ways::Up,
            streams: 1,
            block_bytes: 1 << 20,
            amount: Amount::Time(10_000_000),
            omit_us: 0,
            interval_us: 1_000_000,
            rate_bps: None,
            mode: ControllerChoice::default().to_string().into(),
            tcp: None,
        }
    }
}

/// A plan that no server follows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too many streams, or none.
    #[error("{0} streams: 1 to {MAX_STREAMS} are possible")]
    Streams(u16),
    /// Blocks that the transport does not take.
    #[error("blocks of {bytes} bytes: 1 to {most} are possible", most = haul::MAX_BLOCK)]
    Block {
        /// What was asked for.
        bytes: u32,
    },
    /// Nothing to do.
    #[error("nothing would be measured: the time (-t) or the amount (-n) is zero")]
    Nothing,
    /// Too long.
    #[error("a measurement of {asked:?}: {most:?} are possible at most")]
    Time {
        /// What was asked for.
        asked: Duration,
        /// What is allowed.
        most: Duration,
    },
    /// Too many reports.
    #[error("reports every {0:?}: {MIN_INTERVAL:?} is the shortest interval")]
    Interval(Duration),
    /// No rate at all.
    #[error("nothing would ever be sent at a rate of zero")]
    Rate,
}

impl Plan {
    /// Whether it can be followed within `longest`.
    pub fn check(&self, longest: Duration) -> Result<(), PlanError> {
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Err(PlanError::Streams(self.streams));
        }
        if !(1..=haul::MAX_BLOCK as u32).contains(&self.block_bytes) {
            return Err(PlanError::Block { bytes: self.block_bytes });
        }
        if matches!(self.amount, Amount::Time(0) | Amount::Bytes(0)) {
            return Err(PlanError::Nothing);
        }
        let (asked, most) = (self.omit().saturating_add(self.time().unwrap_or_default()), longest.min(MAX_TIME));
        if asked > most {
            return Err(PlanError::Time { asked, most });
        }
        if self.interval() < MIN_INTERVAL {
            return Err(PlanError::Interval(self.interval()));
        }
        if self.rate_bps == Some(0) { Err(PlanError::Rate) } else { Ok(()) }
    }

    /// Time that counts; `None` where bytes decide.
    pub const fn time(&self) -> Option<Duration> {
        match self.amount {
            Amount::Time(us) => Some(Duration::from_micros(us)),
            Amount::Bytes(_) => None,
        }
    }

    /// Bytes to send; `None` where the time decides.
    pub const fn bytes(&self) -> Option<u64> {
        match self.amount {
            Amount::Time(_) => None,
            Amount::Bytes(bytes) => Some(bytes),
        }
    }

    /// Time at the beginning that does not count.
    pub const fn omit(&self) -> Duration {
        Duration::from_micros(self.omit_us)
    }

    /// Time between two reports.
    pub const fn interval(&self) -> Duration {
        Duration::from_micros(self.interval_us)
    }

    /// What each stream is to send at most.
    pub fn rate(&self) -> Option<BitRate> {
        self.rate_bps.map(BitRate::from_bps)
    }

    /// No more than `most` by all streams together.
    pub fn bound_rate(&mut self, most: BitRate) {
        let each = (most.as_bps() / u64::from(self.streams.max(1))).max(1);
        self.rate_bps = Some(self.rate_bps.map_or(each, |bps| bps.min(each)));
    }

    /// Bytes handed over at once: less where a low rate would make large blocks come in lumps.
    pub fn block(&self) -> usize {
        /// Blocks a second at least, where the rate is bounded.
        const BLOCKS_PER_SECOND: u64 = 200;
        let block = self.block_bytes as usize;
        let smooth = |rate: BitRate| usize::try_from(rate.bytes_per_second() / BLOCKS_PER_SECOND).unwrap_or(usize::MAX);
        self.rate().map_or(block, |rate| block.min(smooth(rate).max(1200)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::default()
    }

    #[test]
    fn a_plan_within_the_bounds_is_followed_and_no_other() {
        let longest = Duration::from_secs(11);
        assert_eq!(plan().check(longest), Ok(()));
        assert_eq!(Plan { streams: 0, ..plan() }.check(longest), Err(PlanError::Streams(0)));
        assert_eq!(Plan { streams: 129, ..plan() }.check(longest), Err(PlanError::Streams(129)));
        assert_eq!(Plan { block_bytes: 4 << 20, ..plan() }.check(longest), Err(PlanError::Block { bytes: 4 << 20 }));
        assert_eq!(Plan { amount: Amount::Bytes(0), ..plan() }.check(longest), Err(PlanError::Nothing));
        assert_eq!(Plan { rate_bps: Some(0), ..plan() }.check(longest), Err(PlanError::Rate));
        assert!(matches!(Plan { omit_us: 1_500_000, ..plan() }.check(longest), Err(PlanError::Time { .. })));
        assert!(matches!(Plan { omit_us: u64::MAX, ..plan() }.check(longest), Err(PlanError::Time { .. })));
        assert!(matches!(Plan { interval_us: 9_999, ..plan() }.check(longest), Err(PlanError::Interval(_))));
    }

    #[test]
    fn streams_share_a_bound_and_a_lower_rate_of_their_own_stays() {
        let bound = |streams, rate_bps, most| {
            let mut plan = Plan { streams, rate_bps, ..plan() };
            plan.bound_rate(BitRate::from_bps(most));
            plan.rate_bps
        };
        assert_eq!(bound(4, None, 10_000_000), Some(2_500_000));
        assert_eq!(bound(4, Some(9_000_000), 10_000_000), Some(2_500_000));
        assert_eq!(bound(1, Some(9_000_000), 10_000_000), Some(9_000_000));
        // A rate of zero would never send anything.
        assert_eq!(bound(4, None, 3), Some(1));
    }

    #[test]
    fn a_low_rate_has_small_blocks() {
        assert_eq!(plan().block(), 1 << 20);
        assert_eq!(Plan { rate_bps: Some(16_000_000), ..plan() }.block(), 10_000);
        assert_eq!(Plan { rate_bps: Some(1000), ..plan() }.block(), 1200);
    }
}
