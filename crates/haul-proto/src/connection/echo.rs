//! What goes by one path and again by another.
//!
//! - **The end of what there is to send.** Of the last packets of a path nothing that follows tells that they are lost: it takes a timer. Where another path carries data too, up to
//!   [`TAIL_PKTS`] of them go there as well as soon as nothing else is to be sent, beyond what its window lets go, as a probe may (RFC 9002 7.5): a path whose window is full
//!   would carry them a round trip later. Of the copies the first one counts. All of it together is at most a [`TAIL_PART`]th of what was sent.
//! - **Everything**, with [`Scheduler::Redundant`]: each path sends what the others have sent for the first time, and what has not arrived meanwhile. A path that is so
//!   slow that [`OWED_MAX`] runs wait for it leaves out the oldest.

use std::collections::VecDeque;

use haul_paths::{Scheduler, Turns};

use super::Connection;
use super::acked::LostRange;
use crate::config::PATHS_MAX;

/// Packets of a path that go by another one too, at the end: an initial window (RFC 9002 7.2), which a path takes at once.
pub(super) const TAIL_PKTS: u32 = 10;
/// Of all bytes sent: 3 % is what it may cost an application that pauses all the time.
const TAIL_PART: u64 = 32;
/// Runs that wait for a path.
const OWED_MAX: usize = 1024;

/// What each path is to send of what others have sent.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    owed: [VecDeque<LostRange>; PATHS_MAX as usize],
    /// Bytes that may still go twice.
    allowance: u64,
    /// Something new was sent since the last packets were looked at.
    tail_due: bool,
}

impl Echoes {
    /// A range that one path has sent is to go by another one.
    fn owe(&mut self, path: u8, range: LostRange) {
        let owed = &mut self.owed[usize::from(path) % usize::from(PATHS_MAX)];
        if owed.len() == OWED_MAX {
            owed.pop_front();
        }
        owed.push_back(range);
    }

    /// Whether nothing is to go twice, until something new is sent.
    pub(super) fn is_through(&self) -> bool {
        !self.tail_due && self.owed.iter().all(VecDeque::is_empty)
    }

    fn forget(&mut self) {
        self.owed.iter_mut().for_each(VecDeque::clear);
    }
}

impl Connection {
    /// Whether a path is to send what others have sent.
    pub(super) fn is_to_echo(&self, path: usize) -> bool {
        self.echoes.as_ref().and_then(|echoes| echoes.owed.get(path)).is_some_and(|owed| !owed.is_empty())
    }

    /// New bytes have left.
    pub(super) fn note_sent(&mut self, bytes: u64) {
        if self.paths.len() > 1 && bytes > 0 && self.config.scheduler == Scheduler::Completion {
            let echoes = self.echoes.get_or_insert_default();
            echoes.allowance = echoes.allowance.saturating_add(bytes / TAIL_PART);
            echoes.tail_due = true;
        }
    }

    /// A run that one path has just sent for the first time goes by all others too.
    pub(super) fn echo_everything(&mut self, from: u8, range: LostRange) {
        let others = self.paths.iter().filter(|path| path.id != from && path.is_usable()).map(|path| path.id);
        let echoes = self.echoes.get_or_insert_default();
        others.for_each(|other| echoes.owe(other, range));
    }

    /// Nothing waits to be sent: the last packets of each path go by another one too.
    pub(super) fn echo_the_tail(&mut self, turns: &Turns) {
        let Some(echoes) = self.echoes.as_mut().filter(|echoes| echoes.tail_due && turns.len() > 1) else { return };
        echoes.tail_due = false;
        echoes.forget();
        for from in turns.iter() {
            let Some(path) = self.paths.get(usize::from(from)) else { continue };
            // The first in the order that is another one: a packet is there soonest by it.
            let Some(to) = turns.iter().find(|to| *to != from) else { continue };
            path.sent.newest(TAIL_PKTS, |stream, offset, len, fin| {
                if let Some(left) = echoes.allowance.checked_sub(len) {
                    echoes.allowance = left;
                    echoes.owe(to, LostRange { stream, offset, len, fin });
                }
            });
        }
    }

    /// Queues the next range that others have sent and this path is to send, if there is one that has not arrived. One for each train: what a train leaves over any path may take.
    pub(super) fn queue_echo(&mut self, path: usize) {
        while let Some(range) = self.echoes.as_mut().and_then(|echoes| echoes.owed.get_mut(path)?.pop_front()) {
            if self.is_missing(&range) {
                self.send_again(&range, 0);
                return;
            }
        }
    }
}
