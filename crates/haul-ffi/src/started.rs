//! Whether the library is in use, and by how many parts of the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::failure::{Code, Failure, Outcome};

static STARTED: AtomicUsize = AtomicUsize::new(0);

pub fn check() -> Outcome<()> {
    if STARTED.load(Ordering::Acquire) == 0 {
        return Err(Failure::new(Code::NotStarted, "call haul_startup() first"));
    }
    Ok(())
}

/// One more part uses it.
pub fn enter() {
    STARTED.fetch_add(1, Ordering::AcqRel);
}

/// One fewer; true if it was the last.
pub fn leave() -> bool {
    STARTED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1)) == Ok(1)
}
