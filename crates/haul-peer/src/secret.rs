//! Files that secrets are written to: this user's alone, and not by a program that has rights which its user has not.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{append, append_secret, has_rights_of_others};
#[cfg(windows)]
pub use windows::{append, append_secret, has_rights_of_others};
