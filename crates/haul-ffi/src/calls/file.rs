//! Files.

use std::ffi::{c_int, c_void};

use crate::border;
use crate::failure::Outcome;
use crate::table::{self, Object, wrong_kind};
use crate::things::{Part, ProgressFn, Transferred, receive_blocks, receive_ordered, send_blocks, send_ordered};

/// What C gets: the number of bytes; and the offset is moved by them whatever happened.
///
/// # Safety
/// `offset` is a number.
unsafe fn conclude(part: &mut Part, offset: *mut i64, (done, result): Transferred) -> Outcome<i64> {
    // SAFETY: the caller's promise.
    unsafe { *offset += done as i64 };
    result?;
    part.tell(done, true)?;
    Ok(done as i64)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_sendfile(
    handle: i64,
    fd: c_int,
    offset: *mut i64,
    size: i64,
    progress: Option<ProgressFn>,
    context: *mut c_void,
) -> i64 {
    border::call(|| {
        let entry = table::get(handle)?;
        // SAFETY: C's promises are the same.
        let mut part = unsafe { Part::new(fd, offset, size, progress, context) }?;
        part.measure()?;
        let sent = match &entry.object {
            Object::Stream(stream) => send_ordered(&mut part, &entry.gate, entry.sending(), stream),
            Object::Sender(sender) => send_blocks(&mut part, &entry.gate, entry.sending(), sender),
            _ => return Err(wrong_kind(&entry, "a stream to send on")),
        };
        // SAFETY: it was looked at before, and is no null pointer.
        unsafe { conclude(&mut part, offset, sent) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_recvfile(
    handle: i64,
    fd: c_int,
    offset: *mut i64,
    size: i64,
    progress: Option<ProgressFn>,
    context: *mut c_void,
) -> i64 {
    border::call(|| {
        let entry = table::get(handle)?;
        // SAFETY: C's promises are the same.
        let mut part = unsafe { Part::new(fd, offset, size, progress, context) }?;
        let received = match &entry.object {
            Object::Stream(stream) => receive_ordered(&mut part, &entry.gate, entry.receiving(), stream),
            Object::Receiver(receiver) => receive_blocks(&mut part, &entry.gate, entry.receiving(), receiver),
            _ => return Err(wrong_kind(&entry, "a stream to receive from")),
        };
        // SAFETY: it was looked at before, and is no null pointer.
        unsafe { conclude(&mut part, offset, received) }
    })
}
