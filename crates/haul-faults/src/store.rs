//! What can go wrong with one thing in a store.

use crate::Why;
use crate::errno::{Errno, text};

/// Why an operation on one thing failed, by who or what is at fault. A number is that of the system's error nearest to it (`errno`), for the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The name: nothing has it.
    #[error("nothing has this name")]
    Missing,
    /// The name: something of another type has it.
    #[error("something of another type has this name")]
    InTheWay,
    /// The name: another directory has taken it since.
    #[error("another directory has taken its name")]
    Replaced,
    /// The name: a link, where none is followed.
    #[error("is a symbolic link: not followed")]
    Link,
    /// The name: the store has it for itself.
    #[error("is a name for unfinished copies")]
    Reserved,
    /// The name: the store's file system has none such.
    #[error("is a name that no file can have on Windows")]
    CannotBeNamed,
    /// The name: something there has it in another spelling, which the file system takes for the same.
    #[error("something there has this name in another spelling")]
    OtherSpelling,
    /// The rights of who asks: the name leads out of what it may see.
    #[error("leads outside the exported root, or through a symbolic link")]
    OutsideRoot,
    /// The rights of who asks.
    #[error("{}", text(*.0))]
    Forbidden(i32),
    /// The room: there is none left, or the quota is used up.
    #[error("{}", text(*.0))]
    Full(i32),
    /// The store: it does not do this.
    #[error("{}", text(*.0))]
    Unsupported(i32),
    /// The store: it gives back something else than was written.
    #[error("what is given back is not what was written")]
    Damaged,
    /// The store: the file that was there is gone, and what was to be in its place is not.
    #[error("{}: what was there is gone", text(*.0))]
    Emptied(i32),
    /// The store: a call failed.
    #[error("{}", text(*.0))]
    Failed(i32),
    /// Who asked: it wants it no more.
    #[error("interrupted")]
    Cancelled,
}

impl StoreError {
    /// The store does not do this.
    pub const UNSUPPORTED: Self = Self::Unsupported(Errno::OPNOTSUPP.raw_os_error());
    /// No room is left.
    pub const FULL: Self = Self::Full(Errno::NOSPC.raw_os_error());
    /// The store failed, and nothing more is known.
    pub const FAILED: Self = Self::Failed(Errno::IO.raw_os_error());

    /// The error of a call of the system.
    pub fn from_io(error: &std::io::Error) -> Self {
        Errno::from_io_error(error).map_or(Self::FAILED, Self::from)
    }
}

impl From<Errno> for StoreError {
    fn from(errno: Errno) -> Self {
        let number = errno.raw_os_error();
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::STALE => Self::Replaced,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Forbidden(number),
            Errno::NOSPC | Errno::DQUOT => Self::Full(number),
            Errno::OPNOTSUPP | Errno::NOSYS => Self::Unsupported(number),
            _ => Self::Failed(number),
        }
    }
}

impl From<StoreError> for Why {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing => Errno::NOENT.into(),
            StoreError::InTheWay => Self::InTheWay,
            StoreError::Replaced => Errno::STALE.into(),
            StoreError::Link => Self::LinkNotFollowed,
            StoreError::Reserved => Self::Reserved,
            StoreError::CannotBeNamed => Self::CannotBeNamed,
            StoreError::OtherSpelling => Self::OtherSpelling,
            StoreError::OutsideRoot => Self::OutsideRoot,
            StoreError::Forbidden(number)
            | StoreError::Full(number)
            | StoreError::Unsupported(number)
            | StoreError::Emptied(number)
            | StoreError::Failed(number) => Self::Os(number),
            StoreError::Damaged => Self::ReadBackMismatch,
            StoreError::Cancelled => Errno::CANCELED.into(),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// What users are told is the system's own word, whatever an error is sorted under.
    #[test]
    fn no_number_is_lost_by_sorting() {
        for number in 1..134 {
            let errno = Errno::from_raw_os_error(number);
            assert_eq!(Why::from(StoreError::from(errno)), Why::from(errno), "{number}");
            let io = std::io::Error::from_raw_os_error(number);
            assert_eq!(StoreError::from_io(&io), StoreError::from(errno));
        }
        assert_eq!(StoreError::from(Errno::DQUOT), StoreError::Full(Errno::DQUOT.raw_os_error()));
        assert_eq!(StoreError::from(Errno::ROFS), StoreError::Forbidden(Errno::ROFS.raw_os_error()));
    }
}
