//! The sending end of a subflow: what is where, what is lost, what goes next. A plain connection has one.

use std::collections::VecDeque;
use std::time::Duration;

use haul_units::{Ranges, Time};

use super::bbr::BbrAck;
use super::coupling::Share;
use super::segment::Kind;
use super::supply::Supply;
use super::window::{Coupled, Window};
use super::{Segment, TcpConfig};
use crate::{EndpointId, Transmit};

/// What a sender did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TcpStats {
    /// Data packets sent, repeated ones included.
    pub sent_pkts: u64,
    /// Of these, repeated ones.
    pub resent_pkts: u64,
    /// Times the window was cut after loss or marks.
    pub cuts: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that the handshake was tried again.
    pub handshake_timeouts: u64,
    /// Congestion window in packets.
    pub window_pkts: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

#[derive(Debug)]
pub(super) struct Sender {
    config: TcpConfig,
    peer: EndpointId,
    subflow: u16,
    /// When it connects, if that is known.
    start: Option<Time>,
    /// So many that left later must have arrived before one is lost.
    reordering_pkts: u32,
    phase: Phase,
    /// Packets from the first that is not acknowledged to the last one sent.
    sent: VecDeque<Sent>,
    first: u32,
    sacked: Ranges,
    /// What is below has been judged lost or not by what arrived above it.
    judged: u32,
    /// To be sent again; those that have arrived after all are skipped.
    lost: VecDeque<u32>,
    /// Sent again, in order of time.
    resent: VecDeque<(u32, Time)>,
    in_flight: u32,
    recovery: Option<Recovery>,
    window: Window,
    /// When the newest packet that has arrived left.
    newest_arrived: Time,
    /// Arrived in all, and when the last did; when the first packet left of those that the next sample is made of.
    delivered: u64,
    delivered_at: Time,
    flight_start: Time,
    /// Of the acknowledgement that is being taken in: the packet that left last, and how many were lost.
    newest: Option<Sent>,
    newly_lost: u32,
    /// The next packet leaves then.
    next_at: Time,
    pace_at: Option<Time>,
    rtt: Rtt,
    timeout_at: Option<Time>,
    backoff: u32,
    /// A round of HyStart ends when this is acknowledged; no second cut for marks before this is.
    round_end: u32,
    cut_end: u32,
    /// Packets acknowledged since the last loss, and between the two losses before.
    unlost_pkts: u64,
    unlost_before_pkts: u64,
    stats: TcpStats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Connecting,
    Open,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Time,
    place: Place,
    /// Its number in the connection.
    data: u32,
    /// What had arrived in all, and the last when, as it left.
    delivered: u64,
    delivered_at: Time,
    flight_start: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    InFlight,
    Arrived,
    Lost,
}

/// From a loss until all that was in flight then is acknowledged.
#[derive(Debug, Clone, Copy)]
struct Recovery {
    end: u32,
    after_timeout: bool,
}

/// RFC 6298 2.
#[derive(Debug, Clone, Copy, Default)]
struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    least: Option<Duration>,
}

impl Sender {
    /// One that connects at `start`, or when it is told to; `reordering_pkts`: in place of three.
    pub(super) fn new(
        config: TcpConfig,
        peer: EndpointId,
        subflow: u16,
        start: Option<Time>,
        reordering_pkts: Option<u32>,
    ) -> Self {
        Self {
            window: Window::new(&config),
            config,
            peer,
            subflow,
            start,
            reordering_pkts: reordering_pkts.unwrap_or(DUPLICATE_THRESHOLD),
            phase: Phase::Waiting,
            sent: VecDeque::new(),
            first: 0,
            sacked: Ranges::default(),
            judged: 0,
            lost: VecDeque::new(),
            resent: VecDeque::new(),
            in_flight: 0,
            recovery: None,
            newest_arrived: Time::ZERO,
            delivered: 0,
            delivered_at: Time::ZERO,
            flight_start: Time::ZERO,
            newest: None,
            newly_lost: 0,
            next_at: Time::ZERO,
            pace_at: None,
            rtt: Rtt::default(),
            timeout_at: None,
            backoff: 0,
            round_end: 0,
            cut_end: 0,
            unlost_pkts: 0,
            unlost_before_pkts: 0,
            stats: TcpStats::default(),
        }
    }

    pub(super) fn stats(&self) -> TcpStats {
        TcpStats { window_pkts: self.window.pkts(), rtt: self.rtt.smoothed.unwrap_or_default(), ..self.stats }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        if self.phase == Phase::Waiting {
            return self.start;
        }
        self.timeout_at.into_iter().chain(self.pace_at).min()
    }

    /// Whether it has connected.
    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Connects now, unless it has a time already.
    pub(super) fn open_at(&mut self, now: Time) {
        self.start.get_or_insert(now);
    }

    /// Smoothed; none before the first sample.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt.smoothed.unwrap_or_default()
    }

    /// What the others of a coupled connection take into account; nothing before it carries data.
    pub(super) fn share(&self) -> Option<Share> {
        let rtt = self.rtt.smoothed.filter(|_| self.is_open())?;
        Some(Share {
            window_pkts: self.window.pkts().max(1.0),
            rtt_seconds: rtt.as_secs_f64().max(1e-6),
            unlost_pkts: self.unlost_pkts.max(self.unlost_before_pkts) as f64,
        })
    }

    /// Numbers in the connection of what it holds and cannot say to have arrived.
    pub(super) fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.sent.iter().filter(|sent| sent.place != Place::Arrived).map(|sent| sent.data)
    }

    /// True if the retransmission timer has run out.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        self.pace_at = self.pace_at.filter(|at| *at > now);
        if self.timeout_at.is_none_or(|at| at > now) {
            return false;
        }
        self.timeout_at = None;
        match self.phase {
            Phase::Waiting => {}
            Phase::Connecting => {
                self.phase = Phase::Waiting;
                self.backoff += 1;
                self.stats.handshake_timeouts += 1;
            }
            Phase::Open => self.on_timeout(now),
        }
        self.phase == Phase::Open
    }

    pub(super) fn handle(&mut self, now: Time, segment: &Segment, coupled: Option<Coupled>) {
        match (segment.kind, self.phase) {
            (Kind::SynAck, Phase::Connecting) => {
                self.phase = Phase::Open;
                self.timeout_at = None;
                self.backoff = 0;
                self.rtt.on_sample(now - segment.echo);
            }
            (Kind::Ack, Phase::Open) => self.on_ack(now, segment, coupled),
            _ => {}
        }
    }

    /// `may_take`: whether it takes packets from the supply that it has not sent before.
    pub(super) fn poll_transmit(&mut self, now: Time, supply: &mut Supply, may_take: bool) -> Option<Transmit<Segment>> {
        match self.phase {
            Phase::Waiting if self.start.is_some_and(|start| now >= start) => {
                self.phase = Phase::Connecting;
                self.timeout_at = Some(now + Duration::from_secs(1) * (1 << self.backoff.min(6)));
                return Some(self.transmit(Segment::new(Kind::Syn, now)));
            }
            Phase::Waiting | Phase::Connecting => return None,
            Phase::Open => {}
        }
        if f64::from(self.in_flight) + 1.0 > self.window.pkts().max(1.0) {
            return None;
        }
        let gap = self.window.gap();
        if gap.is_some() && now < self.next_at {
            self.pace_at = Some(self.next_at);
            return None;
        }
        let (number, data) = self.next_lost().or_else(|| self.next_new(supply, may_take))?;
        self.next_at = self.next_at.max(now) + gap.unwrap_or_default();
        if self.in_flight == 0 {
            (self.flight_start, self.delivered_at) = (now, now);
        }
        let index = (number - self.first) as usize;
        let (delivered, delivered_at, flight_start) = (self.delivered, self.delivered_at, self.flight_start);
        let sent = Sent { at: now, place: Place::InFlight, data, delivered, delivered_at, flight_start };
        if let Some(old) = self.sent.get_mut(index) {
            *old = sent;
            self.resent.push_back((number, now));
            self.stats.resent_pkts += 1;
            if number == self.first {
                self.timeout_at = None;
            }
        } else {
            self.sent.push_back(sent);
        }
        self.in_flight += 1;
        self.stats.sent_pkts += 1;
        self.timeout_at.get_or_insert(now + self.timeout());
        Some(self.transmit(Segment { number, data, ect: self.config.ecn, ..Segment::new(Kind::Data, now) }))
    }

    fn transmit(&self, packet: Segment) -> Transmit<Segment> {
        let packet = Segment { subflow: self.subflow, ..packet };
        Transmit { to: self.peer, way: 0, packet, bytes: packet.bytes(self.config.payload) }
    }

    fn end(&self) -> u32 {
        self.first + self.sent.len() as u32
    }

    /// Its number in the subflow, and in the connection.
    fn next_lost(&mut self) -> Option<(u32, u32)> {
        while let Some(number) = self.lost.pop_front() {
            let sent = number.checked_sub(self.first).and_then(|index| self.sent.get(index as usize));
            if let Some(sent) = sent.filter(|sent| sent.place == Place::Lost) {
                return Some((number, sent.data));
            }
        }
        None
    }

    fn next_new(&self, supply: &mut Supply, may_take: bool) -> Option<(u32, u32)> {
        let room = may_take && (self.sent.len() as u32) < self.config.max_window_pkts;
        Some((self.end(), room.then(|| supply.take())??))
    }

    fn timeout(&self) -> Duration {
        let plain = self.rtt.timeout(self.config.min_timeout);
        (plain * (1 << self.backoff.min(10))).min(MAX_TIMEOUT)
    }

    fn on_ack(&mut self, now: Time, ack: &Segment, coupled: Option<Coupled>) {
        let full = f64::from(self.in_flight) + 1.0 > self.window.pkts() || self.window.in_slow_start();
        let used = full && f64::from(self.in_flight) * 2.0 >= self.window.pkts();
        let mut arrived_pkts = 0;
        (self.newest, self.newly_lost) = (None, 0);
        let advanced = ack.acknowledged > self.first;
        if advanced {
            arrived_pkts += self.acknowledge(ack.acknowledged);
            self.backoff = 0;
            let rtt = now - ack.echo;
            self.rtt.on_sample(rtt);
            let round_start = self.first > self.round_end;
            if round_start {
                self.round_end = self.end();
            }
            self.window.on_rtt(now, rtt, round_start);
            self.timeout_at = (!self.sent.is_empty()).then(|| now + self.timeout());
        }
        for (start, end) in ack.sacked {
            arrived_pkts += self.note_sacked(start.max(self.first), end.min(self.end()));
        }
        self.unlost_pkts += u64::from(arrived_pkts);
        self.find_lost();
        self.find_lost_again();
        if self.recovery.is_some_and(|recovery| self.first >= recovery.end) {
            self.recovery = None;
        }
        if !self.lost.is_empty() && self.recovery.is_none() {
            self.recovery = Some(Recovery { end: self.end(), after_timeout: false });
            self.cut(coupled);
        }
        if ack.ece && self.recovery.is_none() && self.first >= self.cut_end {
            self.cut(coupled);
        }
        if self.on_rate(now, advanced.then(|| now - ack.echo), arrived_pkts) {
            return;
        }
        let growing = self.recovery.is_none_or(|recovery| recovery.after_timeout);
        if growing && used && arrived_pkts > 0 {
            self.window.on_ack(now, f64::from(arrived_pkts), self.rtt(), coupled);
        }
    }

    /// Whether the rate decides and not the window: then this is all there is to do.
    fn on_rate(&mut self, now: Time, rtt: Option<Duration>, arrived_pkts: u32) -> bool {
        self.delivered += u64::from(arrived_pkts);
        let rate = self.newest.map(|newest| {
            let took = now.since(newest.delivered_at).max(newest.at.since(newest.flight_start));
            let arrived = self.delivered - newest.delivered;
            self.flight_start = newest.at;
            (arrived as f64 / took.as_secs_f64().max(1e-6), newest.delivered)
        });
        if arrived_pkts > 0 {
            self.delivered_at = now;
        }
        self.window.on_rate(&BbrAck {
            now,
            rtt,
            arrived_pkts,
            lost_pkts: self.newly_lost,
            in_flight: self.in_flight,
            delivered: self.delivered,
            rate,
            recovering: self.recovery.is_some(),
        })
    }

    fn cut(&mut self, coupled: Option<Coupled>) {
        self.cut_end = self.end();
        self.window.on_loss(coupled);
        self.unlost_before_pkts = std::mem::take(&mut self.unlost_pkts);
        self.stats.cuts += 1;
    }

    /// All below a number have arrived; gives how many of them that is news of.
    fn acknowledge(&mut self, below: u32) -> u32 {
        let mut news = 0;
        while self.first < below {
            let Some(sent) = self.sent.pop_front() else { break };
            self.first += 1;
            if sent.place != Place::Arrived {
                news += 1;
                self.in_flight -= u32::from(sent.place == Place::InFlight);
                self.newest_arrived = self.newest_arrived.max(sent.at);
                note_newest(&mut self.newest, sent);
            }
        }
        self.sacked.remove_below(self.first.into());
        self.judged = self.judged.max(self.first);
        news
    }

    fn note_sacked(&mut self, start: u32, end: u32) -> u32 {
        if start >= end {
            return 0;
        }
        let mut news = 0;
        let Self { sent, first, in_flight, newest_arrived, newest, .. } = self;
        self.sacked.insert_telling(start.into()..end.into(), |fresh| {
            for number in fresh {
                let Some(sent) = sent.get_mut((number - u64::from(*first)) as usize) else { continue };
                *in_flight -= u32::from(sent.place == Place::InFlight);
                *newest_arrived = (*newest_arrived).max(sent.at);
                note_newest(newest, *sent);
                sent.place = Place::Arrived;
                news += 1;
            }
        });
        news
    }

    /// RFC 6675 4, IsLost: three that left later have arrived.
    fn find_lost(&mut self) {
        let Some(below) = self.sacked.nth_largest(self.reordering_pkts.into()) else { return };
        while u64::from(self.judged) < below {
            let number = self.judged;
            self.judged += 1;
            self.lose(number);
        }
    }

    /// RFC 8985 6.2, step 5: something that left a reordering window after the retransmission has arrived.
    fn find_lost_again(&mut self) {
        let window = self.rtt.least.unwrap_or_default() / 4;
        while let Some(&(number, at)) = self.resent.front() {
            let index = number.checked_sub(self.first).map(|index| index as usize);
            let there =
                index.and_then(|index| self.sent.get(index)).is_some_and(|sent| sent.at == at && sent.place == Place::InFlight);
            if there && at + window >= self.newest_arrived {
                return;
            }
            self.resent.pop_front();
            if there {
                self.lose(number);
            }
        }
    }

    fn lose(&mut self, number: u32) {
        let Some(sent) = number.checked_sub(self.first).and_then(|index| self.sent.get_mut(index as usize)) else { return };
        if sent.place == Place::InFlight {
            sent.place = Place::Lost;
            self.in_flight -= 1;
            self.newly_lost += 1;
            self.lost.push_back(number);
        }
    }

    /// RFC 5681 3.1, RFC 6298 5: all is lost, and starts again slowly.
    fn on_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        self.unlost_before_pkts = std::mem::take(&mut self.unlost_pkts);
        let first = self.backoff == 0;
        self.backoff += 1;
        self.window.on_timeout(first);
        self.recovery = Some(Recovery { end: self.end(), after_timeout: true });
        self.judged = self.end();
        self.cut_end = self.end();
        self.resent.clear();
        self.lost.clear();
        self.in_flight = 0;
        for (index, sent) in self.sent.iter_mut().enumerate() {
            if sent.place != Place::Arrived {
                sent.place = Place::Lost;
                self.lost.push_back(self.first + index as u32);
            }
        }
        self.timeout_at = Some(now + self.timeout());
    }
}

/// The packet that left last tells the newest rate.
fn note_newest(newest: &mut Option<Sent>, sent: Sent) {
    if newest.is_none_or(|newest| newest.at <= sent.at) {
        *newest = Some(sent);
    }
}

impl Rtt {
    fn on_sample(&mut self, rtt: Duration) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(rtt), rtt / 2);
            return;
        };
        self.variation = self.variation * 3 / 4 + smoothed.abs_diff(rtt) / 4;
        self.smoothed = Some(smoothed * 7 / 8 + rtt / 8);
    }

    /// The minimum is that of the variation's part, as in Linux: where the delay is steady the timeout must not be the round-trip time.
    fn timeout(&self, least: Duration) -> Duration {
        self.smoothed.map_or(Duration::from_secs(1), |smoothed| smoothed + (self.variation * 4).max(least))
    }
}

const DUPLICATE_THRESHOLD: u32 = 3;
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
