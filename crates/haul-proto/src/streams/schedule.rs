//! Which stream sends next: by priority, equals in turn.

use std::collections::VecDeque;

use crate::wire::StreamId;

/// Streams with something to send.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Highest priority first; empty queues stay, there are few priorities.
    queues: Vec<(u8, VecDeque<StreamId>)>,
}

impl Schedule {
    /// Adds a stream behind the others of its priority.
    pub fn push(&mut self, priority: u8, id: StreamId) {
        let index = match self.queues.binary_search_by(|(other, _)| priority.cmp(other)) {
            Ok(index) => index,
            Err(index) => {
                self.queues.insert(index, (priority, VecDeque::new()));
                index
            }
        };
        self.queues[index].1.push_back(id);
    }

    /// Takes the next stream out.
    pub fn pop(&mut self) -> Option<StreamId> {
        self.queues.iter_mut().find_map(|(_, queue)| queue.pop_front())
    }

    /// Who waits.
    pub fn iter(&self) -> impl Iterator<Item = &StreamId> {
        self.queues.iter().flat_map(|(_, queue)| queue)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(|(_, queue)| queue.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_first_equals_in_turn() {
        let mut schedule = Schedule::default();
        for (priority, id) in [(128, 1), (128, 2), (200, 3), (1, 4)] {
            schedule.push(priority, StreamId(id));
        }
        let order: Vec<u32> = std::iter::from_fn(|| schedule.pop()).map(|id| id.0).collect();
        assert_eq!(order, [3, 1, 2, 4]);
        assert!(schedule.is_empty());
    }
}
