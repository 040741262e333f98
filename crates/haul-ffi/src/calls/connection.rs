//! Connections.

use std::ffi::{c_char, c_int};

use libc::{sockaddr, socklen_t};

use super::lifetime;
use crate::failure::Outcome;
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::{Conn, Incoming, Kind};
use crate::waiting::Patience;
use crate::{address, border, pointers};

/// Does something with the connection of a handle.
pub fn with<T>(handle: i64, work: impl FnOnce(&Entry, &Conn) -> Outcome<T>) -> Outcome<T> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Connection(connection) => work(&entry, connection),
        _ => Err(wrong_kind(&entry, "a connection")),
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_connect_finish(connection: i64) -> c_int {
    border::done(|| {
        with(connection, |entry, connection| entry.gate.wait(Patience::None, |cx| connection.poll_made(cx).map_ok(drop)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_getpeername(connection: i64, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    border::done(|| {
        with(connection, |_, connection| {
            let from = connection.made()?.remote_addr();
            // SAFETY: C's promise, as for getpeername(2).
            unsafe { address::write(from, address, length) }
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_protocol(connection: i64, buffer: *mut c_char, size: usize) -> c_int {
    border::done(|| {
        with(connection, |_, connection| {
            let agreed = connection.made()?.protocol().unwrap_or_default();
            // SAFETY: C's promise: null or so many bytes.
            unsafe { pointers::write_text(&String::from_utf8_lossy(&agreed), buffer, size) }
        })
    })
}

fn insert(connection: &Entry, stream: Incoming) -> Outcome<i64> {
    let object = match stream {
        Incoming::Stream(stream) => Object::Stream(stream),
        Incoming::Sender(sender) => Object::Sender(sender),
        Incoming::Receiver(receiver) => Object::Receiver(receiver),
    };
    table::insert(Entry::from(connection, object))
}

#[unsafe(no_mangle)]
extern "C" fn haul_stream_open(connection: i64, kind: c_int) -> i64 {
    border::call(|| {
        let kind = Kind::of(kind)?;
        with(connection, |entry, connection| {
            let stream = entry.gate.wait(entry.sending(), |cx| connection.poll_open(kind, cx))?;
            insert(entry, stream)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_stream_accept(connection: i64, kind: c_int) -> i64 {
    border::call(|| {
        let kind = Kind::of(kind)?;
        with(connection, |entry, connection| {
            let stream = entry.gate.wait(entry.receiving(), |cx| connection.poll_accept(kind, cx))?;
            insert(entry, stream)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_closed(connection: i64) -> c_int {
    border::done(|| {
        with(connection, |entry, connection| Err(entry.gate.wait(entry.receiving(), |cx| connection.poll_over(cx).map(Ok))?))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_close_with(connection: i64, code: u64, reason: *const c_char) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or a text.
        let reason = if reason.is_null() { "" } else { unsafe { pointers::text(reason, "a reason")? } };
        with(connection, |_, connection| {
            connection.close(code, reason);
            Ok(())
        })?;
        let entry = table::remove(connection)?;
        lifetime::end(&entry);
        Ok(())
    })
}
