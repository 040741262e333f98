//! A descriptor that a waking makes readable: an eventfd.

use std::ffi::c_int;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use crate::failure::Outcome;

/// A descriptor that is readable when somebody was woken.
pub struct Watch {
    /// None once the handle is closed: its number may then be another thing's.
    fd: Mutex<Option<OwnedFd>>,
    /// What it is to tell of.
    events: AtomicI32,
}

impl Watch {
    pub fn new() -> Outcome<Self> {
        Ok(Self { fd: Mutex::new(Some(event_counter()?)), events: AtomicI32::new(0) })
    }

    /// Its number, until the handle is closed.
    pub fn fd(&self) -> Option<c_int> {
        self.open().as_ref().map(OwnedFd::as_raw_fd)
    }

    pub fn events(&self) -> c_int {
        self.events.load(Ordering::Acquire)
    }

    pub fn set_events(&self, events: c_int) {
        self.events.store(events, Ordering::Release);
    }

    /// The handle is closed, and the descriptor with it; who polls it is woken, and sees.
    pub fn close(&self) {
        self.signal();
        self.open().take();
    }

    /// Makes it readable.
    pub fn signal(&self) {
        if let Some(fd) = &*self.open() {
            let one = 1u64;
            // SAFETY: eight bytes are read from `one`. A counter that is full is readable anyway.
            unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
        }
    }

    /// Makes it quiet.
    pub fn empty(&self) {
        if let Some(fd) = &*self.open() {
            let mut count = 0u64;
            // SAFETY: eight bytes are written to `count`. One that is empty says so.
            unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.signal();
    }
}

#[cfg(target_os = "linux")]
fn event_counter() -> Outcome<OwnedFd> {
    use std::os::fd::FromRawFd as _;
    // SAFETY: no pointer is handed over.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(crate::failure::system("no descriptor to wait for", &std::io::Error::last_os_error()));
    }
    // SAFETY: it was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(not(target_os = "linux"))]
fn event_counter() -> Outcome<OwnedFd> {
    Err(crate::failure::invalid("descriptors to wait for are on Linux only: use haul_poll()"))
}
