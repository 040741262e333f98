//! What a thing is to have, and what became of that.

use crate::{Attribute, Keep, Reach};

/// What a thing is to have.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// All of it, by the names.
    pub list: &'a [Attribute],
    /// What of it counts.
    pub keep: Keep,
    /// Whose right it is to set it.
    pub reach: Reach,
    /// Permission bits, 0..=0o777, of a thing that was there before; none: they are right, or become so later. Only where ACLs count.
    pub mode: Option<u32>,
    /// Whether it is done, or only looked at.
    pub writes: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Something was another, or would have been.
    pub changed: bool,
    /// Some of the list is left out, for lack of the right.
    pub left_out: bool,
}
