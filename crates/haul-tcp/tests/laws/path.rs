//! One bottleneck with a queue, in virtual time: what the laws of the modes do there, packet by packet, with the rate samples that the kernel takes.

use std::collections::{BinaryHeap, VecDeque};

use crate::chance::Chance;
use crate::shim::{self, Ack};

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Fair = 0,
    Modest = 2,
    Aggressive = 3,
    /// The kernel's, to share with.
    Cubic = 100,
}

impl Sender {
    fn law(self) -> u32 {
        if self == Self::Cubic { 0 } else { self as u32 }
    }
}

/// The path, and how long.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate_mbps: u64,
    pub rtt_ms: u64,
    /// Of the bandwidth-delay product, in percent.
    pub queue_percent: u64,
    /// Of a million packets.
    pub loss_ppm: u32,
    pub seconds: u64,
    /// How much later than the one before it each sender begins.
    pub apart_ms: u64,
    pub seed: u64,
}

/// What one sender got.
#[derive(Debug)]
pub struct Outcome {
    /// Of the path's rate, in the second half, in percent.
    pub share: f64,
    /// Packets in the queue that this one's met, on average in the second half, of the bandwidth-delay product, in percent.
    pub queue: f64,
    /// Dropped by the queue, of what was sent, in percent.
    pub dropped: f64,
    pub loss_ppm: u32,
}

const SEGMENT_BYTES: u32 = 1448;
const WIRE_BYTES: u64 = 1500;
const INITIAL_PACKETS: u32 = 10;
/// As src/knobs.rs.
const KNOBS: [u32; 6] = [0, 3_000, 300_000, 50, 86_400, 30];

struct Flow {
    sender: Sender,
    begun: bool,
    state: Vec<u64>,
    in_flight: u32,
    delivered: u32,
    delivered_at: u64,
    first_sent: u64,
    lost: u32,
    smoothed_us: u64,
    next_send_us: f64,
    sent: u64,
    dropped: u64,
    counted: u64,
    queued: f64,
}

/// A packet whose fate its sender hears of.
#[derive(PartialEq, Eq)]
struct Fate {
    at_us: u64,
    flow: usize,
    sent_us: u64,
    delivered: u32,
    delivered_at: u64,
    first_sent: u64,
    lost: bool,
    order: u64,
}

impl Ord for Fate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at_us, other.order).cmp(&(self.at_us, self.order))
    }
}

impl PartialOrd for Fate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Runs all senders together.
pub fn run(path: Path, senders: &[Sender]) -> Vec<Outcome> {
    let service_us = WIRE_BYTES as f64 * 8.0 / path.rate_mbps as f64;
    let bdp = path.rtt_ms as f64 * 1000.0 / service_us;
    let room = (bdp * path.queue_percent as f64 / 100.0).max(2.0);
    let (end, half) = (path.seconds * 1_000_000, path.seconds * 500_000);
    let mut chance = Chance(path.seed | 1);
    let mut fates: BinaryHeap<Fate> = BinaryHeap::new();
    let mut waiting: VecDeque<f64> = VecDeque::new();
    let (mut free_at, mut order) = (0.0_f64, 0_u64);
    let mut flows: Vec<Flow> =
        senders.iter().enumerate().map(|(at, sender)| Flow::new(*sender, at as u64 * path.apart_ms * 1000, &path)).collect();
    let mut now = 0_u64;
    loop {
        let sending = flows.iter().enumerate().filter_map(|(at, flow)| flow.may_send_at(now).map(|when| (when, at))).min();
        let heard = fates.peek().map(|fate| fate.at_us);
        let next = match (sending, heard) {
            (Some((when, at)), heard) if heard.is_none_or(|heard| when < heard) => {
                now = now.max(when);
                while waiting.front().is_some_and(|leaves| *leaves <= now as f64) {
                    waiting.pop_front();
                }
                let length = waiting.len() as f64;
                let full = length >= room;
                let fate = chance.below(1_000_000);
                let lost = full || fate < u64::from(path.loss_ppm);
                if !full {
                    free_at = free_at.max(now as f64) + service_us;
                    waiting.push_back(free_at);
                }
                let flow = &mut flows[at];
                if !flow.begun {
                    flow.begin(now, path.rtt_ms * 1000 + (free_at - now as f64).max(0.0) as u64);
                }
                if now >= half {
                    flow.queued += length;
                    flow.sent += 1;
                    flow.dropped += u64::from(full);
                }
                order += 1;
                // The sender hears of a lost packet by those behind it, about when it would have heard of itself.
                let arrives = free_at.max(now as f64) as u64 + path.rtt_ms * 1000;
                fates.push(flow.send(now, at, arrives, lost, order));
                continue;
            }
            (_, Some(_)) => fates.pop().expect("it was there"),
            _ => break,
        };
        now = next.at_us;
        if now >= end {
            break;
        }
        let flow = &mut flows[next.flow];
        flow.hear(&next, now >= half);
    }
    let sent_in_half = (end - half) as f64 / service_us;
    let outcome = |flow: &Flow| Outcome {
        share: flow.counted as f64 / sent_in_half * 100.0,
        queue: flow.queued / flow.sent.max(1) as f64 / bdp * 100.0,
        dropped: flow.dropped as f64 / flow.sent.max(1) as f64 * 100.0,
        loss_ppm: shim::loss_ppm(flow.state.as_ptr(), KNOBS.as_ptr()),
    };
    flows.iter().map(outcome).collect()
}

impl Flow {
    fn new(sender: Sender, begins_us: u64, path: &Path) -> Self {
        let mut state = vec![0; shim::flow_bytes() as usize / 8];
        shim::begin(state.as_mut_ptr(), sender.law(), INITIAL_PACKETS, path.rtt_ms as u32 * 1000, begins_us, 0);
        Self {
            sender,
            begun: false,
            state,
            in_flight: 0,
            delivered: 0,
            delivered_at: begins_us,
            first_sent: begins_us,
            lost: 0,
            smoothed_us: path.rtt_ms * 1000,
            next_send_us: begins_us as f64,
            sent: 0,
            dropped: 0,
            counted: 0,
            queued: 0.0,
        }
    }

    /// All that it knows of the path is the round trip of its handshake, which waited in the queue of those before it.
    fn begin(&mut self, now: u64, rtt_us: u64) {
        self.begun = true;
        self.smoothed_us = rtt_us;
        shim::begin(self.state.as_mut_ptr(), self.sender.law(), INITIAL_PACKETS, rtt_us as u32, now, 0);
    }

    fn may_send_at(&self, now: u64) -> Option<u64> {
        (self.in_flight < shim::window(self.state.as_ptr())).then(|| now.max(self.next_send_us as u64))
    }

    fn send(&mut self, now: u64, at: usize, arrives: u64, lost: bool, order: u64) -> Fate {
        if self.in_flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
        }
        self.in_flight += 1;
        let pacing = shim::pacing(self.state.as_ptr());
        let apart = if pacing == 0 { 0.0 } else { f64::from(SEGMENT_BYTES) * 1e6 / pacing as f64 };
        self.next_send_us = self.next_send_us.max(now as f64) + apart;
        let (delivered, delivered_at, first_sent) = (self.delivered, self.delivered_at, self.first_sent);
        Fate { at_us: arrives, flow: at, sent_us: now, delivered, delivered_at, first_sent, lost, order }
    }

    fn hear(&mut self, fate: &Fate, counts: bool) {
        let prior_in_flight = self.in_flight;
        self.in_flight -= 1;
        let mut ack = Ack { now_us: fate.at_us, prior_in_flight, delivered: -1, rtt_us: -1, ..Ack::default() };
        if fate.lost {
            self.lost += 1;
        } else {
            self.delivered += 1;
            self.delivered_at = fate.at_us;
            self.counted += u64::from(counts);
            let rtt = fate.at_us - fate.sent_us;
            self.smoothed_us = (self.smoothed_us * 7 + rtt) / 8;
            self.first_sent = fate.sent_us;
            let interval = (fate.at_us - fate.delivered_at).max(fate.sent_us - fate.first_sent);
            ack = Ack {
                delivered: (self.delivered - fate.delivered) as i32,
                interval_us: interval as u32,
                prior_delivered: fate.delivered,
                rtt_us: rtt as i32,
                acked: 1,
                ..ack
            };
        }
        ack.delivered_total = self.delivered;
        ack.lost_total = self.lost;
        ack.in_flight = self.in_flight;
        ack.smoothed_us = self.smoothed_us as u32;
        ack.segment_bytes = SEGMENT_BYTES;
        ack.most = u32::MAX;
        let law = if self.sender == Sender::Cubic { shim::cubic_on_ack } else { shim::on_ack };
        law(self.state.as_mut_ptr(), &raw const ack, KNOBS.as_ptr());
    }
}
