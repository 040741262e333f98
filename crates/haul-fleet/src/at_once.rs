//! Asking many at once: some threads, and each takes the next that nobody has asked.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Members that are asked at once, each by a thread that waits a round trip or a little longer.
pub const MEMBERS_AT_ONCE: usize = 128;

/// Asks each, `most` at a time; the answers, in their order. None where asking has panicked.
pub fn at_once<T: Send, A: Send>(asked: impl IntoIterator<Item = T>, most: usize, ask: impl Fn(T) -> A + Sync) -> Vec<Option<A>> {
    let asked: Vec<T> = asked.into_iter().collect();
    let answers: Vec<Mutex<Option<A>>> = asked.iter().map(|_| Mutex::default()).collect();
    let threads = answers.len().min(most);
    let waiting = Mutex::new(asked.into_iter().zip(&answers));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        let asking = || {
            while let Some((one, answer)) = next() {
                let said = ask(one);
                *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }
        };
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(asking)).collect();
        // A panic is told by the answer that is missing; the others go on.
        for thread in started {
            drop(thread.join());
        }
    });
    answers.into_iter().map(|answer| answer.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn answers_are_in_order_and_no_more_are_asked_at_once_than_may_be() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let together = Barrier::new(4);
        let answers = at_once(0..20, 4, |number: u32| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            together.wait();
            now.fetch_sub(1, Ordering::SeqCst);
            number * 2
        });
        assert_eq!(answers, (0..20).map(|number| Some(number * 2)).collect::<Vec<_>>());
        assert_eq!(most.into_inner(), 4);
    }

    #[test]
    fn one_that_panics_is_one_answer_less() {
        let answers = at_once(0..3, 8, |number: u32| {
            assert!(number != 1, "for the test");
            number
        });
        assert_eq!(answers, [Some(0), None, Some(2)]);
        assert_eq!(at_once([], 8, |()| 7), []);
    }
}
