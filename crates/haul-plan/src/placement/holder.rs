//! One member: what it was given, how fast it takes it, how much room it has.

use std::collections::VecDeque;
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

/// Before a rate is known, so much is given at once: what a gigabit carries in an eighth of a second. With what arrives of it the rate is known well enough to give more.
const UNKNOWN: u64 = 16 << 20;
/// A member has work for so long beyond two of its round trips: word of what has arrived comes five times a second, and names become durable once a second.
const AHEAD: Duration = Duration::from_secs(2);
/// The rate is an average over so long.
const AVERAGED_S: f64 = 1.0;
/// Bytes are counted together for so long, at the least, before they say a rate.
const COUNTED: Duration = Duration::from_millis(100);
/// A member with work that is silent for longer than this counts as slower by the time it is silent.
const SILENT_S: f64 = 2.0;
/// Files that a member may have at once: enough for 1,000 a second, which become durable once a second, at a round trip of a second.
const MAX_FILES: usize = 4096;
/// Of the free room this part is left, for what a file system needs itself: a hundredth.
const LEFT_OF: u64 = 100;

#[derive(Debug)]
pub(super) struct Holder {
    pub is_up: bool,
    rtt: Duration,
    /// Room for what has not been given yet; none where nobody knows.
    room: Option<u64>,
    /// Files of this size, and larger ones, did not fit: whatever it says of its room.
    too_large: u64,
    /// Given and not known to be finished, the earliest first.
    pub under_way: VecDeque<(u32, u64)>,
    /// Bytes in these.
    queued: u64,
    /// Bytes in all that it was given or has.
    given_bytes: u64,
    /// What it says it has of that.
    done_files: u64,
    done_bytes: u64,
    /// Of these files, the ones that are not under way any more.
    finished_files: u64,
    /// Files dealt to it that it has not been given.
    pub dealt: VecDeque<u32>,
    /// How far it has looked through the files that others have begun.
    pub looked: usize,
    /// Gets nothing new before.
    pub rests_until: Time,
    /// Which part of a processor its machine has for it, as far as was told.
    pub share: f64,
    /// Bytes per second, of late.
    rate: Option<f64>,
    /// When it was last heard of, or got something to do.
    heard: Time,
    counting: Option<(Time, u64)>,
}

impl Holder {
    pub fn new() -> Self {
        Self {
            is_up: false,
            rtt: Duration::ZERO,
            room: None,
            too_large: u64::MAX,
            under_way: VecDeque::new(),
            queued: 0,
            given_bytes: 0,
            done_files: 0,
            done_bytes: 0,
            finished_files: 0,
            dealt: VecDeque::new(),
            looked: 0,
            rests_until: Time::ZERO,
            share: 1.0,
            rate: None,
            heard: Time::ZERO,
            counting: None,
        }
    }

    pub fn up(&mut self, rtt: Duration, now: Time) {
        (self.is_up, self.rtt, self.heard) = (true, rtt, now);
    }

    pub fn down(&mut self) {
        self.is_up = false;
        self.under_way.clear();
        self.dealt.clear();
        self.queued = 0;
    }

    /// Bytes that it was given and has not got.
    pub fn outstanding(&self) -> u64 {
        // The files bound it: of one with holes, less arrives than it is long.
        self.given_bytes.saturating_sub(self.done_bytes).min(self.queued)
    }

    /// Whether all that it was given is finished.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether it may be given something more now.
    pub fn has_time(&self, pause: Duration, now: Time) -> bool {
        if now < self.rests_until {
            return false;
        }
        if self.is_idle() {
            return true;
        }
        let ahead = AHEAD + 2 * self.rtt;
        let unknown = (UNKNOWN as f64 * self.share) as u64;
        let most = self.rate.map_or(unknown, |rate| (rate * ahead.as_secs_f64()) as u64).max(UNKNOWN / 16);
        pause.is_zero() && self.under_way.len() < MAX_FILES && self.outstanding() < most
    }

    pub fn has_room(&self, size: u64) -> bool {
        size < self.too_large && self.room.is_none_or(|room| size <= room)
    }

    pub fn room(&self) -> Option<u64> {
        self.room
    }

    pub fn given_bytes(&self) -> u64 {
        self.given_bytes
    }

    pub fn finished_files(&self) -> u64 {
        self.finished_files
    }

    pub fn is_full_for(&mut self, size: u64) {
        self.too_large = self.too_large.min(size);
    }

    pub fn set_room(&mut self, free: Bytes) {
        let free = free.as_u64();
        self.room = Some((free - free / LEFT_OF).saturating_sub(self.outstanding()));
    }

    /// Bytes per second, if it has been measured; less while it is silent.
    pub fn rate(&self, now: Time) -> Option<f64> {
        let silent = now.since(self.heard).as_secs_f64();
        let silent = if self.is_idle() { 0.0 } else { silent };
        self.rate.map(|rate| rate * (SILENT_S / silent.max(SILENT_S)))
    }

    pub fn bit_rate(&self, now: Time) -> BitRate {
        BitRate::from_bps(self.rate(now).map_or(0, |rate| (rate * 8.0) as u64))
    }

    pub fn give(&mut self, file: u32, size: u64, now: Time) {
        if self.is_idle() {
            (self.heard, self.counting) = (now, Some((now, self.done_bytes)));
        }
        self.room = self.room.map(|room| room.saturating_sub(size));
        self.count(size);
        self.under_way.push_back((file, size));
    }

    /// It has this already: its word on that comes before its word on anything that is on its way.
    pub fn has(&mut self, file: u32, size: u64) {
        self.count(size);
        self.under_way.push_front((file, size));
    }

    fn count(&mut self, size: u64) {
        self.queued = self.queued.saturating_add(size);
        self.given_bytes = self.given_bytes.saturating_add(size);
    }

    /// It was given this and will not have it.
    pub fn take_back(&mut self, file: u32, size: u64) {
        self.given_bytes -= size;
        match self.under_way.iter().position(|(one, _)| *one == file) {
            Some(at) => {
                self.under_way.remove(at);
                self.queued -= size;
            }
            // Its word on another was taken for one on this: the other is finished, and is under way here still.
            None => self.finished_files = self.finished_files.saturating_sub(1),
        }
    }

    /// It says how much it has.
    pub fn progress(&mut self, bytes: u64, files: u64, now: Time) {
        if bytes != self.done_bytes || files != self.done_files {
            self.heard = now;
        }
        (self.done_bytes, self.done_files) = (bytes, files.max(self.done_files));
        let Some((since, before)) = self.counting else { return };
        let time = now.since(since);
        if time >= COUNTED {
            let rate = bytes.saturating_sub(before) as f64 / time.as_secs_f64();
            let weight = (time.as_secs_f64() / AVERAGED_S).min(1.0);
            self.rate = Some(self.rate.map_or(rate, |old| old + (rate - old) * weight));
            self.counting = Some((now, bytes));
        }
    }

    /// The next of those that it has finished, as far as its word goes: it counts, and names none.
    pub fn finished(&mut self, pause: Duration, now: Time) -> Option<u32> {
        if self.finished_files >= self.done_files {
            return None;
        }
        let (file, size) = self.under_way.pop_front()?;
        self.finished_files += 1;
        self.queued -= size;
        self.rests_until = now + pause;
        if self.is_idle() {
            self.counting = None;
        }
        Some(file)
    }
}
