//! ProbeRTT: half a pipe for 200 ms when no round-trip time near the smallest was seen for 5 s.
//!
//! Source: draft-ietf-ccwg-bbr 5.3.4.

use std::time::Duration;

use haul_units::Time;

use super::Bbr;
use super::state::State;
use crate::AckSample;

/// When the smallest round-trip time was seen, and how far a probe is.
#[derive(Debug, Clone)]
pub(super) struct ProbeRtt {
    min_delay: Option<Duration>,
    min_at: Time,
    /// When what is in flight has been small for long enough; unknown until it is small.
    done_at: Option<Time>,
    round_done: bool,
    /// Sending has just begun again: the queue was empty.
    pub(super) idle_restart: bool,
}

impl ProbeRtt {
    pub(super) fn new(now: Time) -> Self {
        Self { min_delay: None, min_at: now, done_at: None, round_done: false, idle_restart: false }
    }
}

impl Bbr {
    /// 5.3.4.3: UpdateMinRTT and CheckProbeRTT
    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample) {
        let probe = &mut self.probe_rtt;
        let expired = ack.now.since(probe.min_at) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt
            && (expired || probe.min_delay.is_none_or(|min| rtt < min))
        {
            probe.min_delay = Some(rtt);
            probe.min_at = ack.now;
        }
        if let Some(min) = probe.min_delay {
            self.model.update_min_rtt(ack.now, min, probe.min_at);
        }
        if self.state != State::ProbeRtt && expired && !self.probe_rtt.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt.done_at = None;
            self.cycle.stop_probing();
            self.model.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.acked.as_u64() > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, ack: &AckSample) {
        match self.probe_rtt.done_at {
            None if ack.in_flight.as_u64() as f64 <= self.probe_rtt_window() => {
                self.probe_rtt.done_at = Some(ack.now + PROBE_RTT_DURATION);
                self.probe_rtt.round_done = false;
                self.model.start_round();
            }
            None => {}
            Some(done_at) => {
                self.probe_rtt.round_done |= self.model.round_start;
                if self.probe_rtt.round_done && ack.now > done_at {
                    self.probe_rtt.min_at = ack.now;
                    self.restore_window();
                    self.exit_probe_rtt(ack.now);
                }
            }
        }
    }

    fn exit_probe_rtt(&mut self, now: Time) {
        self.model.reset_shortterm();
        if self.full_pipe.reached {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}

/// draft-ietf-ccwg-bbr 2.14.2
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// 2.14.2
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
