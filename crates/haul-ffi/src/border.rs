//! The border to C: a panic ends here, and so does everything while the library is not started or the process was forked.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::{Code, Failure, Outcome, keep};
use crate::{fork, started};

/// What C gets for a success.
pub trait Answer {
    fn from_code(code: c_int) -> Self;
}

impl Answer for c_int {
    fn from_code(code: c_int) -> Self {
        code
    }
}

impl Answer for i64 {
    fn from_code(code: c_int) -> Self {
        code.into()
    }
}

/// Runs one call of C.
pub fn call<T: Answer>(work: impl FnOnce() -> Outcome<T>) -> T {
    let admitted = || {
        fork::check()?;
        started::check()
    };
    unchecked(|| admitted().and_then(|()| work()))
}

/// As [`call`], whether the library was started or not.
pub fn unchecked<T: Answer>(work: impl FnOnce() -> Outcome<T>) -> T {
    // What a panic leaves behind is behind locks that recover, or is the transport's, which ends the connection.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().copied().map(str::to_owned).or_else(|| panic.downcast_ref::<String>().cloned());
        // Dropping a panic's payload could panic again.
        std::mem::forget(panic);
        Err(Failure::new(Code::Internal, format!("a bug in the library: {}", words.unwrap_or_default())))
    });
    result.unwrap_or_else(|failure| T::from_code(keep(failure)))
}

/// For calls that give nothing but success.
pub fn done(work: impl FnOnce() -> Outcome<()>) -> c_int {
    call(|| work().map(|()| 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;

    #[test]
    fn a_panic_is_an_answer() {
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let codes: [c_int; 2] = [unchecked(|| panic!("a {} one", "formatted")), unchecked(|| panic!("a plain one"))];
        let number: i64 = unchecked(|| std::panic::panic_any(7));
        std::panic::set_hook(quiet);
        assert_eq!((codes, number), ([Code::Internal as c_int; 2], Code::Internal as i64));
        assert_eq!(unchecked(|| Ok(5)), 5);
    }
}
