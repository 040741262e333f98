//! Parts of files: the [blocks](block) that carry them over some [transport], which of them are [there](Taken), of [one](Part) and [counted](Parts) over all files of a copy, and [remembered](journal) after it was killed; and [the directories](DirInfo) that they are to be in.

pub mod block;
mod directory;
pub mod journal;
mod part;
pub mod stamp;
mod taken;
pub mod transport;

pub use directory::{DirInfo, Finish, Packed};
pub use part::{End, Part};
pub use taken::{Parts, Taken};
