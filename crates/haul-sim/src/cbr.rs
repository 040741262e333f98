//! Datagrams at a constant rate, which nobody acknowledges: cross traffic, and a probe of what others do to the path.
//!
//! The sender puts a number and its clock into each packet; a [`CbrMeter`] at the receiver counts what is missing and how unevenly packets come.
//! The meter knows no socket and no clock, so that it measures the same in a simulation and over the network.
//! Source: RFC 3550 6.4.1 and A.3 (loss of an interval), A.8 (interarrival jitter).

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::{Delivered, Endpoint, EndpointId, FlowEnd, Transmit};

/// What a constant flow is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CbrConfig {
    /// IP bytes over time.
    pub rate: BitRate,
    /// One IP packet.
    pub packet: Bytes,
    /// How long it sends, from its start; none: without end.
    pub lasts: Option<Duration>,
}

impl CbrConfig {
    /// Packets of 1500 bytes, without end.
    pub const fn new(rate: BitRate) -> Self {
        Self { rate, packet: Bytes(1500), lasts: None }
    }
}

/// A datagram of a constant flow.
#[derive(Debug, Clone, Copy)]
pub struct CbrPacket {
    number: u64,
    sent: Time,
}

/// One end of a constant flow.
#[derive(Debug)]
pub struct Cbr(Role);

#[derive(Debug)]
enum Role {
    Sender(Sender),
    Receiver(CbrMeter),
}

#[derive(Debug)]
struct Sender {
    config: CbrConfig,
    to: EndpointId,
    start: Time,
    next_number: u64,
}

impl Sender {
    fn next_at(&self) -> Option<Time> {
        let after = self.config.packet.as_u64() * self.next_number;
        let offset = self.config.rate.time_for(Bytes(after));
        self.config.lasts.is_none_or(|lasts| offset < lasts).then(|| self.start + offset)
    }
}

impl Cbr {
    /// Sends from `start` on.
    pub fn sender(config: CbrConfig, to: EndpointId, start: Time) -> Self {
        Self(Role::Sender(Sender { config, to, start, next_number: 0 }))
    }

    /// Counts what comes.
    pub fn receiver(config: CbrConfig) -> Self {
        Self(Role::Receiver(CbrMeter::new(config.packet.saturating_sub(HEADERS), INTERVAL)))
    }

    /// What the receiver has measured.
    pub fn meter(&self) -> Option<&CbrMeter> {
        match &self.0 {
            Role::Sender(_) => None,
            Role::Receiver(meter) => Some(meter),
        }
    }
}

impl Endpoint for Cbr {
    type Packet = CbrPacket;

    fn handle(&mut self, now: Time, _from: EndpointId, delivered: Delivered<CbrPacket>) {
        if let Role::Receiver(meter) = &mut self.0
            && !delivered.corrupted
        {
            meter.on_packet(delivered.packet.number, delivered.packet.sent, now);
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<CbrPacket>> {
        let Role::Sender(sender) = &mut self.0 else { return None };
        if sender.next_at().is_none_or(|at| at > now) {
            return None;
        }
        let packet = CbrPacket { number: sender.next_number, sent: now };
        sender.next_number += 1;
        Some(Transmit { to: sender.to, way: 0, packet, bytes: sender.config.packet })
    }

    fn poll_timeout(&self) -> Option<Time> {
        match &self.0 {
            Role::Sender(sender) => sender.next_at(),
            Role::Receiver(_) => None,
        }
    }

    fn ecn_capable(_packet: &CbrPacket) -> bool {
        false
    }
}

impl FlowEnd for Cbr {
    fn received(&self) -> Bytes {
        self.meter().map_or(Bytes::ZERO, |meter| meter.payload * meter.received_pkts())
    }

    fn completed_at(&self) -> Option<Time> {
        None
    }
}

/// What a constant flow met within an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CbrInterval {
    /// When it ended, since the first packet came.
    pub end: Duration,
    /// Packets that came, each once.
    pub received_pkts: u64,
    /// Packets that should have come and did not.
    pub lost_pkts: u64,
    /// Interarrival jitter at its end.
    pub jitter: Duration,
}

/// Measures a constant flow where it arrives.
#[derive(Debug, Clone)]
pub struct CbrMeter {
    payload: Bytes,
    interval: Duration,
    first_at: Option<Time>,
    newest: Option<(Time, Time)>,
    jitter_s: f64,
    /// A bit for each number that has come.
    seen: Vec<u64>,
    received_pkts: u64,
    /// One more than the largest number.
    expected_pkts: u64,
    /// The two counters at the end of the last interval.
    before: (u64, u64),
    jitter_sum_s: f64,
    intervals: Vec<CbrInterval>,
}

impl CbrMeter {
    /// For packets with this payload; intervals are of this length.
    pub const fn new(payload: Bytes, interval: Duration) -> Self {
        Self {
            payload,
            interval,
            first_at: None,
            newest: None,
            jitter_s: 0.0,
            seen: Vec::new(),
            received_pkts: 0,
            expected_pkts: 0,
            before: (0, 0),
            jitter_sum_s: 0.0,
            intervals: Vec::new(),
        }
    }

    /// A packet has come: its number, when it was sent by the sender's clock, when it came by the receiver's.
    pub fn on_packet(&mut self, number: u64, sent: Time, now: Time) {
        if number >= self.expected_pkts + MOST_AHEAD || !self.is_first(number) {
            return;
        }
        let first_at = *self.first_at.get_or_insert(now);
        while now.since(first_at) >= self.interval * (self.intervals.len() as u32 + 1) {
            self.end_interval();
        }
        self.received_pkts += 1;
        self.expected_pkts = self.expected_pkts.max(number + 1);
        if let Some((sent_before, came_before)) = self.newest {
            // RFC 3550 A.8: D = (R_j - R_i) - (S_j - S_i), J += (|D| - J) / 16
            let seconds = |later: Time, earlier: Time| later.as_nanos() as f64 / 1e9 - earlier.as_nanos() as f64 / 1e9;
            let difference = (seconds(now, came_before) - seconds(sent, sent_before)).abs();
            self.jitter_s += (difference - self.jitter_s) / 16.0;
        }
        self.jitter_sum_s += self.jitter_s;
        self.newest = Some((sent, now));
    }

    /// Packets that came, each once.
    pub const fn received_pkts(&self) -> u64 {
        self.received_pkts
    }

    /// Part of the packets up to the newest that did not come.
    pub fn loss(&self) -> f64 {
        self.expected_pkts.saturating_sub(self.received_pkts) as f64 / self.expected_pkts.max(1) as f64
    }

    /// Mean over all packets of the interarrival jitter.
    pub fn mean_jitter(&self) -> Duration {
        Duration::try_from_secs_f64(self.jitter_sum_s / self.received_pkts.max(1) as f64).unwrap_or_default()
    }

    /// Interval by interval, whole ones only.
    pub fn intervals(&self) -> &[CbrInterval] {
        &self.intervals
    }

    fn is_first(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1u64 << (number % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let first = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        first
    }

    fn end_interval(&mut self) {
        let (expected, received) = (self.expected_pkts - self.before.0, self.received_pkts - self.before.1);
        self.before = (self.expected_pkts, self.received_pkts);
        self.intervals.push(CbrInterval {
            end: self.interval * (self.intervals.len() as u32 + 1),
            received_pkts: received,
            // RFC 3550 A.3: late packets may make it less than none.
            lost_pkts: expected.saturating_sub(received),
            jitter: Duration::try_from_secs_f64(self.jitter_s).unwrap_or_default(),
        });
    }
}

/// IP and UDP.
const HEADERS: Bytes = Bytes(28);
const INTERVAL: Duration = Duration::from_secs(1);
/// A number that is farther ahead is nonsense: at 10 Gbit/s, 20 s of packets of 1500 bytes.
const MOST_AHEAD: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, LossModel, Network};

    fn flow(config: CbrConfig, link: LinkConfig, length: Duration) -> CbrMeter {
        let ends = (Cbr::sender(config, EndpointId(1), Time::ZERO), Cbr::receiver(config));
        let mut network = Network::pair(ends.0, ends.1, link, link);
        network.run(Time::ZERO + length);
        network.endpoint(EndpointId(1)).meter().expect("a receiver").clone()
    }

    #[test]
    fn an_empty_path_loses_nothing_and_keeps_the_pace() {
        let meter = flow(CbrConfig::new(BitRate::mbps(120)), LinkConfig::default(), Duration::from_millis(5010));
        // 10,000 packets of 1500 bytes a second.
        assert!(meter.received_pkts().abs_diff(50_000) < 3, "{}", meter.received_pkts());
        assert!(meter.loss() < 1e-9 && meter.mean_jitter() < Duration::from_micros(1), "{:?}", meter.mean_jitter());
        assert_eq!(meter.intervals().len(), 4);
        assert!(meter.intervals().iter().all(|interval| interval.received_pkts == 10_000 && interval.lost_pkts == 0));
    }

    #[test]
    fn it_ends_when_it_should() {
        let config = CbrConfig { lasts: Some(Duration::from_secs(1)), ..CbrConfig::new(BitRate::mbps(12)) };
        assert_eq!(flow(config, LinkConfig::default(), Duration::from_secs(3)).received_pkts(), 1000);
    }

    #[test]
    fn losses_are_counted_once() {
        let lossy =
            LinkConfig { loss: LossModel::Every(10), duplicate: haul_units::Ratio::percent(5.0), ..LinkConfig::default() };
        let meter = flow(CbrConfig::new(BitRate::mbps(120)), lossy, Duration::from_secs(5));
        assert!((meter.loss() - 0.1).abs() < 0.001, "{}", meter.loss());
        assert!(meter.intervals().iter().all(|interval| interval.lost_pkts.abs_diff(1000) < 3), "{:?}", meter.intervals());
    }

    #[test]
    fn uneven_arrivals_are_jitter() {
        // Packets come 1 ms early and late in turn: each difference is 2 ms, and so the jitter.
        let mut meter = CbrMeter::new(Bytes(1000), Duration::from_secs(1));
        for number in 0..400u64 {
            let sent = Time::ZERO + Duration::from_millis(5 * number);
            let late = if number % 2 == 0 { 9 } else { 11 };
            meter.on_packet(number, sent, sent + Duration::from_millis(late));
        }
        let jitter = meter.intervals().first().expect("two seconds of packets").jitter;
        assert!(jitter.abs_diff(Duration::from_millis(2)) < Duration::from_micros(50), "{jitter:?}");
    }

    #[test]
    fn nonsense_from_the_network_is_dropped() {
        let mut meter = CbrMeter::new(Bytes(1000), Duration::from_secs(1));
        meter.on_packet(u64::MAX, Time::ZERO, Time::ZERO);
        assert_eq!(meter.received_pkts(), 0);
    }
}
