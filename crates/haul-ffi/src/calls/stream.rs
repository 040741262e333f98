//! Streams.

use std::ffi::{c_int, c_void};

use crate::border;
use crate::failure::{Outcome, invalid};
use crate::pointers::{bytes, bytes_mut};
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::Stream;

/// Does something with the stream of a handle.
fn with<T>(handle: i64, work: impl FnOnce(&Entry, &Stream) -> Outcome<T>) -> Outcome<T> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Stream(stream) => work(&entry, stream),
        _ => Err(wrong_kind(&entry, "a stream of ordered bytes")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_send(stream: i64, data: *const c_void, length: usize) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or so many bytes.
        let data = unsafe { bytes(data.cast(), length) }?;
        with(stream, |entry, stream| Ok(stream.send(&entry.gate, entry.sending(), data)? as i64))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_recv(stream: i64, buffer: *mut c_void, size: usize) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or so many bytes.
        let buffer = unsafe { bytes_mut(buffer.cast(), size) }?;
        if buffer.is_empty() {
            return Err(invalid("room for 0 bytes, where 0 would mean the end"));
        }
        with(stream, |entry, stream| Ok(entry.gate.wait(entry.receiving(), |cx| stream.poll_receive(cx, buffer))? as i64))
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_shutdown(handle: i64, how: c_int) -> c_int {
    border::done(|| {
        let (reads, writes) = match how {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => return Err(invalid(format!("{how} is no direction: HAUL_SHUT_RD, HAUL_SHUT_WR or HAUL_SHUT_RDWR"))),
        };
        let entry = table::get(handle)?;
        if writes {
            match &entry.object {
                Object::Stream(stream) => stream.finish()?,
                Object::Sender(sender) => sender.finish()?,
                _ => return Err(wrong_kind(&entry, "a stream to send on")),
            }
        }
        if reads {
            stop(&entry, 0)?;
        }
        Ok(())
    })
}

fn stop(entry: &Entry, code: u64) -> Outcome<()> {
    match &entry.object {
        Object::Stream(stream) => stream.stop(code),
        Object::Receiver(receiver) if code == 0 => {
            receiver.close();
            Ok(())
        }
        Object::Receiver(_) => Err(invalid("a stream of blocks is stopped with code 0")),
        _ => Err(wrong_kind(entry, "a stream to receive from")),
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_flush(handle: i64) -> c_int {
    border::done(|| {
        let entry = table::get(handle)?;
        match &entry.object {
            Object::Stream(stream) => entry.gate.wait(entry.sending(), |cx| stream.poll_flushed(cx)),
            Object::Sender(sender) => entry.gate.wait(entry.sending(), |cx| sender.poll_flushed(cx)),
            _ => Err(wrong_kind(&entry, "a stream to send on")),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_reset(handle: i64, code: u64) -> c_int {
    border::done(|| {
        let entry = table::get(handle)?;
        match &entry.object {
            Object::Stream(stream) => stream.reset(code),
            Object::Sender(sender) => sender.reset(code),
            _ => Err(wrong_kind(&entry, "a stream to send on")),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_stop(handle: i64, code: u64) -> c_int {
    border::done(|| {
        let entry = table::get(handle)?;
        stop(&entry, code)
    })
}

/// Sets who goes first among streams.
pub fn set_priority(entry: &Entry, priority: u8) -> Outcome<()> {
    match &entry.object {
        Object::Stream(stream) => stream.set_priority(priority),
        Object::Sender(sender) => sender.set_priority(priority),
        _ => Err(wrong_kind(entry, "a stream to send on")),
    }
}
