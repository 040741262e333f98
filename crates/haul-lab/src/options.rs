//! What a WAN is asked to be like, and the two links that this makes.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use haul_sim::{LinkConfig, LossModel, Reorder};
use haul_units::{BitRate, Bytes, Ratio, parse_duration};
use serde::{Deserialize, Serialize};

/// A WAN as a person describes it. Everything but the rate holds for both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkOptions {
    /// Rate of IP bytes from side a to side b.
    pub rate: BitRate,
    /// Rate from side b to side a, if it is another one.
    pub back_rate: Option<BitRate>,
    /// Round-trip time without queues; each direction takes half.
    pub rtt: Duration,
    /// Delay on top in each direction, wandering between zero and this, in order.
    pub jitter: Duration,
    /// The queue before each direction.
    pub queue: QueueSize,
    /// Packets lost in each direction.
    pub loss: Ratio,
    /// Mean length of the bursts in which they are lost, in packets; none: each on its own.
    pub burst_loss: Option<f64>,
    /// Packets that arrive later than those sent after them.
    pub reorder: Ratio,
    /// By how much later.
    pub reorder_by: Duration,
    /// Packets that arrive twice.
    pub duplicate: Ratio,
    /// Packets that arrive with other bytes; their checksum tells.
    pub corrupt: Ratio,
    /// Packets that find more than this in the queue are marked, if their senders understand marks.
    pub ecn: Option<QueueSize>,
    /// Seed of all chance.
    pub seed: u64,
}

impl Default for LinkOptions {
    /// 10 Gbit/s, 100 ms, a queue of one bandwidth-delay product, and nothing wrong.
    fn default() -> Self {
        Self {
            rate: BitRate::gbps(10),
            back_rate: None,
            rtt: Duration::from_millis(100),
            jitter: Duration::ZERO,
            queue: QueueSize::Bdp(1.0),
            loss: Ratio::ZERO,
            burst_loss: None,
            reorder: Ratio::ZERO,
            reorder_by: Duration::from_millis(1),
            duplicate: Ratio::ZERO,
            corrupt: Ratio::ZERO,
            ecn: None,
            seed: 1,
        }
    }
}

impl LinkOptions {
    /// The links from a to b and from b to a.
    pub fn links(&self) -> [LinkConfig; 2] {
        let back = LinkConfig { seed: self.seed.wrapping_add(1), ..self.link(self.back_rate.unwrap_or(self.rate)) };
        [self.link(self.rate), back]
    }

    /// Whether this makes a link.
    pub fn check(&self) -> Result<(), LinkError> {
        if let Some(mean_pkts) = self.burst_loss.filter(|mean| !BURSTS_PKTS.contains(mean)) {
            return Err(LinkError::Burst { mean_pkts });
        }
        if self.rate == BitRate::ZERO || self.back_rate == Some(BitRate::ZERO) {
            return Err(LinkError::NoRate);
        }
        if self.rtt > LONGEST || self.jitter > LONGEST || self.reorder_by > LONGEST {
            return Err(LinkError::TooLong { longest: LONGEST });
        }
        Ok(())
    }

    fn link(&self, rate: BitRate) -> LinkConfig {
        let loss = match self.burst_loss {
            _ if self.loss == Ratio::ZERO => LossModel::None,
            _ if self.loss >= Ratio::ONE => LossModel::All,
            Some(mean_pkts) => LossModel::Bursts { ratio: self.loss, mean_pkts },
            None => LossModel::Random(self.loss),
        };
        LinkConfig {
            rate,
            delay: self.rtt / 2,
            jitter: self.jitter,
            queue: self.queue.bytes(rate, self.rtt).max(SMALLEST_QUEUE),
            loss,
            reorder: Reorder { ratio: self.reorder, extra: self.reorder_by },
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            ecn_threshold: self.ecn.map(|threshold| threshold.bytes(rate, self.rtt)),
            seed: self.seed,
            ..LinkConfig::default()
        }
    }
}

/// Other properties for a link; what is not given stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkChanges {
    /// See [`LinkOptions::rate`].
    pub rate: Option<BitRate>,
    /// See [`LinkOptions::back_rate`].
    pub back_rate: Option<BitRate>,
    /// See [`LinkOptions::rtt`].
    pub rtt: Option<Duration>,
    /// See [`LinkOptions::jitter`].
    pub jitter: Option<Duration>,
    /// See [`LinkOptions::queue`].
    pub queue: Option<QueueSize>,
    /// See [`LinkOptions::loss`].
    pub loss: Option<Ratio>,
    /// See [`LinkOptions::burst_loss`]; 1 is back to one by one.
    pub burst_loss: Option<f64>,
    /// See [`LinkOptions::reorder`].
    pub reorder: Option<Ratio>,
    /// See [`LinkOptions::reorder_by`].
    pub reorder_by: Option<Duration>,
    /// See [`LinkOptions::duplicate`].
    pub duplicate: Option<Ratio>,
    /// See [`LinkOptions::corrupt`].
    pub corrupt: Option<Ratio>,
    /// See [`LinkOptions::ecn`].
    pub ecn: Option<QueueSize>,
    /// See [`LinkOptions::seed`].
    pub seed: Option<u64>,
}

/// What makes no link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub enum LinkError {
    /// Bursts of less than a packet, or without end.
    #[error("a burst of {mean_pkts} packets: the mean length is 1 or more")]
    Burst {
        /// What was asked for.
        mean_pkts: f64,
    },
    /// Lines for more hosts than there are.
    #[error("there are lines for {lines} hosts, and side a has {hosts}")]
    MoreLinesThanHosts {
        /// Lines of [`WanSpec::access`](crate::WanSpec::access).
        lines: usize,
        /// Hosts on side a.
        hosts: u8,
    },
    /// More links than there are networks for.
    #[error("{count} links, and there can be {most}")]
    TooMany {
        /// What was asked for.
        count: usize,
        /// How many there can be.
        most: usize,
    },
    /// A rate of zero.
    #[error("nothing would ever arrive at a rate of zero")]
    NoRate,
    /// A delay that would need more memory than it has sense.
    #[error("no delay of more than {} s is emulated", longest.as_secs())]
    TooLong {
        /// The longest there is.
        longest: Duration,
    },
}

impl LinkChanges {
    /// A link that is like `link` but for these; or why that is none.
    pub fn apply(&self, link: &LinkOptions) -> Result<LinkOptions, LinkError> {
        // One by one is no burst, but neither is less than that.
        let is_one = |mean: f64| (mean - 1.0).abs() < f64::EPSILON;
        let burst_loss = self.burst_loss.or(link.burst_loss).filter(|mean| !is_one(*mean));
        let link = LinkOptions {
            rate: self.rate.unwrap_or(link.rate),
            back_rate: self.back_rate.or(link.back_rate),
            rtt: self.rtt.unwrap_or(link.rtt),
            jitter: self.jitter.unwrap_or(link.jitter),
            queue: self.queue.unwrap_or(link.queue),
            loss: self.loss.unwrap_or(link.loss),
            burst_loss,
            reorder: self.reorder.unwrap_or(link.reorder),
            reorder_by: self.reorder_by.unwrap_or(link.reorder_by),
            duplicate: self.duplicate.unwrap_or(link.duplicate),
            corrupt: self.corrupt.unwrap_or(link.corrupt),
            ecn: self.ecn.or(link.ecn),
            seed: self.seed.unwrap_or(link.seed),
        };
        link.check().map(|()| link)
    }
}

/// Means that bursts of losses can have, in packets.
const BURSTS_PKTS: RangeInclusive<f64> = 1.0..=1e6;

/// A link with a longer way than this would need more memory than it has sense.
const LONGEST: Duration = Duration::from_secs(60);

/// A queue has room for a packet at least.
const SMALLEST_QUEUE: Bytes = Bytes(3000);

/// The size of a queue: bandwidth-delay products (`1bdp`), bytes (`4MiB`), or the time it takes to empty (`50ms`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum QueueSize {
    /// In products of the direction's rate and the round-trip time.
    Bdp(f64),
    /// In bytes.
    Bytes(Bytes),
    /// In time at the direction's rate.
    Time(Duration),
}

impl QueueSize {
    /// In bytes, at a rate and a round-trip time.
    pub fn bytes(self, rate: BitRate, rtt: Duration) -> Bytes {
        match self {
            Self::Bdp(factor) => Bytes((rate.bytes_in(rtt).as_u64() as f64 * factor) as u64),
            Self::Bytes(bytes) => bytes,
            Self::Time(time) => rate.bytes_in(time),
        }
    }
}

/// A text that is no size of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size of a queue: write for instance 1bdp, 4MiB or 50ms")]
pub struct ParseQueueError(String);

impl FromStr for QueueSize {
    type Err = ParseQueueError;

    fn from_str(text: &str) -> Result<Self, ParseQueueError> {
        let error = || ParseQueueError(text.to_owned());
        if let Some(number) = text.to_ascii_lowercase().strip_suffix("bdp") {
            let factor: f64 = number.trim().parse().map_err(|_| error())?;
            return if (0.0..=1000.0).contains(&factor) { Ok(Self::Bdp(factor)) } else { Err(error()) };
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(|bytes| Self::Bytes(Bytes(bytes))).map_err(|_| error());
        }
        match parse_duration(text) {
            Ok(time) => Ok(Self::Time(time)),
            Err(_) => text.parse().map(Self::Bytes).map_err(|_| error()),
        }
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bdp(factor) => write!(f, "{factor} BDP"),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Time(time) => write!(f, "{time:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_by_product_bytes_and_time() {
        let size = |text: &str| text.parse::<QueueSize>().map(|queue| queue.bytes(BitRate::gbps(1), Duration::from_millis(100)));
        assert_eq!(size("1bdp"), Ok(Bytes(12_500_000)));
        assert_eq!(size("0.5BDP"), Ok(Bytes(6_250_000)));
        assert_eq!(size("4MiB"), Ok(Bytes::mib(4)));
        assert_eq!(size("50000"), Ok(Bytes(50_000)));
        assert_eq!(size("10ms"), Ok(Bytes(1_250_000)));
        for text in ["", "bdp", "-1bdp", "4X", "inf bdp"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn changes_leave_the_rest_as_it_is() {
        let changes = LinkChanges {
            rate: Some(BitRate::gbps(1)),
            queue: Some(QueueSize::Bdp(0.5)),
            loss: Some(Ratio::percent(0.1)),
            burst_loss: Some(8.0),
            ..LinkChanges::default()
        };
        let link = changes.apply(&LinkOptions::default()).expect("sound");
        assert_eq!((link.rate, link.queue), (BitRate::gbps(1), QueueSize::Bdp(0.5)));
        assert_eq!((link.loss, link.burst_loss, link.rtt), (Ratio::percent(0.1), Some(8.0), Duration::from_millis(100)));
        let back = LinkChanges { burst_loss: Some(1.0), ..LinkChanges::default() }.apply(&link).expect("sound");
        assert_eq!(back, LinkOptions { burst_loss: None, ..link });
    }

    #[test]
    fn what_makes_no_link_is_refused() {
        let refused = |changes: LinkChanges| changes.apply(&LinkOptions::default()).map_err(|error| error.to_string());
        let none = LinkChanges::default;
        for (changes, why) in [
            (LinkChanges { rate: Some(BitRate::ZERO), ..none() }, "nothing would ever arrive at a rate of zero"),
            (LinkChanges { back_rate: Some(BitRate::ZERO), ..none() }, "nothing would ever arrive at a rate of zero"),
            (LinkChanges { rtt: Some(Duration::from_secs(120)), ..none() }, "no delay of more than 60 s is emulated"),
            (LinkChanges { burst_loss: Some(0.5), ..none() }, "a burst of 0.5 packets: the mean length is 1 or more"),
            (LinkChanges { burst_loss: Some(f64::NAN), ..none() }, "a burst of NaN packets: the mean length is 1 or more"),
        ] {
            assert_eq!(refused(changes), Err(why.to_owned()));
        }
        assert!(refused(none()).is_ok());
    }

    #[test]
    fn each_direction_has_its_rate_and_its_chance() {
        let options = LinkOptions { back_rate: Some(BitRate::mbps(100)), loss: Ratio::percent(1.0), ..LinkOptions::default() };
        let [there, back] = options.links();
        assert_eq!((there.rate, there.delay, there.queue), (BitRate::gbps(10), Duration::from_millis(50), Bytes(125_000_000)));
        assert_eq!((back.rate, back.delay, back.queue), (BitRate::mbps(100), Duration::from_millis(50), Bytes(1_250_000)));
        assert_eq!(there.loss, LossModel::Random(Ratio::percent(1.0)));
        assert_ne!(there.seed, back.seed);
    }
}
