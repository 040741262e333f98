//! What people read about a connection.

use std::time::Duration;

use haul_cc::Snapshot;
use haul_paths::Evidence;
use haul_units::{BitRate, Bytes, Ratio, Time};

use super::Connection;
use crate::distributions::Distributions;
use crate::path::{Path, loss_ratio};

/// Why sending waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// It does not.
    Nothing,
    Application,
    Window,
    Credit,
    Pacing,
    Limit,
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
    /// For the pacer, at the congestion controller's rate.
    pub pacing: Duration,
    /// For the pacer, at the rate that the user allows.
    pub limit: Duration,
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
            Wait::Limit => waits.limit += elapsed,
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
    /// Timers that ran out because nothing was heard of what was in flight.
    pub probe_timeouts: u64,
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
    /// Paths that the peer answers on.
    pub paths: usize,
    /// Whether the round-trip time has been measured; until then it is a guess.
    pub is_measured: bool,
    /// Time since something authentic came from the peer.
    pub silence: Duration,
    /// The silence after which the connection is over.
    pub idle_timeout: Duration,
    /// Why sending waited, and how long.
    pub waits: Waits,
    /// What the paths have shown of themselves.
    pub evidence: Evidence,
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
        !matches!(self.waits.current, Wait::Window | Wait::Pacing | Wait::Limit)
    }

    /// Changes with whatever authentic comes on a path, and with nothing else that comes: the newest packet of the handshake, which is the first path's, and the number of packets.
    pub fn heard(&self, path: u8) -> (Option<u32>, u64) {
        let newest = self.handshake.as_ref().filter(|_| path == 0).map(|handshake| handshake.newest_heard());
        (newest, self.paths.get(usize::from(path)).map_or(0, |path| path.reporter.packets()))
    }

    /// State and counters; `None` until the handshake is complete. Of several paths, rates, windows and counters are added up; the
    /// round-trip times are those of the path that has the shortest, the controller's view is the first path's.
    pub fn stats(&self, now: Time) -> Option<Stats> {
        let first = self.paths.first()?;
        let nearest = self.paths.iter().filter(|path| path.is_usable()).min_by_key(|path| path.rtt.smoothed()).unwrap_or(first);
        let open = || self.paths.iter().filter(|path| path.peer.is_open());
        let sum = |of: fn(&Path) -> u64| self.paths.iter().map(of).sum::<u64>();
        let rate =
            |of: fn(&Path) -> BitRate| BitRate::from_bps(open().map(|path| of(path).as_bps()).fold(0, u64::saturating_add));
        let (delivered, lost) = (sum(|path| path.meter.delivered), sum(|path| path.meter.lost_bytes));
        Some(Stats {
            rtt: nearest.rtt.smoothed(),
            min_rtt: nearest.rtt.min(),
            queue_delay: open().map(|path| path.meter.queue_delay).max().unwrap_or_default(),
            delivery_rate: rate(|path| path.meter.delivery_rate),
            pacing_rate: rate(|path| path.controller.rate()).min(self.config.rate_limit.unwrap_or(BitRate::MAX)),
            window: Bytes(open().map(|path| path.controller.window().as_u64()).fold(0, u64::saturating_add)),
            in_flight: Bytes(sum(|path| path.sent.in_flight())),
            packet_size: Bytes(open().map(|path| path.mtu.current()).max().unwrap_or_default().into()),
            sent_pkts: sum(|path| path.meter.sent_pkts),
            burst_p99_pkts: self.paths.iter().map(|path| path.trains.burst_p99_pkts()).max().unwrap_or_default(),
            received_pkts: sum(|path| path.reporter.packets()),
            duplicate_pkts: sum(|path| path.reporter.duplicates()),
            lost_pkts: sum(|path| path.meter.lost_pkts),
            spurious_pkts: sum(|path| path.meter.spurious_pkts),
            probe_timeouts: sum(|path| path.meter.probe_timeouts),
            ecn_marked_pkts: sum(|path| path.ecn.marked_pkts()),
            retransmitted: Bytes(self.retransmitted_bytes),
            sent: Bytes(sum(|path| path.meter.sent_bytes)),
            acknowledged: Bytes(delivered),
            received: Bytes(sum(|path| path.reporter.bytes())),
            received_stream: Bytes(self.credit.received()),
            loss: Ratio::new(loss_ratio(delivered, lost)),
            buffered: Bytes(self.streams.unacknowledged),
            held: Bytes(self.credit.held()),
            streams: self.streams.count(),
            paths: self.paths.iter().filter(|path| path.is_usable()).count(),
            is_measured: nearest.rtt.is_measured(),
            silence: now.since(self.heard_at),
            idle_timeout: self.idle_timeout,
            waits: self.waits.read(now),
            evidence: self.paths.iter().map(|path| path.evidence(now)).reduce(Evidence::plus).unwrap_or_default(),
            controller: first.controller.snapshot(),
        })
    }

    /// Distributions of what was measured so far, on all paths; `None` until the handshake is complete.
    pub fn distributions(&self) -> Option<Distributions> {
        self.paths.first()?;
        let mut all = Distributions::default();
        for path in &self.paths {
            all.rtt_us.merge(&path.rtts_us);
            all.queue_delay_us.merge(&path.queue_delays_us);
            all.gaps_pkts.merge(path.reporter.gaps());
            all.late_pkts.merge(path.reporter.late());
        }
        Some(all)
    }
}
