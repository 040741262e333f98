//! Files.

use std::ffi::{c_int, c_void};

use crate::border;
use crate::failure::Outcome;
use crate::table::{self, Entry, Object, wrong_kind};
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

/// What both calls do: finds the handle, has `part` of the file transferred, and tells C.
///
/// # Safety
/// As C promises: `offset` is null or a number, `progress` a function for `context`.
unsafe fn transfer(
    handle: i64,
    fd: c_int,
    offset: *mut i64,
    size: i64,
    (progress, context): (Option<ProgressFn>, *mut c_void),
    part_of: impl FnOnce(&Entry, &mut Part) -> Outcome<Transferred>,
) -> i64 {
    border::call(|| {
        let entry = table::get(handle)?;
        // SAFETY: the caller's promise.
        let mut part = unsafe { Part::new(fd, offset, size, progress, context) }?;
        let transferred = part_of(&entry, &mut part)?;
        // SAFETY: it was looked at before, and is no null pointer.
        unsafe { conclude(&mut part, offset, transferred) }
    })
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
    // SAFETY: C's promises are the same.
    unsafe {
        transfer(handle, fd, offset, size, (progress, context), |entry, part| {
            part.measure()?;
            match &entry.object {
                Object::Stream(stream) => Ok(send_ordered(part, &entry.gate, entry.sending(), stream)),
                Object::Sender(sender) => Ok(send_blocks(part, &entry.gate, entry.sending(), sender)),
                _ => Err(wrong_kind(entry, "a stream to send on")),
            }
        })
    }
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
    // SAFETY: C's promises are the same.
    unsafe {
        transfer(handle, fd, offset, size, (progress, context), |entry, part| match &entry.object {
            Object::Stream(stream) => Ok(receive_ordered(part, &entry.gate, entry.receiving(), stream)),
            Object::Receiver(receiver) => Ok(receive_blocks(part, &entry.gate, entry.receiving(), receiver)),
            _ => Err(wrong_kind(entry, "a stream to receive from")),
        })
    }
}
