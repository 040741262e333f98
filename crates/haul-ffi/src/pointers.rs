//! Pointers of C, looked at once: null is an answer, and what is made of the others lives as long as the call.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::{ptr, slice};

use crate::failure::{Outcome, invalid};

/// Bytes to read.
///
/// # Safety
/// `data` is null or has `length` readable bytes for `'a`.
pub unsafe fn bytes<'a>(data: *const u8, length: usize) -> Outcome<&'a [u8]> {
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(invalid(format!("a null pointer where {length} bytes are wanted"))),
        (_, too_many) if too_many > isize::MAX as usize => Err(invalid(format!("{length} bytes: that is no buffer"))),
        // SAFETY: the caller's promise, for a pointer that is not null and a length that is possible.
        _ => Ok(unsafe { slice::from_raw_parts(data, length) }),
    }
}

/// Bytes to write.
///
/// # Safety
/// `buffer` is null or has `size` writable bytes for `'a`, which nobody else uses.
pub unsafe fn bytes_mut<'a>(buffer: *mut u8, size: usize) -> Outcome<&'a mut [u8]> {
    match (buffer.is_null(), size) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(invalid(format!("a null pointer where room for {size} bytes is wanted"))),
        (_, too_many) if too_many > isize::MAX as usize => Err(invalid(format!("{size} bytes: that is no buffer"))),
        // SAFETY: the caller's promise, for a pointer that is not null and a size that is possible.
        _ => Ok(unsafe { slice::from_raw_parts_mut(buffer, size) }),
    }
}

/// A text.
///
/// # Safety
/// `text` is null or ends with a zero, for `'a`.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(invalid(format!("a null pointer where {what} is wanted")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(format!("{what} is not UTF-8")))
}

/// A path, any bytes; none for null.
///
/// # Safety
/// `path` is null or ends with a zero.
pub unsafe fn path(path: *const c_char) -> Option<PathBuf> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    Some(OsStr::from_bytes(path.to_bytes()).into())
}

/// Writes a text with its zero.
///
/// # Safety
/// `buffer` is null or has `size` writable bytes.
pub unsafe fn write_text(text: &str, buffer: *mut c_char, size: usize) -> Outcome<()> {
    // SAFETY: the caller's promise.
    let buffer = unsafe { bytes_mut(buffer.cast(), size) }?;
    let Some((end, room)) = buffer.get_mut(..=text.len()).and_then(<[u8]>::split_last_mut) else {
        return Err(invalid(format!("room for {size} bytes where {} are wanted", text.len() + 1)));
    };
    room.copy_from_slice(text.as_bytes());
    *end = 0;
    Ok(())
}

/// Writes a structure that begins with its size: as much of it as the caller has room for.
///
/// # Safety
/// `to` is null, or its first 8 bytes are the number of bytes that may be written there.
pub unsafe fn write_sized<T>(value: &T, to: *mut T) -> Outcome<()> {
    if to.is_null() {
        return Err(invalid("a null pointer where a structure is wanted"));
    }
    // SAFETY: the caller's promise: the size is there.
    let size = unsafe { to.cast::<u64>().read_unaligned() };
    let known = size_of::<T>();
    if size < size_of::<u64>() as u64 {
        return Err(invalid(format!("a structure whose size says {size}: set it to sizeof")));
    }
    let length = usize::try_from(size).unwrap_or(known).min(known);
    // SAFETY: `length` bytes are in both; the size is left as the caller has set it.
    unsafe {
        let start = size_of::<u64>();
        ptr::copy_nonoverlapping((&raw const *value).cast::<u8>().add(start), to.cast::<u8>().add(start), length - start);
    }
    Ok(())
}

/// Reads a structure that begins with its size; what the caller does not know of is zero.
///
/// # Safety
/// `from` is null, or its first 8 bytes are the number of bytes that may be read there; any bytes, zeros too, are a `T`.
pub unsafe fn read_sized<T>(from: *const T) -> Outcome<T> {
    if from.is_null() {
        return Err(invalid("a null pointer where a structure is wanted"));
    }
    // SAFETY: the caller's promise: the size is there.
    let size = unsafe { from.cast::<u64>().read_unaligned() };
    let known = size_of::<T>();
    let size = usize::try_from(size).ok().filter(|size| (size_of::<u64>()..=known).contains(size));
    let size = size.ok_or_else(|| {
        invalid(format!("a structure whose size is not 8 to {known}: set it to sizeof, and use a library as new as the header"))
    })?;
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: so many bytes are in both, and zeros where none were written.
    unsafe {
        ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), size);
        Ok(value.assume_init())
    }
}

/// A pointer of the application's, for its callback.
pub struct Given(pub *mut c_void);

// SAFETY: the header says that callbacks are called by threads of the library, and what they get is the application's to share.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

impl Given {
    /// The pointer; a method, so that closures take the whole of it.
    pub fn pointer(&self) -> *mut c_void {
        self.0
    }
}
