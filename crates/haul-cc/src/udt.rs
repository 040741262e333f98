//! UDT's native control: a rate that grows with the bandwidth that is left, and is cut by a ninth.
//!
//! Every 10 ms, whatever the round-trip time, the rate grows by a step that is a power of ten of the bandwidth thought to be left (DAIMD:
//! additive increase that decreases). A report of loss cuts the rate; in a congestion period further cuts come at random intervals, at
//! most five, so that flows do not cut in step. A window of what arrives in a round trip and a step bounds what is in flight.
//!
//! ```text
//! left  = L - C above the rate of the last cut, else min(L/9, L - C)        L: capacity of the link, C: rate of sending
//! step  = max(10^ceil(log10(left in bit/s)) x 1.5e-6 / packet in bytes, 1 / packet) packets
//! ```
//!
//! Sources: Y. Gu, R. Grossman, UDT: UDP-based data transfer for high-speed wide area networks, Computer Networks 51(7), 2007;
//! draft-gg-udt-03 6.
//!
//! DEVIATION: UDT takes the capacity from packet pairs, throughout. Here it is the largest of what the spread of the first trains tells
//! and of the delivery rates of a minute, and while no queue shows it is thought to be at least twice the rate of sending.

use std::cmp::Reverse;
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::pacer::quantum;
use crate::windowed::WindowedMin;
use crate::{AckSample, Controller, DispersionSample, EcnSample, Learned, LossSample, PathStart, SentSample, Snapshot};

/// The controller. Rates in packets per second.
#[derive(Debug, Clone)]
pub(crate) struct Udt {
    packet: Bytes,
    rate_pps: f64,
    /// What arrives, smoothed.
    arrival_pps: f64,
    /// The largest rate at which anything arrived.
    capacity: WindowedMin<Reverse<BitRate>>,
    /// The largest rate at which the packets of a train arrived.
    spread: BitRate,
    window_pkts: f64,
    slow_start: bool,
    smoothed_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    /// When the rate was last raised, and whether anything was lost since.
    raised_at: Time,
    lost: bool,
    period: Period,
    /// State of the generator of random intervals.
    seed: u64,
}

/// A congestion period: from a cut until a packet sent after it is lost.
#[derive(Debug, Clone, Copy)]
struct Period {
    /// `LastDecSeq`: what left before this instant belongs to the last cut.
    last_cut: Option<Time>,
    /// The rate before it.
    rate_pps: f64,
    /// `AvgNAKNum`, `NAKCount` after the first, `DecCount`, `DecRandom`.
    mean_reports: f64,
    reports: u32,
    cuts: u32,
    interval: u32,
}

impl Udt {
    /// The algorithm's name.
    pub(crate) const NAME: &'static str = "udt";

    /// A controller in slow start.
    pub(crate) fn new(start: &PathStart) -> Self {
        let mut udt = Self {
            packet: start.packet,
            rate_pps: 0.0,
            arrival_pps: 0.0,
            capacity: WindowedMin::new(CAPACITY_WINDOW),
            spread: BitRate::ZERO,
            window_pkts: FIRST_WINDOW,
            slow_start: true,
            smoothed_rtt: None,
            min_rtt: None,
            raised_at: start.now,
            lost: false,
            period: Period { last_cut: None, rate_pps: 0.0, mean_reports: 1.0, reports: 0, cuts: 1, interval: 1 },
            seed: start.seed,
        };
        udt.smoothed_rtt = start.rtt;
        if let Some(learned) = start.learned {
            udt.smoothed_rtt = Some(learned.min_rtt);
            udt.min_rtt = Some(learned.min_rtt);
            udt.arrival_pps = udt.pps(learned.bandwidth);
            udt.capacity.insert(start.now, Reverse(learned.bandwidth));
            udt.leave_slow_start(start.now);
            udt.window_pkts = udt.whole_window();
        }
        udt
    }

    /// draft-gg-udt-03 6.1: CWND = A * (RTT + SYN) + 16
    fn whole_window(&self) -> f64 {
        (self.arrival_pps * (self.round_trip() + SYN).as_secs_f64() + FIRST_WINDOW).min(MOST_WINDOW)
    }

    fn round_trip(&self) -> Duration {
        self.smoothed_rtt.unwrap_or(UNMEASURED_RTT).max(Duration::from_micros(1))
    }

    fn pps(&self, rate: BitRate) -> f64 {
        rate.bytes_per_second() as f64 / self.packet.as_u64().max(1) as f64
    }

    /// The largest rate seen lately.
    fn seen(&self) -> BitRate {
        self.capacity.get().map_or(BitRate::ZERO, |Reverse(rate)| rate).max(self.spread)
    }

    fn measure(&mut self, ack: &AckSample) {
        self.smoothed_rtt = Some(ack.smoothed_rtt);
        self.min_rtt = Some(ack.min_rtt);
        let Some(sample) = ack.rate else { return };
        let arrival = self.pps(sample.rate);
        if sample.app_limited && arrival < self.arrival_pps {
            return;
        }
        self.capacity.insert(ack.now, Reverse(sample.rate));
        // draft-gg-udt-03 6: a moving average of an eighth.
        self.arrival_pps += (arrival - self.arrival_pps) * if self.arrival_pps > 0.0 { 0.125 } else { 1.0 };
    }

    /// Slow start is over: the rate is what arrives.
    fn leave_slow_start(&mut self, now: Time) {
        self.slow_start = false;
        self.raised_at = now;
        let paced = self.window_pkts / self.round_trip().as_secs_f64();
        self.rate_pps = if self.arrival_pps > 0.0 { self.arrival_pps } else { paced }.max(LEAST_PPS);
        self.period.rate_pps = self.rate_pps;
    }

    /// Raises the rate for every interval that has passed.
    fn raise(&mut self, ack: &AckSample) {
        let steps = (ack.now.since(self.raised_at).as_nanos() / SYN.as_nanos()) as u32;
        if steps == 0 {
            return;
        }
        self.raised_at = ack.now;
        if std::mem::take(&mut self.lost) || ack.rate.is_some_and(|sample| sample.app_limited) {
            return;
        }
        // What stands for less than a report of the receiver (a round trip / 32) is no queue.
        let free = ack.queue_delay.is_none_or(|delay| delay <= (ack.min_rtt / 32).max(NO_QUEUE));
        let seen = self.pps(self.seen());
        for _ in 0..steps.min(MOST_STEPS) {
            let capacity = if free { seen.max(2.0 * self.rate_pps) } else { seen };
            // draft-gg-udt-03 6.1: SND = SND SYN / (SND inc + SYN), that is inc / SYN more packets a second
            self.rate_pps += step(left(capacity, self.rate_pps, self.period.rate_pps), self.packet) / SYN.as_secs_f64();
        }
        self.rate_pps = self.rate_pps.min(MOST_PPS);
    }

    /// draft-gg-udt-03 6.2: SND = SND * 1.125
    fn cut(&mut self, now: Time) {
        self.rate_pps = (self.rate_pps / CUT).max(LEAST_PPS);
        self.period.last_cut = Some(now);
    }

    /// Packets are reported lost, the newest of which left at `sent_at`: UDT's negative acknowledgement.
    fn on_report(&mut self, now: Time, sent_at: Time) {
        self.lost = true;
        if self.slow_start {
            self.leave_slow_start(now);
            self.period.last_cut = Some(now);
            return;
        }
        if self.period.last_cut.is_none_or(|cut| sent_at > cut) {
            self.period.rate_pps = self.rate_pps;
            self.cut(now);
            // draft-gg-udt-03 6.2: a moving average of an eighth.
            let mean = (self.period.mean_reports * 0.875 + f64::from(self.period.reports + 1) * 0.125).clamp(1.0, MOST_REPORTS);
            let interval = self.random(mean.ceil() as u32);
            self.period = Period { mean_reports: mean, reports: 0, cuts: 1, interval, ..self.period };
            return;
        }
        self.period.reports = self.period.reports.saturating_add(1).min(MOST_REPORTS as u32);
        if self.period.cuts <= MOST_CUTS && self.period.reports == self.period.cuts * self.period.interval {
            self.cut(now);
            self.period.cuts += 1;
        }
    }

    /// From 1 to `most`.
    fn random(&mut self, most: u32) -> u32 {
        // Knuth's MMIX generator; the high bits are the good ones.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + ((self.seed >> 33) as u32) % most.max(1)
    }
}

/// Bandwidth thought to be left, in packets per second.
fn left(capacity: f64, rate: f64, rate_before_cut: f64) -> f64 {
    let left = capacity - rate;
    // Gu 2007, 3.3: below the rate of the last cut at most what the cut took.
    if rate < rate_before_cut { left.min(capacity / 9.0) } else { left }
}

/// Packets by which the next interval has more.
fn step(left_pps: f64, packet: Bytes) -> f64 {
    let packet = packet.as_u64().max(1) as f64;
    if left_pps <= 0.0 {
        return 1.0 / packet;
    }
    // draft-gg-udt-03 6.1: inc = max(10^ceil(log10((B-C)*PS*8)) * Beta/PS, 1/PS)
    (10_f64.powf((left_pps * packet * 8.0).log10().ceil()) * BETA / packet).max(1.0 / packet)
}

impl Controller for Udt {
    fn on_sent(&mut self, _sent: &SentSample) {}

    fn on_ack(&mut self, ack: &AckSample) {
        self.measure(ack);
        if self.slow_start {
            // draft-gg-udt-03 6.1: the window is the number of packets acknowledged.
            let acked = ack.acked.as_u64() as f64 / self.packet.as_u64().max(1) as f64;
            self.window_pkts = (self.window_pkts + acked).min(MOST_WINDOW);
            return;
        }
        self.window_pkts = self.whole_window();
        self.raise(ack);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.on_report(loss.now, loss.sent_at);
    }

    fn on_spurious(&mut self, _now: Time, _bytes: Bytes) {}

    fn on_ecn(&mut self, ecn: &EcnSample) {
        self.on_report(ecn.now, ecn.sent_at);
    }

    fn on_idle(&mut self, now: Time) {
        self.raised_at = now;
    }

    fn on_mtu(&mut self, packet: Bytes) {
        let factor = self.packet.as_u64().max(1) as f64 / packet.as_u64().max(1) as f64;
        self.packet = packet;
        if !self.slow_start || self.smoothed_rtt.is_some() {
            self.window_pkts *= factor;
        }
        self.rate_pps *= factor;
        self.arrival_pps *= factor;
        self.period.rate_pps *= factor;
    }

    fn on_path_change(&mut self, now: Time, rtt: Option<Duration>) {
        *self = Self::new(&PathStart { rtt, ..PathStart::new(now, self.packet, self.seed) });
    }

    fn window(&self) -> Bytes {
        Bytes((self.window_pkts.max(FIRST_WINDOW) * self.packet.as_u64() as f64) as u64).max(self.packet)
    }

    fn rate(&self) -> BitRate {
        if self.slow_start && self.arrival_pps <= 0.0 {
            // UDT sends without pacing here: how far the path spreads these packets is the capacity.
            return FIRST_FLIGHT;
        }
        if self.slow_start {
            // Twice what the window needs leaves the window to rule.
            return BitRate::of(self.window(), self.round_trip()).scaled(2.0).max(BitRate::from_bps(8_000));
        }
        BitRate::from_bps((self.rate_pps.clamp(LEAST_PPS, MOST_PPS) * self.packet.as_u64() as f64 * 8.0) as u64)
    }

    fn burst(&self) -> Bytes {
        quantum(self.rate(), self.packet)
    }

    fn on_dispersion(&mut self, sample: &DispersionSample) {
        if sample.is_exact() {
            self.spread = self.spread.max(sample.rate());
        }
    }

    fn learned(&self) -> Option<Learned> {
        let bandwidth = BitRate::from_bps((self.arrival_pps * self.packet.as_u64() as f64 * 8.0) as u64);
        (bandwidth > BitRate::ZERO).then_some(Learned { bandwidth, min_rtt: self.min_rtt?, base_loss: 0.0 })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            algorithm: Self::NAME,
            phase: if self.slow_start { "slow start" } else { "avoidance" },
            is_starting: self.slow_start,
            bandwidth: Some(self.seen()),
            base_loss: None,
            ssthresh: None,
        }
    }
}

/// draft-gg-udt-03 6: the interval of rate control.
const SYN: Duration = Duration::from_millis(10);
/// draft-gg-udt-03 6.1: beta of the step.
const BETA: f64 = 1.5e-6;
/// draft-gg-udt-03 6.2
const CUT: f64 = 1.125;
/// draft-gg-udt-03 6.2: in one congestion period.
const MOST_CUTS: u32 = 5;
/// draft-gg-udt-03 6.1, in packets.
const FIRST_WINDOW: f64 = 16.0;
/// After a pause in acknowledgements not all of it is made up for.
const MOST_STEPS: u32 = 4;
const MOST_REPORTS: f64 = 1e6;
/// A packet a second: the path must be heard of again.
const LEAST_PPS: f64 = 1.0;
/// Beyond any path.
const MOST_PPS: f64 = 1e9;
const MOST_WINDOW: f64 = 1e9;
/// The first window leaves at once, as far as hosts can.
const FIRST_FLIGHT: BitRate = BitRate::gbps(10);
/// A capacity older than a minute may be that of another route.
const CAPACITY_WINDOW: Duration = Duration::from_secs(60);
const UNMEASURED_RTT: Duration = Duration::from_millis(1);
/// What scheduling alone can take.
const NO_QUEUE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1_500);

    fn pps(rate: BitRate) -> f64 {
        rate.bytes_per_second() as f64 / 1_500.0
    }

    #[test]
    fn table_of_steps() {
        // Gu 2007, table 1: bandwidth left, packets of 1500 bytes by which an interval has more.
        for (left, packets) in [
            (BitRate::mbps(5_000), 10.0),
            (BitRate::mbps(500), 1.0),
            (BitRate::mbps(50), 0.1),
            (BitRate::mbps(5), 0.01),
            (BitRate::from_bps(500_000), 0.001),
            (BitRate::from_bps(50_000), 0.000_67),
        ] {
            let step = step(pps(left), PACKET);
            assert!((step / packets - 1.0).abs() < 0.01, "{step} at {left}");
        }
        assert!((step(-1.0, PACKET) - 1.0 / 1_500.0).abs() < 1e-12);
    }

    #[test]
    fn a_lossless_gigabit_takes_seven_and_a_half_seconds() {
        // Gu 2007, 3.3: 7.5 s to 90 % of the capacity when it is large: here from nothing, with a known capacity of 1 Gbit/s.
        let capacity = pps(BitRate::gbps(1));
        let (mut rate, mut intervals) = (1.0, 0);
        while rate < 0.9 * capacity {
            rate += step(left(capacity, rate, 0.0), PACKET) / SYN.as_secs_f64();
            intervals += 1;
        }
        assert!((740..=760).contains(&intervals), "{intervals} intervals");
    }

    #[test]
    fn below_the_last_cut_a_ninth_is_left() {
        let (capacity, rate) = (9_000.0, 1_000.0);
        assert!((left(capacity, rate, 2_000.0) - 1_000.0).abs() < 1e-9);
        assert!((left(capacity, rate, 500.0) - 8_000.0).abs() < 1e-9);
    }

    #[test]
    fn a_ninth_less_once_a_period_and_a_few_times_more_in_it() {
        let mut udt = Udt::new(&PathStart::new(Time::ZERO, PACKET, 7));
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        udt.on_report(at(1), at(0));
        assert!(!udt.slow_start);
        udt.rate_pps = 9_000.0;
        udt.on_report(at(100), at(50));
        assert!((udt.rate_pps - 8_000.0).abs() < 1e-9, "{}", udt.rate_pps);
        // The same period: reports of what left before the cut, of which with an average of one each cuts, up to five.
        for _ in 0..20 {
            udt.on_report(at(110), at(60));
        }
        let cuts = (9_000.0 / udt.rate_pps).ln() / CUT.ln();
        assert!((5.9..=6.1).contains(&cuts), "{cuts} cuts");
    }

    #[test]
    fn the_window_is_what_arrives_in_a_round_trip_and_an_interval() {
        let mut udt = Udt::new(&PathStart::new(Time::ZERO, PACKET, 7));
        udt.on_report(Time::from_nanos(1), Time::ZERO);
        (udt.arrival_pps, udt.smoothed_rtt) = (10_000.0, Some(Duration::from_millis(90)));
        udt.window_pkts = udt.whole_window();
        assert_eq!(udt.window(), PACKET * 1_016);
    }
}
