//! A program stays whose it is.

use std::io;

use super::UserError;

/// A user of the system; none can be become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
}

impl User {
    /// An error: whoever it is could not be become.
    pub fn find(name: &str) -> Result<Self, UserError> {
        let source =
            io::Error::new(io::ErrorKind::Unsupported, "a daemon cannot become another user on Windows: start it as that user");
        Err(UserError::NotLookedUp { name: name.to_owned(), source })
    }

    /// A number that nobody has.
    pub const fn id(&self) -> u32 {
        u32::MAX
    }

    /// An error.
    pub fn become_for_good(&self) -> Result<(), UserError> {
        Self::find(&self.name).map(drop)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}
