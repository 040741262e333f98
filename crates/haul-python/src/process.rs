//! What a process that was forked has of its parent: the memory, and neither the threads nor the say.
//!
//! A child that ends drops what it has. It must not: locks may be held by threads that it has not, and the socket is its parent's as well.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::process;

/// What is dropped by the process that has made it, and by no other.
pub struct Own<T> {
    value: ManuallyDrop<T>,
    process: u32,
}

impl<T> Own<T> {
    pub fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), process: process::id() }
    }

    /// Whether this is the process that has made it.
    pub fn is_here(&self) -> bool {
        self.process == process::id()
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
