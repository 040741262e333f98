//! Parts of files: the [blocks](block) that carry them, and which of them are [there](Taken), [counted](Parts) over all files of a copy.

pub mod block;
mod taken;

pub use taken::{Parts, Taken};
