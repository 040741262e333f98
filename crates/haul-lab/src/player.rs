//! A link that is offered super-packets and gives their packets back in runs.
//!
//! Each packet goes through the link on its own: it queues, is lost, is late, on its own. What comes out in the order in which it went in is
//! put together again: a [`Run`] is as many consecutive segments of one super-packet as nothing happened to. A run waits for more of
//! its packets for [`LONGEST_HOLD`] at most, which bounds the delay that this adds. Knows no clock.

use std::time::Duration;

use haul_sim::{Delivered, Link, LinkConfig, LinkStats, Verdict};
use haul_units::{BitRate, Bytes, Time};

use crate::packet::{Layout, Which};
use crate::store::Segment;

/// The link and the run that is being put together.
#[derive(Debug)]
pub struct Player {
    link: Link<Segment>,
    open: Option<Run>,
    offered: Bytes,
    delivered: Bytes,
}

/// Consecutive segments of one packet that have arrived.
#[derive(Debug, Clone)]
pub struct Run {
    /// The first of them.
    pub first: Segment,
    /// How many.
    pub count: u16,
    /// The queue marked them.
    pub ce: bool,
    /// Their bytes changed on the way; then there is one.
    pub corrupted: bool,
    /// When the first arrived, and the last.
    pub arrived: (Time, Time),
    layout: Layout,
}

/// The longest time for which an arrived packet waits for the next one of its super-packet.
const LONGEST_HOLD: Duration = Duration::from_micros(100);

impl Player {
    /// An empty link.
    pub fn new(config: LinkConfig) -> Self {
        Self { link: Link::new(config), open: None, offered: Bytes::ZERO, delivered: Bytes::ZERO }
    }

    /// Hands over all segments of a packet, of which `first` is the first. Gives the number of the last one that was not dropped at
    /// once, counted from 1.
    pub fn offer(&mut self, now: Time, first: &Segment, layout: &Layout) -> u16 {
        let mut kept = 0;
        for index in 0..layout.segments {
            let bytes = Bytes(layout.link_bytes(index));
            self.offered += bytes;
            if self.link.send(now, first.with_index(index), bytes) == Verdict::Queued {
                kept = index + 1;
            }
        }
        kept
    }

    /// What is due at `now`.
    pub fn next_run(&mut self, now: Time) -> Option<Run> {
        loop {
            if let Some(run) = self.open.take_if(|run| run.is_complete()) {
                return Some(self.give(run));
            }
            let Some(delivered) = self.link.pop(now) else { break };
            match &mut self.open {
                Some(run) if run.takes(&delivered) => run.count += 1,
                open => {
                    let run = open.replace(Run::new(&delivered));
                    if let Some(run) = run {
                        return Some(self.give(run));
                    }
                }
            }
            if let Some(run) = &mut self.open {
                run.arrived.1 = delivered.at;
            }
        }
        let next = self.link.next_event();
        let run = self.open.take_if(|run| {
            let deadline = run.arrived.0 + LONGEST_HOLD;
            now >= deadline || next.is_none_or(|next| next > deadline)
        })?;
        Some(self.give(run))
    }

    /// When to ask for runs again; none while the link is empty. Late enough for a whole super-packet to arrive, if that is soon.
    pub fn wake_at(&self) -> Option<Time> {
        let rate = self.link.config().rate;
        if let Some(run) = &self.open {
            let complete = run.arrived.1 + time_for(&run.layout, run.first.index + run.count, rate);
            let next = self.link.next_event().unwrap_or(complete);
            return Some(complete.max(next).min(run.arrived.0 + LONGEST_HOLD));
        }
        let next = self.link.next_event()?;
        let segment = self.link.next_packet()?;
        let more = time_for(&segment.packet().layout, segment.index + 1, rate);
        Some(next + if more <= LONGEST_HOLD { more } else { LONGEST_HOLD / 2 })
    }

    /// Other properties from now on.
    pub fn reconfigure(&mut self, now: Time, config: LinkConfig) {
        self.link.reconfigure(now, config);
    }

    /// The link's own counts.
    pub fn stats(&self) -> LinkStats {
        self.link.stats()
    }

    /// Bytes offered to the link, and taken from it.
    pub fn bytes(&self) -> (Bytes, Bytes) {
        (self.offered, self.delivered)
    }

    /// Bytes in the queue at `now`, and packets in the link altogether.
    pub fn inside(&mut self, now: Time) -> (Bytes, u64) {
        (self.link.queued(now), self.link.inside_pkts())
    }

    fn give(&mut self, run: Run) -> Run {
        self.delivered += Bytes((0..run.count).map(|n| run.layout.link_bytes(run.first.index + n)).sum());
        run
    }
}

impl Run {
    fn new(delivered: &Delivered<Segment>) -> Self {
        let first = delivered.packet.clone();
        Self {
            layout: first.packet().layout,
            first,
            count: 1,
            ce: delivered.ce,
            corrupted: delivered.corrupted,
            arrived: (delivered.at, delivered.at),
        }
    }

    /// Which segments these are.
    pub fn which(&self) -> Which {
        Which { first: self.first.index, count: self.count, ce: self.ce }
    }

    /// Whether this is the packet as it was sent.
    pub fn is_whole(&self) -> bool {
        self.count == self.layout.segments && !self.ce && !self.corrupted
    }

    fn takes(&self, delivered: &Delivered<Segment>) -> bool {
        delivered.packet.index == self.first.index + self.count
            && delivered.packet.same_packet(&self.first)
            && delivered.ce == self.ce
            && !delivered.corrupted
            && !self.corrupted
    }

    fn is_complete(&self) -> bool {
        self.corrupted || self.first.index + self.count >= self.layout.segments
    }
}

/// How long the segments from `from` on take at a rate.
fn time_for(layout: &Layout, from: u16, rate: BitRate) -> Duration {
    let left = u64::from(layout.segments.saturating_sub(from));
    if rate == BitRate::MAX || left == 0 { Duration::ZERO } else { rate.time_for(Bytes(left * layout.link_bytes(0))) }
}

#[cfg(test)]
mod tests {
    use haul_sim::{LossModel, Reorder};
    use haul_units::Ratio;
    use proptest::prelude::*;

    use super::*;
    use crate::store::{Packet, Store};

    /// What happened to a packet: which one it is, its mark, whether its bytes changed.
    type Fate = (u64, u16, bool, bool);

    fn keep(store: &mut Store, number: u64, layout: Layout) -> Segment {
        let kept = store.keep(|room| {
            room[..8].copy_from_slice(&number.to_be_bytes());
            Ok::<_, ()>(Some((60_000, Packet { layout, to: 0 })))
        });
        kept.unwrap().unwrap().0
    }

    fn number(segment: &Segment) -> u64 {
        segment.with_bytes(|_, bytes| u64::from_be_bytes(bytes[..8].try_into().unwrap()))
    }

    fn config() -> impl Strategy<Value = LinkConfig> {
        let ratio = || prop_oneof![Just(0.0), 0.0..0.2].prop_map(Ratio::new);
        let rate = prop_oneof![Just(10_000), Just(1_000), Just(100)].prop_map(BitRate::mbps);
        ((rate, ratio(), ratio(), ratio(), ratio()), (0u64..3000, 20_000u64..2_000_000, any::<bool>(), any::<u64>())).prop_map(
            |((rate, loss, reorder, duplicate, corrupt), (jitter, queue, marks, seed))| LinkConfig {
                rate,
                delay: Duration::from_millis(3),
                jitter: Duration::from_micros(jitter),
                queue: Bytes(queue),
                loss: LossModel::Random(loss),
                reorder: Reorder { ratio: reorder, extra: Duration::from_micros(200) },
                duplicate,
                corrupt,
                ecn_threshold: marks.then_some(Bytes(queue / 4)),
                seed,
                ..LinkConfig::default()
            },
        )
    }

    proptest! {
        /// The runs are, packet by packet, what the link does to single packets, and none waits for longer than it may.
        #[test]
        fn runs_are_the_packets(config in config(), gaps_us in proptest::collection::vec(0u64..400, 1..60), segments in 1u16..40) {
            let layout = Layout::datagrams(usize::from(segments) * 1472, 1472, 28);
            let mut store = Store::new();
            let mut player = Player::new(config);
            let mut single: Link<(u64, u16)> = Link::new(config);
            let (mut now, mut runs, mut packets) = (Time::ZERO, Vec::new(), Vec::new());
            let mut take = |player: &mut Player, now: Time| {
                while let Some(run) = player.next_run(now) {
                    let late = now.since(run.arrived.0);
                    assert!(late <= LONGEST_HOLD, "{late:?}");
                    let indices = run.first.index..run.first.index + run.count;
                    runs.extend(indices.map(|index| (number(&run.first), index, run.ce, run.corrupted)));
                }
            };
            for (n, gap) in gaps_us.iter().enumerate() {
                let until = now + Duration::from_micros(*gap);
                while let Some(at) = player.wake_at().filter(|at| *at <= until) {
                    now = now.max(at);
                    take(&mut player, now);
                }
                now = until;
                let first = keep(&mut store, n as u64, layout);
                player.offer(now, &first, &layout);
                for index in 0..segments {
                    single.send(now, (n as u64, index), Bytes(layout.link_bytes(index)));
                }
                take(&mut player, now);
            }
            while let Some(at) = player.wake_at() {
                now = now.max(at);
                take(&mut player, now);
            }
            let end = now + Duration::from_secs(10);
            while let Some(packet) = single.pop(end) {
                packets.push((packet.packet.0, packet.packet.1, packet.ce, packet.corrupted));
            }
            let fates: Vec<Fate> = runs;
            prop_assert_eq!(fates, packets);
            prop_assert_eq!(player.stats().delivered_pkts, single.stats().delivered_pkts);
        }
    }

    #[test]
    fn what_nothing_happens_to_stays_whole() {
        let layout = Layout::datagrams(44 * 1472, 1472, 28);
        let mut store = Store::new();
        let mut player = Player::new(LinkConfig { rate: BitRate::gbps(10), queue: Bytes(10_000_000), ..LinkConfig::default() });
        for n in 0..100 {
            let first = keep(&mut store, n, layout);
            player.offer(Time::ZERO, &first, &layout);
        }
        let mut runs = 0;
        while let Some(at) = player.wake_at() {
            while let Some(run) = player.next_run(at) {
                assert!(run.is_whole());
                runs += 1;
            }
        }
        assert_eq!(runs, 100);
    }
}
