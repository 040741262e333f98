//! Who wants to be called when.
//!
//! A heap with at most one valid entry for each item. An earlier time replaces a later one; a later time waits behind the entry that is
//! there, whose owner is called early and asked again. Out-of-date entries are skipped when they come up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use haul_units::Time;

/// Times for items 0, 1, 2, ..
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// The valid entry of each item; never: none.
    valid: Vec<Time>,
}

impl Agenda {
    /// Makes room for so many items.
    pub(crate) fn grow(&mut self, items: usize) {
        self.valid.resize(items.max(self.valid.len()), Time::NEVER);
    }

    /// The item is due at this time, or a little earlier if that is what was said before.
    pub(crate) fn put(&mut self, item: usize, at: Option<Time>) {
        let Some(at) = at.filter(|at| *at < self.valid[item]) else { return };
        self.valid[item] = at;
        self.heap.push(Reverse((at, item as u32)));
    }

    /// When the next item is due.
    pub(crate) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Takes the next item that is due by `now`. It has no entry from here on.
    pub(crate) fn due(&mut self, now: Time) -> Option<usize> {
        while self.next() <= now {
            let Reverse((at, item)) = self.heap.pop()?;
            let item = item as usize;
            if self.valid[item] == at {
                self.valid[item] = Time::NEVER;
                return Some(item);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_times_replace_later_ones_and_order_is_by_time_then_number() {
        let mut agenda = Agenda::default();
        agenda.grow(3);
        agenda.put(2, Some(Time::from_nanos(5)));
        agenda.put(0, Some(Time::from_nanos(9)));
        agenda.put(1, Some(Time::from_nanos(5)));
        agenda.put(0, Some(Time::from_nanos(3)));
        agenda.put(1, Some(Time::from_nanos(7)));
        let due: Vec<usize> = std::iter::from_fn(|| agenda.due(Time::from_nanos(6))).collect();
        assert_eq!(due, [0, 1, 2]);
        assert_eq!(agenda.due(Time::NEVER), None, "the old entry of 0 is out of date");
        agenda.put(0, Some(Time::from_nanos(10)));
        assert_eq!(agenda.next(), Time::from_nanos(10));
    }
}
