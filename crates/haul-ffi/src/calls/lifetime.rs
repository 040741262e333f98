//! The end of a handle: its waiters go, and what it names ends as its kind does.

use std::ffi::c_int;

use crate::table::{self, Entry, Object};
use crate::{border, signals};

/// Ends a thing that has no handle any more.
pub fn end(entry: &Entry) {
    entry.gate.close();
    if let Some(watch) = entry.watch.get() {
        watch.close();
    }
    match &entry.object {
        Object::Connection(connection) => connection.close(0, ""),
        Object::Stream(stream) => stream.close(),
        Object::Sender(sender) => sender.close(),
        Object::Receiver(receiver) => receiver.close(),
        Object::Block(block) => block.close(),
        Object::Job(job) => job.close(),
        // They end with the last who uses them: a fleet with its last job.
        Object::Identity(_) | Object::Endpoint(_) | Object::Fleet(_) => {}
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_close(handle: i64) -> c_int {
    border::done(|| {
        let entry = table::remove(handle)?;
        signals::blocked(|| end(&entry));
        Ok(())
    })
}
