//! Blocks: each has a handle while C has it, so that one that is given back twice is an answer.

use std::ffi::{c_int, c_void};

use haul::{BlockData, MAX_BLOCK};

use crate::border;
use crate::failure::{Code, Outcome, invalid, wrong_state};
use crate::pointers::bytes;
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::{Contents, Sender, TheBlock};

/// `struct haul_block`.
#[derive(Debug)]
#[repr(C)]
pub struct HaulBlock {
    /// Names it; 0 if there is none.
    pub handle: i64,
    /// Its bytes.
    pub data: *mut c_void,
    /// Of them that are the block.
    pub length: usize,
    /// Of them that may be written.
    pub capacity: usize,
    /// Which one it is.
    pub index: u64,
}

impl HaulBlock {
    const NONE: Self = Self { handle: 0, data: std::ptr::null_mut(), length: 0, capacity: 0, index: 0 };
}

fn with_sender<T>(handle: i64, work: impl FnOnce(&Entry, &Sender) -> Outcome<T>) -> Outcome<T> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Sender(sender) => work(&entry, sender),
        Object::Receiver(_) => Err(wrong_state("this side only receives on this stream of blocks")),
        _ => Err(wrong_kind(&entry, "a stream of blocks")),
    }
}

/// The structure that C has for a block.
///
/// # Safety
/// `block` is null or a structure that nobody else uses.
unsafe fn structure<'a>(block: *mut HaulBlock) -> Outcome<&'a mut HaulBlock> {
    // SAFETY: the caller's promise; C structures of these types have no values that are wrong.
    unsafe { block.as_mut() }.ok_or_else(|| invalid("a null pointer where a struct haul_block is wanted"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_block_alloc(blocks: i64, capacity: usize, block: *mut HaulBlock) -> c_int {
    border::done(|| {
        // SAFETY: C's promise.
        let out = unsafe { structure(block) }?;
        *out = HaulBlock::NONE;
        if !(1..=MAX_BLOCK).contains(&capacity) {
            return Err(invalid(format!("a block of {capacity} bytes: 1 to {MAX_BLOCK} are possible")));
        }
        with_sender(blocks, |entry, sender| {
            let mut buffer = sender.get_open()?.buffer();
            buffer.reserve_exact(capacity);
            let data = buffer.as_mut_ptr().cast();
            let capacity = buffer.capacity();
            let handle = table::insert(Entry::from(entry, Object::Block(TheBlock::new(Contents::Outgoing(buffer)))))?;
            *out = HaulBlock { handle, data, length: 0, capacity, index: 0 };
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_block_submit(blocks: i64, block: *mut HaulBlock) -> i64 {
    border::call(|| {
        // SAFETY: C's promise.
        let block = unsafe { structure(block) }?;
        let entry = table::get(block.handle)?;
        let Object::Block(contents) = &entry.object else { return Err(wrong_kind(&entry, "a block")) };
        with_sender(blocks, |stream, sender| {
            let mut kept = contents.contents();
            let Contents::Outgoing(buffer) = &mut *kept else {
                return Err(invalid("a block that was received, or sent already"));
            };
            if !(1..=buffer.capacity().min(MAX_BLOCK)).contains(&block.length) {
                let most = buffer.capacity().min(MAX_BLOCK);
                return Err(invalid(format!("a block of {} bytes: 1 to {most} are possible", block.length)));
            }
            let mut data = std::mem::take(buffer);
            drop(kept);
            // SAFETY: the length is within the capacity, and haul.h says that the caller has written so many bytes.
            unsafe { data.set_len(block.length) };
            let mut data = Some(BlockData::Owned(data));
            let result = sender.send(&stream.gate, stream.sending(), &mut data);
            match (&result, data) {
                (Err(failure), Some(BlockData::Owned(mut buffer))) if matches!(failure.code, Code::Again | Code::TimedOut) => {
                    buffer.clear();
                    *contents.contents() = Contents::Outgoing(buffer);
                }
                _ => {
                    *contents.contents() = Contents::Gone;
                    let _ = table::remove(block.handle);
                    *block = HaulBlock { index: *result.as_ref().unwrap_or(&0), ..HaulBlock::NONE };
                }
            }
            result.map(|index| index as i64)
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_block_send(blocks: i64, data: *const c_void, length: usize) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or so many bytes.
        let data = unsafe { bytes(data.cast(), length) }?;
        with_sender(blocks, |entry, sender| {
            let mut buffer = sender.get_open()?.buffer();
            buffer.extend_from_slice(data.get(..=MAX_BLOCK).unwrap_or(data));
            Ok(sender.send(&entry.gate, entry.sending(), &mut Some(buffer.into()))? as i64)
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_block_recv(blocks: i64, block: *mut HaulBlock) -> c_int {
    border::call(|| {
        // SAFETY: C's promise.
        let out = unsafe { structure(block) }?;
        *out = HaulBlock::NONE;
        let entry = table::get(blocks)?;
        let receiver = match &entry.object {
            Object::Receiver(receiver) => receiver,
            Object::Sender(_) => return Err(wrong_state("this side only sends on this stream of blocks")),
            _ => return Err(wrong_kind(&entry, "a stream of blocks")),
        };
        let Some(block) = receiver.receive(&entry.gate, entry.receiving())? else { return Ok(0) };
        let (data, length, index) = (block.as_ptr().cast_mut().cast(), block.len(), block.index());
        let handle = table::insert(Entry::from(&entry, Object::Block(TheBlock::new(Contents::Incoming { _block: block }))))?;
        *out = HaulBlock { handle, data, length, capacity: length, index };
        Ok(1)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_block_free(block: *mut HaulBlock) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or a structure.
        let Some(block) = (unsafe { block.as_mut() }) else { return Ok(()) };
        let handle = std::mem::replace(block, HaulBlock::NONE).handle;
        if handle == 0 {
            return Ok(());
        }
        let entry = table::get(handle)?;
        let Object::Block(contents) = &entry.object else { return Err(wrong_kind(&entry, "a block")) };
        contents.close();
        table::remove(handle).map(drop)
    })
}
