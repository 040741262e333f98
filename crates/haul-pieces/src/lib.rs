//! Parts of files: the [blocks](block) that carry them, and which of them are [there](Ranges), [counted](Parts) over all files of a copy.

pub mod block;
mod ranges;
mod taken;

pub use ranges::Ranges;
pub use taken::{Parts, Taken};
