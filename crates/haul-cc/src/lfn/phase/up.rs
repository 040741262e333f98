//! The attempt at more bandwidth.
//!
//! It begins with a little more than what arrives and takes larger steps as long as no queue forms, so that a path that has become ten
//! times as fast is filled within some ten round trips. It ends once the queue is longer by a fixed time than it was before: a flow with
//! a small share needs longer for that than one with a large share and gains more, which is what makes shares equal in the end.

use std::time::Duration;

use super::turn::Turn;
use crate::AckSample;
use crate::lfn::law::Flow;
use crate::lfn::measure::{Buildup, Summary};
use crate::rate_sampler::LONG_PATH;

/// An attempt that is under way.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Up {
    step: usize,
    epochs: u32,
    /// Queueing delay at its start, and bandwidth at the start of the step.
    delay: Duration,
    bandwidth_bps: f64,
    flat_steps: u32,
    /// Epochs in a row in which the application gave too little.
    limited_epochs: u32,
    buildup: Buildup,
}

impl Up {
    pub(in crate::lfn) fn new(flow: &Flow) -> Self {
        Self {
            step: 0,
            epochs: 0,
            delay: flow.path.queue_delay(),
            bandwidth_bps: flow.path.bandwidth_bps(),
            flat_steps: 0,
            limited_epochs: 0,
            buildup: Buildup::default(),
        }
    }

    pub(in crate::lfn) fn gain(&self) -> f64 {
        STEPS[self.step]
    }

    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, summary: Option<&Summary>, flow: &mut Flow) -> Turn {
        self.delay = self.delay.min(flow.path.queue_delay());
        let threshold = self.delay + flow.path.queue_threshold(flow.mode().up_part()).max(flow.path.jitter() * 2);
        if self.buildup.on_delay(ack.now, flow.path.queue_delay(), threshold, flow.path.min_rtt()) {
            return Turn::Down;
        }
        let Some(summary) = summary else { return Turn::Stay };
        // Where round trips are short the next attempt comes soon.
        if summary.app_limited && flow.path.min_rtt() < LONG_PATH {
            return Turn::Cruise;
        }
        // The first epoch of a step still shows the one before.
        self.epochs += 1;
        if self.epochs < 2 {
            return Turn::Stay;
        }
        let excess = self.gain() - 1.0;
        // A third of what was tried for, for the mean of an epoch is behind.
        let grew = flow.path.bandwidth_bps() >= self.bandwidth_bps * (1.0 + excess / 3.0);
        if summary.app_limited && !grew {
            // Such an epoch tells nothing; several do that nobody wants more.
            self.limited_epochs += 1;
            return if self.limited_epochs >= MAX_LIMITED_EPOCHS { Turn::Cruise } else { Turn::Stay };
        }
        self.limited_epochs = 0;
        // A quarter of what was too much: the rest may stand in the queue.
        let lossy = summary.loss > flow.path.base_loss() + (excess / 4.0).max(LEAST_LOSS);
        if lossy && !grew {
            flow.stop_at_loss(summary);
            return Turn::Down;
        }
        self.flat_steps = if grew { 0 } else { self.flat_steps + 1 };
        if self.flat_steps >= MAX_FLAT_STEPS {
            return Turn::Down;
        }
        // Larger steps only where there is room: with a queue, what is gained is taken from others.
        if grew && flow.path.queue_delay() <= flow.standing_threshold() {
            self.step = (self.step + 1).min(STEPS.len() - 1);
        }
        self.bandwidth_bps = flow.path.bandwidth_bps();
        self.epochs = 0;
        Turn::Stay
    }
}

/// Pacing gains.
const STEPS: [f64; 6] = [1.15, 1.25, 1.5, 2.0, 3.0, 4.94];
const MAX_FLAT_STEPS: u32 = 2;
/// Longer pauses of an application end the attempt: nobody wants more.
const MAX_LIMITED_EPOCHS: u32 = 4;
/// As much as BBR takes for no congestion, draft-ietf-ccwg-bbr 2.7.
const LEAST_LOSS: f64 = 0.02;
