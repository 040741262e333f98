//! What a link that plays in real time needs besides: a look at the next packet, and other settings while packets are inside.

use haul_units::Time;

use super::{Jitter, Link};
use crate::LinkConfig;
use crate::config::LossState;

impl<P: Clone> Link<P> {
    /// The packet that [`Self::next_event`] speaks of. It may yet be lost, if it has not left the queue.
    pub fn next_packet(&self) -> Option<&P> {
        let arrival = match (self.travelling.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => Some(if b.before(a) { b } else { a }),
            (a, b) => a.or(b),
        };
        let head = self.waiting.front();
        match (arrival, head) {
            (Some(arrival), Some(head)) => {
                let head_first = self.head_leaves + self.config.delay < arrival.at;
                Some(if head_first { &head.packet } else { &arrival.packet })
            }
            (Some(arrival), None) => Some(&arrival.packet),
            (None, head) => head.map(|head| &head.packet),
        }
    }

    /// Gives the link other properties, its seed excepted. What has left the queue arrives as it was to; a queue that holds more than
    /// its new bound keeps it.
    pub fn reconfigure(&mut self, now: Time, config: LinkConfig) {
        self.set_rate(now, config.rate);
        if config.loss != self.config.loss {
            self.loss = LossState::new(config.loss);
        }
        if config.jitter != self.config.jitter {
            self.jitter = Jitter::new(config.jitter);
        }
        self.config = LinkConfig { seed: self.config.seed, ..config };
    }
}
