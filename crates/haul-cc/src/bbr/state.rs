//! The states, and the gains in each.

/// 5.1: the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// 5.6.1: gain of pacing, and of the window.
    pub(super) fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (STARTUP_PACING_GAIN, DEFAULT_CWND_GAIN),
            Self::Drain => (DRAIN_PACING_GAIN, DEFAULT_CWND_GAIN),
            Self::Down => (0.9, DEFAULT_CWND_GAIN),
            Self::Cruise | Self::Refill => (1.0, DEFAULT_CWND_GAIN),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        }
    }

    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// 5.5.10: loss is expected, and tells the long-term model.
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "down",
            Self::Cruise => "cruise",
            Self::Refill => "refill",
            Self::Up => "up",
            Self::ProbeRtt => "probe rtt",
        }
    }
}

/// draft-ietf-ccwg-bbr 2.4: 4 ln 2
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
/// 2.4
const DRAIN_PACING_GAIN: f64 = 0.5;
/// 2.5
pub(super) const DEFAULT_CWND_GAIN: f64 = 2.0;
/// 2.14.2
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;
