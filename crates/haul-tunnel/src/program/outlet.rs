//! Where what the other side sends is written.

use std::io::Write;

/// A writer that hears when all has come. One that is dropped without having heard it has a part of something.
pub trait Outlet: Write + Send + 'static {
    /// All has been written.
    fn end(&mut self) {}
}

#[cfg(unix)]
impl Outlet for super::local::Output {}

#[cfg(windows)]
impl Outlet for std::fs::File {}
