//! What people read about a connection.

use std::time::Duration;

use haul_cc::Snapshot;
use haul_units::{BitRate, Bytes, Ratio, Time};

use super::Connection;
use crate::distribution::Distributions;

/// Why sending waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// It does not.
    Nothing,
    Application,
    Window,
    Credit,
    Pacing,
}

/// Time that sending has waited, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// For the application to write.
    pub application: Duration,
    /// For acknowledgements: the congestion window is full.
    pub window: Duration,
    /// For the peer to take what it has: credit is used up.
    pub credit: Duration,
    /// For the pacer: the rate is what the path bears, or what the user allows.
    pub pacing: Duration,
}

/// Adds up waits.
#[derive(Debug)]
pub(super) struct WaitMeter {
    waits: Waits,
    since: Time,
    current: Wait,
}

impl WaitMeter {
    pub(super) fn new(now: Time) -> Self {
        Self { waits: Waits::default(), since: now, current: Wait::Application }
    }

    /// From now on sending waits for `wait`.
    pub(super) fn note(&mut self, now: Time, wait: Wait) {
        self.waits = self.read(now);
        self.since = now;
        self.current = wait;
    }

    fn read(&self, now: Time) -> Waits {
        let mut waits = self.waits;
        let elapsed = now.since(self.since);
        match self.current {
            Wait::Nothing => {}
            Wait::Application => waits.application += elapsed,
            Wait::Window => waits.window += elapsed,
            Wait::Credit => waits.credit += elapsed,
            Wait::Pacing => waits.pacing += elapsed,
        }
        waits
    }
}

/// State and counters of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time of the last 10 s.
    pub min_rtt: Duration,
    /// Queueing delay towards the peer.
    pub queue_delay: Duration,
    /// Newest sample of the rate at which what we send arrives.
    pub delivery_rate: BitRate,
    /// Pacing rate.
    pub pacing_rate: BitRate,
    /// Congestion window.
    pub window: Bytes,
    /// In flight.
    pub in_flight: Bytes,
    /// Packet size, UDP payload.
    pub packet_size: Bytes,
    /// Packets sent.
    pub sent_pkts: u64,
    /// What left between two waits of the pacer had at most so many packets, in 99 of 100 cases.
    pub burst_p99_pkts: u64,
    /// Packets received, each once.
    pub received_pkts: u64,
    /// Packets received again.
    pub duplicate_pkts: u64,
    /// Packets taken for lost.
    pub lost_pkts: u64,
    /// Of these, packets that turned up after all.
    pub spurious_pkts: u64,
    /// Packets that the network marked with congestion.
    pub ecn_marked_pkts: u64,
    /// Stream bytes sent again.
    pub retransmitted: Bytes,
    /// UDP payload sent.
    pub sent: Bytes,
    /// UDP payload acknowledged.
    pub acknowledged: Bytes,
    /// UDP payload received, each packet once.
    pub received: Bytes,
    /// Stream bytes received, each once.
    pub received_stream: Bytes,
    /// Loss of what we sent.
    pub loss: Ratio,
    /// Stream bytes written and not yet acknowledged.
    pub buffered: Bytes,
    /// Stream bytes received and not yet consumed.
    pub held: Bytes,
    /// Streams open.
    pub streams: usize,
    /// Time since something authentic came from the peer.
    pub silence: Duration,
    /// Why sending waited, and how long.
    pub waits: Waits,
    /// The congestion controller's own view.
    pub controller: Snapshot,
}

impl Connection {
    /// Whether the last [`Connection::poll_transmit`] gave stream data: then more may follow at once.
    pub fn has_more(&self) -> bool {
        self.waits.current == Wait::Nothing
    }

    /// Whether sending waits for something to be written, or for credit, which what is written may not need; not for window or pacer.
    pub fn wants_data(&self) -> bool {
        !matches!(self.waits.current, Wait::Window | Wait::Pacing)
    }

    /// State and counters; `None` until the handshake is complete.
    pub fn stats(&self, now: Time) -> Option<Stats> {
        let path = self.paths.first()?;
        let meter = &path.meter;
        Some(Stats {
            rtt: path.rtt.smoothed(),
            min_rtt: path.rtt.min(),
            queue_delay: meter.queue_delay,
            delivery_rate: meter.delivery_rate,
            pacing_rate: path.controller.rate().min(self.config.rate_limit.unwrap_or(BitRate::MAX)),
            window: path.controller.window(),
            in_flight: Bytes(path.sent.in_flight()),
            packet_size: Bytes(path.mtu.current().into()),
            sent_pkts: meter.sent_pkts,
            burst_p99_pkts: path.trains.burst_p99_pkts(),
            received_pkts: path.reporter.packets(),
            duplicate_pkts: path.reporter.duplicates(),
            lost_pkts: meter.lost_pkts,
            spurious_pkts: meter.spurious_pkts,
            ecn_marked_pkts: path.ecn.marked_pkts(),
            retransmitted: Bytes(self.retransmitted_bytes),
            sent: Bytes(meter.sent_bytes),
            acknowledged: Bytes(meter.delivered),
            received: Bytes(path.reporter.bytes()),
            received_stream: Bytes(self.credit.received()),
            loss: Ratio::new(path.loss_ratio()),
            buffered: Bytes(self.streams.unacknowledged),
            held: Bytes(self.credit.held()),
            streams: self.streams.count(),
            silence: now.since(self.heard_at),
            waits: self.waits.read(now),
            controller: path.controller.snapshot(),
        })
    }

    /// Distributions of what was measured so far; `None` until the handshake is complete.
    pub fn distributions(&self) -> Option<Distributions> {
        let path = self.paths.first()?;
        Some(Distributions {
            rtt_us: path.rtts_us.clone(),
            queue_delay_us: path.queue_delays_us.clone(),
            gaps_pkts: path.reporter.gaps().clone(),
            late_pkts: path.reporter.late().clone(),
        })
    }
}
