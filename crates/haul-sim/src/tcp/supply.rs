//! What a connection has still to send, whichever of its subflows takes it.

use std::collections::VecDeque;

/// Numbers of a connection's packets, each given out once, and again where a subflow is stuck with it.
#[derive(Debug)]
pub(super) struct Supply {
    next: u32,
    total: u32,
    /// All below have arrived, on whatever subflow.
    arrived: u32,
    /// Held by a subflow that has timed out.
    again: VecDeque<u32>,
}

impl Supply {
    pub(super) fn new(total_pkts: u32) -> Self {
        Self { next: 0, total: total_pkts, arrived: 0, again: VecDeque::new() }
    }

    /// The next packet to go, first those that are stuck elsewhere.
    pub(super) fn take(&mut self) -> Option<u32> {
        while let Some(number) = self.again.pop_front() {
            if number >= self.arrived {
                return Some(number);
            }
        }
        (self.next < self.total).then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Whether there is something that has not been sent yet.
    pub(super) fn has_more(&self) -> bool {
        self.next < self.total
    }

    /// Packets given out so far, each counted once.
    pub(super) fn given(&self) -> u32 {
        self.next
    }

    /// A subflow that has these cannot deliver them now.
    pub(super) fn stuck(&mut self, numbers: impl Iterator<Item = u32>) {
        let arrived = self.arrived;
        self.again.extend(numbers.filter(|number| *number >= arrived));
    }

    /// All below have arrived.
    pub(super) fn on_arrived(&mut self, below: u32) {
        self.arrived = self.arrived.max(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stuck_goes_first_unless_it_has_arrived() {
        let mut supply = Supply::new(5);
        assert_eq!((supply.take(), supply.take(), supply.take()), (Some(0), Some(1), Some(2)));
        supply.stuck([0, 1, 2].into_iter());
        supply.on_arrived(2);
        assert_eq!((supply.take(), supply.take()), (Some(2), Some(3)));
        assert!(supply.has_more() && supply.given() == 4);
        assert_eq!((supply.take(), supply.take()), (Some(4), None));
    }
}
