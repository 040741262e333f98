//! The system's own.

use std::io;

pub use rustix::io::Errno;

/// What the system says of a number.
pub fn text(number: i32) -> String {
    let mut text = io::Error::from_raw_os_error(number).to_string();
    text.truncate(text.find(" (os error").unwrap_or(text.len()));
    text
}
