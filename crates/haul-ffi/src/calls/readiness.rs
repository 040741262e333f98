//! Waiting for many things: what is possible now, threads that wait for several handles, and descriptors for loops of the application's own.
//!
//! A descriptor is an eventfd that counts wakings. [`haul_ready`] empties it, asks again, and fills it if something is the case: so it is readable as long as something is,
//! and once too often at most.

use std::ffi::c_int;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::border;
use crate::failure::{Code, Failure, Outcome, invalid};
use crate::table::{self, Entry, Object};
use crate::waiting::{Patience, park};
use crate::watch::Watch;

const IN: c_int = 1;
const OUT: c_int = 4;
const HUP: c_int = 16;

/// `struct haul_pollfd`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HaulPollfd {
    /// What to wait for; 0 is passed over.
    pub handle: i64,
    /// Wanted.
    pub events: c_int,
    /// That are the case.
    pub revents: c_int,
}

/// Which of `events` are the case; for the others the task is woken.
fn ready(entry: &Entry, events: c_int, cx: &mut Context<'_>) -> c_int {
    let mut found = 0;
    let mut note = |event, poll: &dyn Fn(&mut Context<'_>) -> Poll<()>| {
        if events & event != 0 && poll(cx).is_ready() {
            found |= event;
        }
    };
    match &entry.object {
        Object::Endpoint(place) => note(IN, &|cx| place.poll_acceptable(cx)),
        Object::Connection(connection) => {
            // While it is being made there is nothing to accept, and who waits for that is told when it is made.
            note(IN, &|cx| if connection.poll_made(cx).is_ready() { connection.poll_acceptable(cx) } else { Poll::Pending });
            note(OUT, &|cx| connection.poll_made(cx).map(drop));
            note(HUP, &|cx| connection.poll_over(cx).map(drop));
        }
        Object::Stream(stream) => {
            note(IN, &|cx| stream.poll_receivable(cx));
            note(OUT, &|cx| stream.poll_sendable(cx));
        }
        Object::Sender(sender) => note(OUT, &|cx| sender.poll_sendable(cx)),
        Object::Receiver(receiver) => note(IN, &|cx| receiver.poll_receivable(cx)),
        Object::Job(job) => note(IN, &|cx| job.poll_over(cx).map(drop)),
        Object::Identity(_) | Object::Block(_) | Object::Fleet(_) => {}
    }
    found
}

fn checked(events: c_int) -> Outcome<c_int> {
    if events & !(IN | OUT | HUP) != 0 {
        return Err(invalid(format!("{events:#x} are no events: HAUL_IN, HAUL_OUT and HAUL_HUP")));
    }
    Ok(events)
}

#[unsafe(no_mangle)]
extern "C" fn haul_fd(handle: i64, events: c_int) -> c_int {
    border::call(|| {
        let events = checked(events)?;
        let entry = table::get(handle)?;
        if entry.watch.get().is_none() {
            // One that another thread makes meanwhile is as good.
            let _ = entry.watch.set(Arc::new(Watch::new()?));
        }
        let Some(watch) = entry.watch.get() else { return Err(Failure::new(Code::Internal, "a descriptor that was just made")) };
        watch.set_events(events);
        rearm(&entry, watch);
        watch.fd().ok_or_else(|| Failure::new(Code::Closed, "the handle was closed by another thread"))
    })
}

/// Empties the descriptor, and fills it again if one of its events is the case.
fn rearm(entry: &Entry, watch: &Arc<Watch>) {
    watch.empty();
    let waker = Waker::from(Arc::clone(watch));
    if ready(entry, watch.events(), &mut Context::from_waker(&waker)) != 0 {
        watch.signal();
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_ready(handle: i64, events: c_int) -> c_int {
    border::call(|| {
        let events = checked(events)?;
        let entry = table::get(handle)?;
        if let Some(watch) = entry.watch.get() {
            rearm(&entry, watch);
        }
        Ok(ready(&entry, events, &mut Context::from_waker(Waker::noop())))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_poll(handles: *mut HaulPollfd, count: usize, timeout_ms: c_int) -> c_int {
    border::call(|| {
        if handles.is_null() && count > 0 || count > MAX_POLLED {
            return Err(invalid(format!("{count} handles, at {handles:p}: up to {MAX_POLLED} are possible, in an array")));
        }
        // SAFETY: C's promise: an array of so many.
        let polled = if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(handles, count) } };
        let patience = Patience::from_ms(timeout_ms.into());
        let waker = haul::thread_waker();
        loop {
            let found = look(polled, &mut Context::from_waker(&waker));
            if found > 0 || matches!(patience, Patience::None) || park(patience).is_err() {
                return Ok(found);
            }
        }
    })
}

/// How many have something to say. A handle that is closed while a thread waits for it is found by the waking that its end causes.
fn look(polled: &mut [HaulPollfd], cx: &mut Context<'_>) -> c_int {
    let mut found = 0;
    for one in polled.iter_mut() {
        one.revents = match (one.handle, checked(one.events)) {
            (0, _) => 0,
            (_, Err(failure)) => failure.code as c_int,
            (handle, Ok(events)) => match table::get(handle) {
                Ok(entry) => {
                    entry.gate.add(cx.waker());
                    ready(&entry, events, cx)
                }
                Err(failure) => failure.code as c_int,
            },
        };
        found += c_int::from(one.revents != 0);
    }
    found
}

const MAX_POLLED: usize = 1 << 20;
