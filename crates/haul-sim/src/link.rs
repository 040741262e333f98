//! One direction of a link, in virtual time.
//!
//! Packets wait in a queue, leave it one after the other at the link's rate, and then travel. Nothing happens by itself: every call
//! brings the link up to the time given, which must not go back. The cost of a packet is constant, with reordering logarithmic.
//! Invariants: `sent + duplicated = delivered + dropped + lost + waiting + travelling`; the queue never holds more than its bound.

mod live;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::bucket::Tokens;
use crate::config::LossState;
use crate::discipline::{CoDelState, RedState};
use crate::{Change, Discipline, LinkConfig, LossModel, Rng};

/// One direction of a link, carrying packets of type `P`.
#[derive(Debug, Clone)]
pub struct Link<P> {
    config: LinkConfig,
    rng: Rng,
    loss: LossState,
    jitter: Jitter,
    red: RedState,
    codel: CoDelState,
    policer: Option<Tokens>,
    shaper: Option<Tokens>,
    down: bool,
    /// Changes to come, the next one first.
    changes: VecDeque<(Time, Change)>,
    next_change: Time,
    waiting: VecDeque<Waiting<P>>,
    waiting_bytes: Bytes,
    /// When the first packet waiting has left; when the last one did while none waits.
    head_leaves: Time,
    /// What the last departure fell short of a whole nanosecond, in units of 1/rate: keeps the rate exact.
    remainder: u128,
    /// On the way in order of arrival, and those that arrive out of it.
    travelling: VecDeque<Travelling<P>>,
    out_of_order: BinaryHeap<Travelling<P>>,
    sequence: u64,
    stats: LinkStats,
}

/// What became of a packet that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the queue.
    Queued,
    /// The queue was full.
    Dropped,
}

/// A packet that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered<P> {
    /// The packet.
    pub packet: P,
    /// When it arrived; never after the `now` of the call.
    pub at: Time,
    /// The queue marked it.
    pub ce: bool,
    /// Its bytes changed on the way: the caller decides which.
    pub corrupted: bool,
}

/// What a link has done so far, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Handed to the link.
    pub sent_pkts: u64,
    /// Taken from it.
    pub delivered_pkts: u64,
    /// Dropped before the wire: by a full queue, a queue discipline or the policer.
    pub dropped_pkts: u64,
    /// Of these, by RED or CoDel.
    pub early_dropped_pkts: u64,
    /// Of these, by the policer.
    pub policed_pkts: u64,
    /// Lost on the wire.
    pub lost_pkts: u64,
    /// Made twice.
    pub duplicated_pkts: u64,
    /// Marked by the queue.
    pub marked_pkts: u64,
    /// Largest filling of the queue.
    pub max_queued: Bytes,
    /// What has left the queue for the wire.
    pub carried: Bytes,
}

#[derive(Debug, Clone)]
struct Waiting<P> {
    packet: P,
    since: Time,
    bytes: u32,
    ce: bool,
    ect: bool,
}

#[derive(Debug, Clone)]
struct Travelling<P> {
    at: Time,
    /// Order of departure, for packets that arrive at the same instant.
    sequence: u64,
    packet: P,
    ce: bool,
    corrupted: bool,
}

impl<P: Clone> Link<P> {
    /// An empty link.
    pub fn new(config: LinkConfig) -> Self {
        Self {
            rng: Rng::new(config.seed),
            loss: LossState::new(config.loss),
            jitter: Jitter::new(config.jitter),
            red: RedState::default(),
            codel: CoDelState::default(),
            policer: config.policer.map(Tokens::new),
            shaper: config.shaper.map(Tokens::new),
            down: false,
            changes: VecDeque::new(),
            next_change: Time::NEVER,
            config,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            head_leaves: Time::ZERO,
            remainder: 0,
            travelling: VecDeque::new(),
            out_of_order: BinaryHeap::new(),
            sequence: 0,
            stats: LinkStats::default(),
        }
    }

    /// Hands over a packet that takes `bytes` on the wire (below 4 GiB). The queue may mark it.
    pub fn send(&mut self, now: Time, packet: P, bytes: Bytes) -> Verdict {
        self.send_ecn(now, packet, bytes, true)
    }

    /// Like [`Self::send`]; `ect`: the packet can be marked. One that cannot is dropped where a discipline would mark it (RFC 3168 5).
    pub fn send_ecn(&mut self, now: Time, packet: P, bytes: Bytes, ect: bool) -> Verdict {
        self.advance(now);
        self.stats.sent_pkts += 1;
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(now, bytes)) {
            self.stats.policed_pkts += 1;
            return self.drop_arrival();
        }
        let mut ce = ect && self.config.ecn_threshold.is_some_and(|threshold| self.waiting_bytes > threshold);
        if let Discipline::Red(red) = self.config.discipline {
            let idle = if self.waiting.is_empty() { now.since(self.head_leaves) } else { Duration::ZERO };
            if self.red.hits(&red, self.waiting_bytes, idle, self.config.rate, &mut self.rng) {
                if !(red.ecn && ect) {
                    self.stats.early_dropped_pkts += 1;
                    return self.drop_arrival();
                }
                ce = true;
            }
        }
        if self.waiting_bytes + bytes > self.config.queue && self.config.rate != BitRate::MAX {
            return self.drop_arrival();
        }
        self.stats.marked_pkts += u64::from(ce);
        self.waiting_bytes += bytes;
        self.stats.max_queued = self.stats.max_queued.max(self.waiting_bytes);
        let bytes = u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX);
        self.waiting.push_back(Waiting { packet, since: now, bytes, ce, ect });
        if self.waiting.len() == 1 {
            self.remainder = 0;
            self.head_leaves = now;
            self.serve_head();
            self.depart(now);
        }
        Verdict::Queued
    }

    fn drop_arrival(&mut self) -> Verdict {
        self.stats.dropped_pkts += 1;
        Verdict::Dropped
    }

    /// When to call [`Self::pop`] next: an arrival, or the earliest one possible. None while the link is empty.
    pub fn next_event(&self) -> Option<Time> {
        let arrival = match (self.travelling.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => Some(a.at.min(b.at)),
            (a, b) => a.or(b).map(|packet| packet.at),
        };
        let head = (!self.waiting.is_empty()).then(|| self.head_leaves + self.config.delay);
        let next = match (arrival, head) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        // What waits may leave earlier after a change; what travels is not concerned.
        Some(if self.waiting.is_empty() { next } else { next.min(self.next_change) })
    }

    /// Takes the next packet that has arrived by `now`, in order of arrival.
    pub fn pop(&mut self, now: Time) -> Option<Delivered<P>> {
        self.advance(now);
        let from_heap = match (self.travelling.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => b.before(a),
            (a, _) => a.is_none(),
        };
        let next = if from_heap { self.out_of_order.peek() } else { self.travelling.front() };
        if next?.at > now {
            return None;
        }
        let packet = if from_heap { self.out_of_order.pop() } else { self.travelling.pop_front() }?;
        self.stats.delivered_pkts += 1;
        Some(Delivered { packet: packet.packet, at: packet.at, ce: packet.ce, corrupted: packet.corrupted })
    }

    /// Bytes in the queue at `now`, the packet being sent included.
    pub fn queued(&mut self, now: Time) -> Bytes {
        self.advance(now);
        self.waiting_bytes
    }

    /// How long a packet sent at `now` would wait before its own transmission starts.
    pub fn queue_delay(&mut self, now: Time) -> Duration {
        self.advance(now);
        let Some(head) = self.waiting.front() else { return Duration::ZERO };
        let behind = self.waiting_bytes.saturating_sub(Bytes(u64::from(head.bytes)));
        let on_wire = self.config.rate.time_for(behind);
        self.head_leaves.since(now)
            + self.shaper.as_ref().map_or(on_wire, |shaper| shaper.wait(self.head_leaves, behind).max(on_wire))
    }

    /// Packets waiting and travelling.
    pub fn inside_pkts(&self) -> u64 {
        (self.waiting.len() + self.travelling.len() + self.out_of_order.len()) as u64
    }

    /// What has happened so far.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// The link as it is at this point.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Changes to come, each at its time; in addition to those already known. The link makes them itself.
    pub fn schedule(&mut self, changes: impl IntoIterator<Item = (Time, Change)>) {
        self.changes.extend(changes);
        self.changes.make_contiguous().sort_by_key(|(at, _)| *at);
        self.next_change = self.changes.front().map_or(Time::NEVER, |(at, _)| *at);
    }

    /// Changes the link at this point.
    pub fn change(&mut self, now: Time, change: Change) {
        self.advance(now);
        self.apply(now, change);
    }

    /// Changes the rate; the packet being sent is started again, and takes its tokens of a shaper once more.
    pub fn set_rate(&mut self, now: Time, rate: BitRate) {
        self.change(now, Change::Rate(rate));
    }

    /// Changes the propagation delay of packets that have not left the queue yet. A shorter one lets them overtake.
    pub fn set_delay(&mut self, now: Time, delay: Duration) {
        self.change(now, Change::Delay(delay));
    }

    /// Changes the loss on the wire.
    pub fn set_loss(&mut self, now: Time, loss: LossModel) {
        self.change(now, Change::Loss(loss));
    }

    fn apply(&mut self, now: Time, change: Change) {
        match change {
            Change::Rate(rate) => {
                self.config.rate = rate;
                if !self.waiting.is_empty() {
                    self.remainder = 0;
                    self.head_leaves = now;
                    self.start_head();
                    self.depart(now);
                }
            }
            Change::Delay(delay) => self.config.delay = delay,
            Change::Jitter(jitter) => {
                self.config.jitter = jitter;
                self.jitter = Jitter::new(jitter);
            }
            Change::Loss(loss) => {
                self.config.loss = loss;
                self.loss = LossState::new(loss);
            }
            Change::Queue(queue) => self.config.queue = queue,
            Change::Down => self.down = true,
            Change::Up => self.down = false,
        }
    }

    /// Brings the link up to `now`, with the changes due on the way.
    fn advance(&mut self, now: Time) {
        while self.next_change <= now {
            let Some((at, change)) = self.changes.pop_front() else { break };
            self.depart(at);
            self.apply(at, change);
            self.next_change = self.changes.front().map_or(Time::NEVER, |(at, _)| *at);
        }
        self.depart(now);
    }

    /// Moves what has left the queue by `now` onto the wire.
    fn depart(&mut self, now: Time) {
        while self.head_leaves <= now {
            let Some(head) = self.waiting.pop_front() else { return };
            let bytes = Bytes(u64::from(head.bytes));
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
            self.stats.carried += bytes;
            let left = self.head_leaves;
            self.serve_head();
            self.launch(left, head);
        }
    }

    /// Lets CoDel judge who may go next, and starts it.
    fn serve_head(&mut self) {
        if let Discipline::CoDel(codel) = self.config.discipline {
            while let Some(head) = self.waiting.front_mut() {
                let behind = self.waiting_bytes.saturating_sub(Bytes(u64::from(head.bytes)));
                if !self.codel.hits(&codel, self.head_leaves, self.head_leaves.since(head.since), behind) {
                    break;
                }
                if codel.ecn && head.ect {
                    self.stats.marked_pkts += u64::from(!head.ce);
                    head.ce = true;
                    break;
                }
                self.waiting.pop_front();
                self.waiting_bytes = behind;
                self.stats.dropped_pkts += 1;
                self.stats.early_dropped_pkts += 1;
            }
        }
        self.start_head();
    }

    /// Starts the transmission of the first packet waiting at `head_leaves`, where its predecessor left.
    fn start_head(&mut self) {
        let Some(head) = self.waiting.front() else { return };
        let rate = u128::from(self.config.rate.as_bps());
        if rate == 0 {
            self.head_leaves = Time::NEVER;
            return;
        }
        if let Some(shaper) = &mut self.shaper {
            let from = shaper.take(self.head_leaves, Bytes(u64::from(head.bytes)));
            if from > self.head_leaves {
                (self.head_leaves, self.remainder) = (from, 0);
            }
        }
        let bit_nanos = u128::from(head.bytes) * 8_000_000_000 + self.remainder;
        self.remainder = bit_nanos % rate;
        self.head_leaves += Duration::from_nanos(u64::try_from(bit_nanos / rate).unwrap_or(u64::MAX));
    }

    fn launch(&mut self, left: Time, head: Waiting<P>) {
        if self.loss.next(&mut self.rng) || self.down {
            self.stats.lost_pkts += 1;
            return;
        }
        let mut at = left + self.config.delay + self.jitter.at(left, &mut self.rng);
        let late = self.rng.chance(self.config.reorder.ratio);
        if late {
            at += self.config.reorder.extra;
        }
        if self.rng.chance(self.config.duplicate) {
            self.stats.duplicated_pkts += 1;
            let corrupted = self.rng.chance(self.config.corrupt);
            self.enqueue(Travelling { at, sequence: 0, packet: head.packet.clone(), ce: head.ce, corrupted }, late);
        }
        let corrupted = self.rng.chance(self.config.corrupt);
        self.enqueue(Travelling { at, sequence: 0, packet: head.packet, ce: head.ce, corrupted }, late);
    }

    fn enqueue(&mut self, mut packet: Travelling<P>, late: bool) {
        self.sequence += 1;
        packet.sequence = self.sequence;
        // A late packet goes into the heap: at the end of the deque it would send all that follow there.
        if !late && self.travelling.back().is_none_or(|last| last.at <= packet.at) {
            self.travelling.push_back(packet);
        } else {
            self.out_of_order.push(packet);
        }
    }
}

impl<P> Travelling<P> {
    fn before(&self, other: &Self) -> bool {
        (self.at, self.sequence) < (other.at, other.sequence)
    }
}

impl<P> Ord for Travelling<P> {
    /// Reversed: the heap gives the earliest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<P> PartialOrd for Travelling<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Travelling<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Travelling<P> {}

/// Delay that wanders between zero and an amplitude, straight from one random height to the next.
///
/// A stretch lasts longer than the amplitude, so the delay falls by less than time passes and packets keep their order.
#[derive(Debug, Clone)]
struct Jitter {
    amplitude: Duration,
    from: (Time, Duration),
    to: (Time, Duration),
}

impl Jitter {
    fn new(amplitude: Duration) -> Self {
        Self { amplitude, from: (Time::ZERO, Duration::ZERO), to: (Time::ZERO, Duration::ZERO) }
    }

    fn at(&mut self, now: Time, rng: &mut Rng) -> Duration {
        if self.amplitude.is_zero() {
            return Duration::ZERO;
        }
        let stretch = self.amplitude * 5 / 4;
        while now > self.to.0 {
            let start = self.to.0.max(now.before(stretch));
            self.from = (start, self.to.1);
            let height = Duration::from_nanos(rng.below(self.amplitude.as_nanos() as u64));
            self.to = (start + stretch, height);
        }
        let part = now.since(self.from.0).as_secs_f64() / stretch.as_secs_f64();
        let (from, to) = (self.from.1.as_secs_f64(), self.to.1.as_secs_f64());
        Duration::from_secs_f64((from + (to - from) * part).max(0.0))
    }
}
