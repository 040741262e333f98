//! The first layer: the path in numbers. Samples come in; bandwidth, base delay, queue, jitter and base loss come out. It knows no phase and no mode.
//!
//! | file | measures | from |
//! |---|---|---|
//! | `bandwidth.rs` | what arrives, bits per second | rate samples, means of epochs |
//! | `base_delay.rs` | the round trip without a queue | round-trip times of the last 10 s |
//! | `queue.rs` | the queueing delay, and the part of it that is the path's | one-way delays |
//! | `buildup.rs` | whether a delay is a queue that grows, or a stall | the same |
//! | `jitter.rs` | by how much delay varies without a queue | the same |
//! | `loss.rs` | what the path loses whatever the rate | what is lost at one rate and at half of it |
//! | `epoch.rs` | means and extremes over about a round trip | all of them |

mod bandwidth;
mod base_delay;
mod buildup;
mod epoch;
mod jitter;
mod loss;
mod queue;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::bandwidth::Bandwidth;
pub(in crate::lfn) use self::bandwidth::behind_bucket;
use self::base_delay::BaseDelay;
pub(in crate::lfn) use self::base_delay::MIN_RTT_LIFETIME;
pub(in crate::lfn) use self::buildup::Buildup;
use self::epoch::Epoch;
pub(in crate::lfn) use self::epoch::Summary;
use self::jitter::Jitter;
pub(in crate::lfn) use self::loss::{BaseLoss, LossMean, is_clean};
pub(in crate::lfn) use self::queue::Queue;
use crate::{AckSample, Learned};

/// A path as it has been measured.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Path {
    packet: Bytes,
    /// Bytes that have arrived in all.
    delivered: Bytes,
    smoothed_rtt: Duration,
    pub(in crate::lfn) bandwidth: Bandwidth,
    pub(in crate::lfn) base_delay: BaseDelay,
    pub(in crate::lfn) queue: Queue,
    pub(in crate::lfn) loss: BaseLoss,
    jitter: Jitter,
    epoch: Epoch,
}

impl Path {
    pub(in crate::lfn) fn new(packet: Bytes) -> Self {
        Self {
            packet,
            delivered: Bytes::ZERO,
            smoothed_rtt: Duration::ZERO,
            bandwidth: Bandwidth::default(),
            base_delay: BaseDelay::default(),
            queue: Queue::default(),
            loss: BaseLoss::default(),
            jitter: Jitter::default(),
            epoch: Epoch::new(Time::ZERO),
        }
    }

    /// Begins with what the controller before knew.
    pub(in crate::lfn) fn take_over(&mut self, now: Time, learned: &Learned) {
        self.bandwidth = Bandwidth::remembered(learned.bandwidth.as_bps() as f64);
        self.base_delay = BaseDelay::remembered(now, learned.min_rtt);
        self.loss = BaseLoss::remembered(learned.base_loss);
    }

    /// What is known; nothing before the first round trip.
    pub(in crate::lfn) fn learned(&self) -> Option<Learned> {
        let min_rtt = self.base_delay.measured().filter(|_| self.bandwidth_bps() > 0.0)?;
        Some(Learned { bandwidth: self.bandwidth(), min_rtt, base_loss: self.base_loss() })
    }

    /// Takes an acknowledgement in; `is_search`: the rate is being searched for, and every sample of what arrives counts.
    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, is_search: bool) {
        if let Some(rtt) = ack.rtt {
            self.base_delay.on_rtt(ack.now, rtt);
        }
        self.smoothed_rtt = ack.smoothed_rtt;
        self.delivered = ack.delivered;
        if let Some(delay) = ack.queue_delay {
            self.queue.on_delay(delay);
            self.jitter.on_delay(ack.now, delay, self.epoch_length(), self.packets_time(GROUP_PKTS));
        }
        if let Some(sample) = ack.rate.filter(|_| is_search || self.bandwidth.is_searched(ack.now)) {
            self.bandwidth.raise(sample.rate.as_bps() as f64);
        }
    }

    /// The summary of the epoch if it ends with this acknowledgement.
    pub(in crate::lfn) fn end_of_epoch(&mut self, ack: &AckSample, length: Duration) -> Option<Summary> {
        self.epoch.on_ack(ack, length)
    }

    /// A new epoch; acknowledgements before then do not count.
    pub(in crate::lfn) fn begin_epoch(&mut self, start: Time) {
        self.epoch = Epoch::new(start);
    }

    /// What an epoch tells of the queue, once all else has been taken from it.
    pub(in crate::lfn) fn note_delay(&mut self, summary: &Summary) {
        let long = self.long_queue();
        self.queue.end_epoch(summary, long);
    }

    /// Whether the delay of an epoch is the path's; `is_less`: less was sent than arrives.
    pub(in crate::lfn) fn adopt_delay(&mut self, summary: &Summary, is_less: bool) {
        let jitter = self.jitter();
        self.queue.adopt(summary, is_less, jitter);
    }

    /// The search is over; the samples of the next round trip still count.
    pub(in crate::lfn) fn end_search(&mut self, now: Time) {
        self.bandwidth.end_search(now + self.min_rtt() + self.queue_delay());
    }

    /// How long an epoch is, where nothing is tried.
    pub(in crate::lfn) fn epoch_length(&self) -> Duration {
        self.min_rtt().max(EPOCH)
    }

    /// The base delay.
    pub(in crate::lfn) fn min_rtt(&self) -> Duration {
        self.measured_rtt().unwrap_or(UNMEASURED_RTT)
    }

    /// The base delay; nothing before the first round trip.
    pub(in crate::lfn) const fn measured_rtt(&self) -> Option<Duration> {
        self.base_delay.measured()
    }

    pub(in crate::lfn) const fn smoothed_rtt(&self) -> Duration {
        self.smoothed_rtt
    }

    pub(in crate::lfn) const fn bandwidth_bps(&self) -> f64 {
        self.bandwidth.bps()
    }

    pub(in crate::lfn) fn bandwidth(&self) -> BitRate {
        BitRate::from_bps(self.bandwidth_bps() as u64)
    }

    pub(in crate::lfn) fn base_loss(&self) -> f64 {
        self.loss.ratio()
    }

    pub(in crate::lfn) fn jitter(&self) -> Duration {
        self.jitter.estimate()
    }

    /// The delay has varied by what was sent.
    pub(in crate::lfn) fn forget_jitter(&mut self) {
        self.jitter = Jitter::default();
    }

    pub(in crate::lfn) const fn delivered(&self) -> Bytes {
        self.delivered
    }

    pub(in crate::lfn) const fn packet(&self) -> Bytes {
        self.packet
    }

    pub(in crate::lfn) const fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    pub(in crate::lfn) fn packet_bytes(&self) -> f64 {
        self.packet.as_u64() as f64
    }

    /// Packets that an epoch tells of.
    pub(in crate::lfn) fn packets(&self, summary: &Summary) -> f64 {
        summary.bytes.as_u64() as f64 / self.packet_bytes()
    }

    /// How long so many packets take at the bandwidth.
    pub(in crate::lfn) fn packets_time(&self, packets: u64) -> Duration {
        self.bandwidth().time_for(self.packet * packets).min(UNMEASURED_RTT)
    }

    /// Bytes that fill the path without a queue, lost ones included.
    pub(in crate::lfn) fn pipe(&self) -> Bytes {
        BitRate::from_bps((self.bandwidth_bps() / (1.0 - self.base_loss())) as u64).bytes_in(self.min_rtt())
    }

    /// Queueing delay that has lasted for some acknowledgements, without what is not ours.
    pub(in crate::lfn) fn queue_delay(&self) -> Duration {
        self.queue.delay()
    }

    /// A part of the round trip, but no less than a millisecond, which scheduling alone can take.
    pub(in crate::lfn) fn queue_threshold(&self, part: u32) -> Duration {
        (self.min_rtt() / part).max(Duration::from_millis(1))
    }

    /// A long queue: no jitter, and no few packets on a slow path.
    pub(in crate::lfn) fn long_queue(&self) -> Duration {
        // Beyond what a few packets make on slow paths, and jitter.
        (self.min_rtt() / 8).max(LONG_QUEUE).max(self.packets_time(4)).max(self.jitter() * 3)
    }

    /// No packet of the epoch met a queue.
    pub(in crate::lfn) fn is_without_queue(&self, summary: &Summary) -> bool {
        summary.delay_max <= self.jitter() * 2 + self.queue_threshold(8)
    }

    /// More was lost in the epoch than chance explains.
    pub(in crate::lfn) fn exceeds_loss(&self, summary: &Summary) -> bool {
        self.loss.is_exceeded(summary.loss, self.packets(summary))
    }
}

/// MinPipeCwnd of draft-ietf-ccwg-bbr: less in flight tells nothing of a path.
pub(in crate::lfn) const LEAST_PIPE_PKTS: u64 = 4;
/// Packets that leave and arrive together: what they make of the delay is no jitter.
const GROUP_PKTS: u64 = 2;
/// Before anything is measured; the long paths that this is for have more.
const UNMEASURED_RTT: Duration = Duration::from_millis(100);
/// On short paths: in less, too few samples come for a mean that does not jump.
const EPOCH: Duration = Duration::from_millis(100);
/// Four times what a flow of 100 Mbit/s wants.
const LONG_QUEUE: Duration = Duration::from_millis(12);
