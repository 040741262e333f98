//! Ends whose threads lose the processor: for some milliseconds they neither send nor receive, and then do all at once.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::{StreamKind, TransportConfig};
use haul_scenarios::{Haul, Kind};
use haul_sim::{Delivered, Endpoint, EndpointId, Flow, FlowEnd, Path, Plan, Queue, Rng, Topology, Transmit};
use haul_units::{BitRate, Bytes, Time};

use crate::golden::seed;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// An end that stands still now and then.
struct Stalling {
    end: Haul,
    rng: Rng,
    /// The next stall, or the one it is in.
    from: Time,
    to: Time,
    waiting: VecDeque<(EndpointId, Delivered<<Haul as Endpoint>::Packet>)>,
}

impl Stalling {
    fn new(end: Haul, seed: u64) -> Self {
        let mut new = Self { end, rng: Rng::new(seed), from: Time::ZERO, to: Time::ZERO, waiting: VecDeque::new() };
        new.plan(Time::ZERO);
        new
    }

    /// Every 100 ms on average, for 1 to 20 ms.
    fn plan(&mut self, now: Time) {
        self.from = now + ms(200).mul_f64(self.rng.unit());
        self.to = self.from + ms(1) + ms(19).mul_f64(self.rng.unit());
    }

    fn is_still(&self, now: Time) -> bool {
        (self.from..self.to).contains(&now)
    }

    /// Does what has waited.
    fn wake(&mut self, now: Time) {
        while let Some((from, delivered)) = self.waiting.pop_front() {
            self.end.handle(now, from, delivered);
        }
        while self.to <= now {
            self.plan(self.to);
        }
    }
}

impl Endpoint for Stalling {
    type Packet = <Haul as Endpoint>::Packet;

    fn handle(&mut self, now: Time, from: EndpointId, delivered: Delivered<Self::Packet>) {
        if self.is_still(now) {
            self.waiting.push_back((from, delivered));
        } else {
            self.wake(now);
            self.end.handle(now, from, delivered);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if !self.is_still(now) {
            self.wake(now);
            self.end.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Self::Packet>> {
        if self.is_still(now) { None } else { self.end.poll_transmit(now) }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let inner = self.end.poll_timeout();
        let due = if self.waiting.is_empty() { inner } else { Some(inner.map_or(self.to, |at| at.min(self.to))) };
        due.map(|at| if self.is_still(at) { self.to } else { at })
    }

    fn ecn_capable(packet: &Self::Packet) -> bool {
        Haul::ecn_capable(packet)
    }
}

impl FlowEnd for Stalling {
    fn received(&self) -> Bytes {
        self.end.received()
    }

    fn completed_at(&self) -> Option<Time> {
        self.end.completed_at()
    }
}

#[test]
fn ends_that_stand_still_do_not_slow_it_down() {
    let mut missed = Vec::new();
    for choice in [ControllerChoice::Fair, ControllerChoice::Modest, ControllerChoice::Aggressive] {
        for (rate, rtt) in [(BitRate::mbps(200), ms(10)), (BitRate::mbps(100), ms(100))] {
            let path = Path::new(rate, rtt).queue(Queue::Bytes(rate.bytes_in(rtt.max(ms(25)))));
            let plan = Plan {
                name: "stalls",
                seed: seed(1),
                topology: Topology::Dumbbell { pairs: 1, path },
                flows: Cow::Owned(vec![Flow::endless(Kind::Haul(choice), 0, 1)]),
                length: Duration::from_secs(8),
                checks: &[],
            };
            let outcome = plan.run(|flow| {
                let (sender, receiver) =
                    Haul::pair(flow, TransportConfig { controller: choice, ..TransportConfig::default() }, StreamKind::Placed);
                (Stalling::new(sender, flow.seed), Stalling::new(receiver, flow.seed + 1))
            });
            println!("{choice} {rate} {rtt:?}: {:.3} used, dropped {:.4}", outcome.utilisation, outcome.dropped);
            // A tenth of the time each end stands still, and what was not sent then is not sent in a burst after it.
            let least = if choice == ControllerChoice::Modest { 0.85 } else { 0.9 };
            if outcome.utilisation < least {
                missed.push(format!("{choice} {rate} {rtt:?}: {:.3} used", outcome.utilisation));
            }
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}
