//! What a phase tells the controller to do.

/// Where to go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lfn) enum Turn {
    Stay,
    /// Back to the search that startup has left.
    Resume,
    Drain,
    Cruise,
    Up,
    Down,
    ProbeRtt,
    Compete,
    /// No attempt at more for a while.
    Wait,
}
