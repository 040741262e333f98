//! What a phase tells the controller to do.

/// Where to go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Stay,
    Startup,
    /// Back to the search that startup has left.
    Resume,
    Drain,
    Cruise,
    Up,
    Down,
    ProbeRtt,
    Contest,
    /// No attempt at more for a while.
    Wait,
}
