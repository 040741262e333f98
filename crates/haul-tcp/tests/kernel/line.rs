//! A line of a rate and a round-trip time between the kernel and the stage, with a queue that is long enough for all.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::stage::{Flow, Packet, Stage, now};

/// In the order of time.
pub struct Line<'a> {
    stage: &'a Stage<'a>,
    /// From one packet to the next.
    takes: Duration,
    round_trip: Duration,
    /// When it has carried all that it has.
    free: Instant,
    /// Packets that it has not carried yet, by the time at which it has, and whose they are.
    waiting: VecDeque<(Instant, u16)>,
    /// Packets by the time at which the kernel is to hear of their arrival.
    under_way: VecDeque<(Instant, Packet)>,
}

impl<'a> Line<'a> {
    pub fn new(stage: &'a Stage<'a>, packets_a_second: u32, round_trip: Duration) -> Self {
        Self {
            stage,
            takes: Duration::from_secs(1) / packets_a_second,
            round_trip,
            free: now(),
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
        }
    }

    /// Carries until there is no more to do. `come` is told of each packet, and of how many of the same flow wait before it; whether the line loses it.
    pub fn carry(
        &mut self,
        flows: &mut [Flow],
        mut goes_on: impl FnMut(&[Flow]) -> bool,
        mut come: impl FnMut(&Packet, usize) -> bool,
    ) {
        while goes_on(flows) {
            for flow in &mut *flows {
                flow.feed();
            }
            while self.under_way.front().is_some_and(|(due, _)| *due <= now()) {
                let Some((_, packet)) = self.under_way.pop_front() else { break };
                let Some(flow) = flows.iter_mut().find(|flow| flow.port == packet.port) else { continue };
                flow.arrived(&packet);
                self.stage.acknowledge(flow);
            }
            let wait = self.under_way.front().map_or(self.round_trip, |(due, _)| due.saturating_duration_since(now()));
            let Some(packet) = self.stage.next(wait) else { continue };
            if packet.length > 0 {
                self.take(packet, &mut come);
            }
        }
    }

    fn take(&mut self, packet: Packet, come: &mut impl FnMut(&Packet, usize) -> bool) {
        let at = now();
        while self.waiting.front().is_some_and(|(carried, _)| *carried <= at) {
            self.waiting.pop_front();
        }
        let before = self.waiting.iter().filter(|(_, port)| *port == packet.port).count();
        self.free = self.free.max(at) + self.takes;
        self.waiting.push_back((self.free, packet.port));
        if !come(&packet, before) {
            self.under_way.push_back((self.free + self.round_trip, packet));
        }
    }
}
