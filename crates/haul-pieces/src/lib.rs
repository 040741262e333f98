//! Parts of files: the [blocks](block) that carry them, and which of them are [there](Ranges).

pub mod block;
mod ranges;

pub use ranges::Ranges;
