//! How flows of this kind divide a bottleneck among themselves: by a queue that each wants to see, shorter the faster it is.
//!
//! All flows on a bottleneck see the same queue. A flow for which it is shorter than it wants sends a little more than arrives, one for
//! which it is longer a little less; where they meet, all want the same queue and so have the same rate, whatever their round-trip times.
//! Source: the equilibrium of delay-based control (Low, Peterson, Wang 2002), with the square root of Swift's flow scaling
//! (Kumar et al. 2020, 3.5).

use std::time::Duration;

use crate::lfn::mode::Mode;

/// The queueing delay at which a flow of this rate is content.
pub(super) fn wanted_delay(mode: Mode, rate_bps: f64) -> Duration {
    AT_REFERENCE.mul_f64(mode.queue_share() * (REFERENCE_BPS / rate_bps.max(LEAST_BPS)).powf(EXPONENT))
}

/// Gain below one while the queue is longer than wanted; it drains what exceeds it within some four epochs.
pub(super) fn drain_gain(delay: Duration, wanted: Duration, epoch: Duration, most: f64) -> f64 {
    let excess = delay.saturating_sub(wanted).as_secs_f64();
    let share = most * (excess / wanted.as_secs_f64().max(1e-6)).min(1.0);
    // Four epochs; at most a quarter less, as in `DOWN_GAIN`.
    1.0 - (excess / (4.0 * epoch.as_secs_f64())).max(share).clamp(0.0, 0.25)
}

/// Gain above one while the queue is shorter than wanted.
pub(super) fn raise_gain(delay: Duration, wanted: Duration, most: f64) -> f64 {
    1.0 + most * (1.0 - delay.as_secs_f64() / wanted.as_secs_f64().max(1e-6)).clamp(0.0, 1.0)
}

/// 3 ms at 100 Mbit/s: 0.9 ms at 1 Gbit/s, 9 ms at 10 Mbit/s.
const AT_REFERENCE: Duration = Duration::from_millis(3);
const EXPONENT: f64 = 0.5;
const REFERENCE_BPS: f64 = 100e6;
/// The wanted delay is 21 ms at most.
const LEAST_BPS: f64 = 2e6;
