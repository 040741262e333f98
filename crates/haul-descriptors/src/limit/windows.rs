//! Millions of handles: what is kept open is bounded by what a copy gains of it.

/// What the process may open, more or less.
pub(crate) const fn limit() -> usize {
    1 << 16
}
