//! One server: what it has been told to send, and how fast it does.

use std::collections::VecDeque;
use std::time::Duration;

use haul_units::Time;

use super::piece::PieceId;
use super::settings::ServerProfile;
use crate::catalogue::{FileId, SetId};
use crate::load::Load;

/// A server that nobody has measured is taken for one of 1 Gbit/s, the lower end of what haul is made for: too much is mended by taking
/// from it, too little would leave it without work for a round trip.
const UNKNOWN_BYTES_PER_S: f64 = 125e6;
/// The rate is an average over so long, or over two round trips: what a disk and a path do in a moment says little.
const AVERAGED_S: f64 = 1.0;
/// Bytes are counted together for so long, at the least, before they say a rate: reports come in bursts.
const COUNTED: Duration = Duration::from_millis(100);
/// What a server has to send beyond two of its round trips and a block, so that it does not wait for orders.
const AHEAD: Duration = Duration::from_millis(100);
/// A silence of this, or of three round trips, is enough where there is a sign besides that a server is gone: bytes of one that lives come far more often, and what comes late counts all the same.
const DOUBTED: Duration = Duration::from_millis(500);
/// Small files that a server may have to send at once. Enough for 10,000 a second at 100 ms.
const MAX_PIECES: usize = 1024;

#[derive(Debug)]
pub(super) struct Server {
    pub profile: ServerProfile,
    pub is_up: bool,
    /// Silent for too long; gets nothing until it is heard.
    pub is_stalled: bool,
    /// There is a sign that it is gone: a shorter silence will do.
    pub is_doubted: bool,
    /// In the order in which they were told.
    pub pieces: VecDeque<PieceId>,
    /// Bytes of those that have not come.
    pub outstanding: u64,
    /// When it last had nothing to send, or something of it arrived.
    pub heard: Time,
    /// Gets nothing new before.
    pub rests_until: Time,
    /// Bytes that came from it first.
    pub delivered: u64,
    /// Files that it holds and that have not come.
    pub files_left: usize,
    /// Sets that it is in.
    pub sets: Vec<SetId>,
    /// Those with work, the ones that others can help with least first; what is before `next` was empty.
    pub order: Vec<SetId>,
    pub next: usize,
    /// Number of the balance that `order` was made after.
    pub ordered_at: u64,
    /// Whole files dealt to it beforehand (round robin).
    pub dealt: VecDeque<FileId>,
    /// Nothing could be taken from anybody: not tried again before.
    pub retry: Time,
    /// Which part of a processor its machine has for it, as far as was told: between equals the larger one is asked first.
    pub share: f64,
    /// Bytes per second.
    rate: f64,
    is_measured: bool,
    /// Arrivals since then that have not been counted into the rate; none while it has nothing to send.
    counting: Option<(Time, u64)>,
}

impl Server {
    pub fn new() -> Self {
        Self {
            profile: ServerProfile::at(Duration::ZERO),
            is_up: false,
            is_stalled: false,
            is_doubted: false,
            pieces: VecDeque::new(),
            outstanding: 0,
            heard: Time::ZERO,
            rests_until: Time::ZERO,
            delivered: 0,
            files_left: 0,
            sets: Vec::new(),
            order: Vec::new(),
            next: 0,
            ordered_at: 0,
            dealt: VecDeque::new(),
            retry: Time::ZERO,
            share: 1.0,
            rate: UNKNOWN_BYTES_PER_S,
            is_measured: false,
            counting: None,
        }
    }

    pub fn come_up(&mut self, profile: ServerProfile, now: Time) {
        let known = profile.rate.map(|rate| rate.bytes_per_second() as f64);
        self.profile = profile;
        self.is_up = true;
        (self.is_stalled, self.is_doubted) = (false, false);
        self.heard = now;
        self.retry = Time::ZERO;
        self.counting = None;
        if !self.is_measured {
            let share = profile.load.map(Load::share);
            self.share = share.unwrap_or(self.share);
            let expected = share.map(|share| UNKNOWN_BYTES_PER_S * share);
            self.rate = known.or(expected).unwrap_or(self.rate).max(1.0);
        }
    }

    /// Can be given work.
    pub fn is_usable(&self) -> bool {
        self.is_up && !self.is_stalled
    }

    /// Has something to send, as far as is known.
    pub fn is_sending(&self) -> bool {
        self.is_usable() && !self.pieces.is_empty()
    }

    /// Bytes per second to be expected of it.
    pub fn rate(&self) -> f64 {
        self.profile.limit.map_or(self.rate, |limit| self.rate.min(limit.bytes_per_second() as f64)).max(1.0)
    }

    /// What it brought of late, where anything did come.
    pub fn measured_rate(&self) -> Option<f64> {
        self.is_measured.then_some(self.rate)
    }

    /// Seconds until it has sent what it has been told, if nothing is taken from it.
    pub fn busy_s(&self) -> f64 {
        self.outstanding as f64 / self.rate()
    }

    pub fn rtt_s(&self) -> f64 {
        self.profile.rtt.as_secs_f64()
    }

    /// Its round trips take so long at present.
    pub fn on_rtt(&mut self, rtt: Duration) {
        self.profile.rtt = rtt;
    }

    /// Will soon have nothing to send. What it sends is heard of a `unit` at a time.
    ///
    /// Until an order reaches it, it sends a round trip's worth (what is under way, and what leaves meanwhile), and what has come of a block that is not whole looks as if it had not been
    /// sent. So much it must have been told at the least, or it waits for orders, seems to be as slow as that, and is told even less.
    pub fn is_hungry(&self, now: Time, rests: bool, unit: u64) -> bool {
        if !self.is_usable() || self.files_left == 0 || now < self.rests_until || self.pieces.len() >= MAX_PIECES {
            return false;
        }
        if rests {
            return self.pieces.is_empty();
        }
        let ahead = self.profile.rtt.as_secs_f64() * 2.0 + AHEAD.as_secs_f64();
        self.pieces.is_empty() || (self.outstanding as f64) < self.rate() * ahead + unit as f64
    }

    /// Bytes of it have arrived, whether or not they had come before.
    pub fn on_arrived(&mut self, bytes: u64, now: Time) {
        self.heard = now;
        self.is_stalled = false;
        let (since, counted) = match &mut self.counting {
            // What has come at the beginning says nothing about how long it took.
            None => return self.counting = Some((now, 0)),
            Some((since, counted)) => {
                *counted += bytes;
                (*since, *counted)
            }
        };
        let passed = now.since(since);
        if passed < COUNTED.max(self.profile.rtt / 2) {
            return;
        }
        let passed = passed.as_secs_f64();
        let sample = counted as f64 / passed;
        let over_s = AVERAGED_S.max(2.0 * self.rtt_s());
        let rate = if self.is_measured { averaged(self.rate, sample, passed, over_s) } else { sample };
        self.rate = rate.max(1.0);
        self.is_measured = true;
        self.counting = Some((now, 0));
    }

    /// It has nothing to send any more: the time until it has does not count.
    ///
    /// One that ran dry before a count was full is faster than what it was told by. It is taken for twice as fast, or for what this
    /// count says if that is less: else it would be told as little the next time, run dry as soon, and never be measured.
    pub fn on_idle(&mut self, now: Time) {
        let Some((since, counted)) = self.counting.take() else { return };
        let passed = now.since(since).as_secs_f64();
        if passed > 0.0 {
            self.rate = self.rate.max((counted as f64 / passed).min(self.rate * 2.0));
        }
    }

    /// When it has been silent for too long, if it has something to send.
    pub fn stalls_at(&self, patience: Duration) -> Option<Time> {
        let waits = self.is_usable() && !self.pieces.is_empty();
        waits.then(|| self.heard + self.patience(patience))
    }

    /// One that was silent, and whose work others have done, may be told something again: nobody would hear that it is well otherwise. So may one that nobody else can stand in for.
    pub fn is_tried_again_at(&self, patience: Duration, is_needed: impl FnOnce() -> bool) -> Option<Time> {
        let rests = self.is_up && self.is_stalled && (self.pieces.is_empty() || is_needed());
        rests.then(|| self.heard + self.patience(patience) * 2)
    }

    fn patience(&self, patience: Duration) -> Duration {
        let long = patience.max(self.profile.rtt * 8);
        if self.is_doubted { long.min(DOUBTED.max(self.profile.rtt * 3)) } else { long }
    }
}

/// An average over `over_s` that was `before`, with a sample of the `passed_s` since.
pub(super) fn averaged(before: f64, sample: f64, passed_s: f64, over_s: f64) -> f64 {
    before + (sample - before) * (1.0 - (-passed_s / over_s).exp())
}
