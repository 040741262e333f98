//! Which job's callback a thread is inside of: a job that is closed there cannot be waited for, since it waits for that callback.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Whose callback this thread is inside of; null: of none.
    static INSIDE: Cell<*const Hearing> = const { Cell::new(ptr::null()) };
}

/// Whether an application hears of its job. Most callbacks are called by threads of the engine, not by the job's own.
#[derive(Debug, Default)]
pub struct Hearing {
    ended: AtomicBool,
}

impl Hearing {
    /// Calls the application, unless it is to hear no more.
    pub fn call<T>(&self, callback: impl FnOnce() -> T) -> Option<T> {
        if self.ended.load(Ordering::Acquire) {
            return None;
        }
        let _inside = Inside { before: INSIDE.replace(self) };
        Some(callback())
    }

    /// Ends it, if this thread is inside of a callback of this job, which was closed there: nobody waits for its end, so its context may be gone with this callback. Else false.
    pub fn end_from_inside(&self) -> bool {
        let is_inside = ptr::eq(INSIDE.get(), self);
        if is_inside {
            self.ended.store(true, Ordering::Release);
        }
        is_inside
    }
}

/// A thread inside of a callback.
struct Inside {
    before: *const Hearing,
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_inside_of_a_callback_is_known_by_its_job() {
        let (one, other) = (Hearing::default(), Hearing::default());
        assert!(!one.end_from_inside());
        let inside = one.call(|| {
            let elsewhere = std::thread::scope(|scope| scope.spawn(|| one.end_from_inside()).join());
            let nested = other.call(|| (one.end_from_inside(), other.end_from_inside()));
            (elsewhere.expect("no panic"), nested, other.end_from_inside(), one.end_from_inside())
        });
        assert_eq!(inside, Some((false, Some((false, true)), false, true)));
        assert_eq!((one.call(|| ()), other.call(|| ())), (None, None), "what was closed hears nothing");
        assert!(!one.end_from_inside());
    }
}
