//! Parts of files: the [blocks](block) that carry them over some [transport], and which of them are [there](Taken), [counted](Parts) over all files of a copy, and [remembered](journal) after it was killed.

pub mod block;
pub mod journal;
pub mod stamp;
mod taken;
pub mod transport;

pub use taken::{Parts, Taken};
