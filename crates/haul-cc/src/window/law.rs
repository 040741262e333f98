//! What a law of a window is, and what it is told.

use std::fmt::Debug;

use haul_units::Bytes;

use crate::{AckSample, Company};

/// How a window grows and shrinks once slow start is over. Windows in packets.
pub(crate) trait Law: Clone + Debug + Default + Send {
    /// The algorithm's name.
    const NAME: &'static str;
    /// Packets at the start. RFC 6928
    const INITIAL_WINDOW: f64 = 10.0;
    /// It has a rule of its own for several paths, and is not to be divided.
    const COUPLED: bool = false;
    /// How the first window is found.
    type Start: SlowStart;

    /// The window after packets have been acknowledged.
    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64;

    /// The window after congestion.
    fn cut(&mut self, window: f64, cause: Cause) -> f64;

    /// The window after packets have been acknowledged while much of it was not used.
    fn grow_unused(&mut self, window: f64, _ack: &Acked<'_>) -> f64 {
        window
    }

    /// Time in which the application sets the pace does not count.
    fn pause(&mut self) {}

    /// Everything in flight was lost: the window starts from the minimum.
    fn collapse(&mut self) {
        self.pause();
    }

    /// The packet size has changed: windows remembered are to be multiplied.
    fn rescale(&mut self, _factor: f64) {}

    /// The phase, for people.
    fn phase(&self) -> &'static str {
        "avoidance"
    }

    /// Rate of sending in windows a round trip.
    fn pacing_gain(&self) -> f64 {
        AVOIDANCE_GAIN
    }
}

/// How a window is found while nothing is known.
pub(crate) trait SlowStart: Clone + Debug + Default + Send {
    /// Packets have been acknowledged.
    fn on_ack(&mut self, window: f64, ack: &Acked<'_>) -> Verdict;
}

/// What slow start is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// Grow by so many packets for each one acknowledged.
    Grow(f64),
    /// Leave slow start, with this window.
    Leave(f64),
}

/// Packets newly acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acked<'a> {
    /// How many, of the full size.
    pub(crate) packets: f64,
    /// Nothing has been lost yet: the first slow start.
    pub(crate) first: bool,
    /// All that was measured.
    pub(crate) sample: &'a AckSample,
    /// A full packet.
    pub(crate) packet: Bytes,
    /// The paths that grow together, this one first; nobody where they do not.
    pub(crate) company: &'a Company,
}

/// What congestion was told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Packets were lost.
    Loss,
    /// Packets were marked.
    Mark,
}

/// RFC 9002 7.2: two packets.
pub(crate) const MIN_WINDOW: f64 = 2.0;
/// In avoidance: room for the window to rule, not the pacer.
pub(crate) const AVOIDANCE_GAIN: f64 = 1.25;
