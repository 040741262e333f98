//! The trains: how long and how far apart they are, and what they say of the path.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use super::{LEAST_TRAIN_PKTS, MOST_TRAIN_PKTS, Manner, Quick, Stage, Verdict};
use crate::dispersion::TOGETHER;
use crate::lfn::measure::{LEAST_PIPE_PKTS, Path};
use crate::{AckSample, DispersionSample};

impl Quick {
    /// For how long the newest train has been leaving: nothing that left together makes it longer.
    pub(super) fn note_leaving(&mut self, now: Time) {
        let count = self.leaving.len();
        match self.leaving.last_mut() {
            Some((_, until)) if now <= *until + TOGETHER => *until = now,
            _ if count < MOST_LEAVING => self.leaving.push((now, now)),
            _ => {}
        }
    }

    /// The scout has arrived: trains follow that its queue holds, or the jump where they could be no longer than the scout.
    pub(super) fn follow_scout(&mut self, ack: &AckSample, path: &Path) -> Verdict {
        let scout = self.trains.last().copied().filter(|scout| scout.steps >= SCOUT_STEPS);
        if self.trains_sent == 0 || scout.is_none() && !self.has_arrived(ack) {
            return Verdict::Continue;
        }
        self.stage = Stage::Reconnaissance;
        let is_slow =
            |scout: &DispersionSample| scout.rate().bytes_in(path.min_rtt() / SLOW_PART) < self.packet * LEAST_TRAIN_PKTS;
        if let Some(scout) = scout.filter(|scout| is_slow(scout) && self.is_exact(path, scout)) {
            return self.jump(ack, path, scout.rate().as_bps() as f64);
        }
        self.reconnoitre_by(ack.now, scout)
    }

    /// Whether all trains have, or are gone: something else may be in flight all the time.
    fn has_arrived(&self, ack: &AckSample) -> bool {
        ack.in_flight == Bytes::ZERO || self.waited_rounds > ARRIVING_ROUNDS
    }

    /// Trains that are as long as what is known allows.
    fn reconnoitre_by(&mut self, now: Time, scout: Option<DispersionSample>) -> Verdict {
        (self.scout, self.since) = (scout, now);
        (self.opens, self.first_delay, self.risen) = (false, None, None);
        self.trains.clear();
        (self.trains_sent, self.waited_rounds) = (0, 0);
        // The pacer owes nothing for the time in which nothing was to be sent.
        self.train_left = self.train();
        Verdict::Continue
    }

    /// What the trains of a gentle start say besides the rate, if it is not to jump yet.
    fn hesitate(&mut self, ack: &AckSample, path: &Path) -> Option<Verdict> {
        if std::mem::take(&mut self.opens)
            && let Some(delay) = ack.queue_delay
        {
            match self.first_delay {
                None => self.first_delay = Some(delay),
                Some(first) => self.risen = self.risen.or_else(|| Some(delay.saturating_sub(first))),
            }
        }
        let all_arrived = self.trains_sent > 0 && self.has_arrived(ack);
        if self.risen.is_none() && !all_arrived {
            return Some(Verdict::Continue);
        }
        let Some((target_bps, known)) = self.target(path) else { return Some(Verdict::Unknown) };
        // What the first train has put into the queue is still there: others have filled the gap after it.
        let train_time = BitRate::from_bps(target_bps as u64).time_for(self.train());
        if self.risen.is_some_and(|risen| risen > train_time / 2) {
            return Some(Verdict::Unknown);
        }
        let longest = self.trains.iter().copied().max_by_key(DispersionSample::rate);
        // Each at least twice as long as the one before, and all to the same measure: there are four at most.
        let is_longer = |rate| self.rtt.is_some_and(|rtt| self.train_of(rate, rtt) >= self.train() * 2);
        let longer = longest.filter(|longest| !known && is_longer(longest.rate()));
        longer.map(|longer| self.reconnoitre_by(ack.now, Some(longer)))
    }

    pub(super) fn reconnoitre(&mut self, ack: &AckSample, path: &Path) -> Verdict {
        if self.has_lost_trains(ack, path) {
            return Verdict::Unknown;
        }
        if self.manner == Manner::Gentle
            && let Some(verdict) = self.hesitate(ack, path)
        {
            return verdict;
        }
        let Some((target_bps, _)) = self.target(path) else {
            self.blind_rounds += u32::from(ack.round_start && self.trains_sent > 0);
            return if self.blind_rounds > BLIND_ROUNDS { Verdict::Unknown } else { Verdict::Continue };
        };
        self.jump(ack, path, target_bps)
    }

    /// Whether a train was spread far enough to be measured. A scout has fewer reports, which make up for it where they are far apart.
    fn is_exact(&self, path: &Path, train: &DispersionSample) -> bool {
        let is_scout = self.manner == Manner::Gentle && train.steps >= SCOUT_STEPS;
        let is_spread = train.is_exact() || is_scout && train.time.is_some_and(|time| time >= SCOUT_TIME);
        // What took as long to leave was spread by the sender, who may be slow or held to a limit.
        let leaving = self.leaving.iter().find(|(from, until)| (*from..=*until).contains(&train.sent_at));
        let took = leaving.map_or(Duration::ZERO, |(from, until)| until.since(*from));
        // A quarter more than that is the path's doing.
        // What is slower than the least that is sent anyway has met a stall, or a path that shows a queue at the least.
        is_spread && train.time.is_some_and(|time| time > took * 5 / 4) && train.rate().as_bps() as f64 >= least_bps(path)
    }

    /// The rate to go for, and whether it is more than a lower bound.
    pub(super) fn target(&self, path: &Path) -> Option<(f64, bool)> {
        let remembered =
            self.remembered.filter(|learned| learned.fits(path.min_rtt())).map(|learned| learned.bandwidth.as_bps() as f64);
        let mut trains: Vec<_> = self.trains.iter().map(|train| (train.rate(), self.is_exact(path, train))).collect();
        trains.sort_unstable();
        // Trains that do not agree have been stretched by others or by hiccups of threads: the path may well bear more.
        let agree = trains.first().zip(trains.last()).is_some_and(|(least, most)| most.0.as_bps() / 2 <= least.0.as_bps());
        // The lower median: none of them is believed alone.
        let median = trains.get(trains.len().saturating_sub(1) / 2);
        match median.map(|(rate, exact)| (rate, *exact && agree)) {
            Some((rate, true)) => Some((rate.as_bps() as f64, true)),
            Some((least, false)) => {
                let least_bps = least.as_bps() as f64;
                Some(remembered.filter(|bps| *bps > least_bps).map_or((least_bps, false), |bps| (bps, true)))
            }
            None => Some((remembered.filter(|_| self.blind_rounds > 1)?, true)),
        }
    }

    /// From one train to the next.
    pub(super) fn gap(&self) -> Duration {
        // docs/controllers/quickstart.md: a fifth of a round trip, in which the last one has left the queue.
        self.rtt.map_or(UNKNOWN_GAP, |rtt| (rtt / 5).max(LEAST_GAP))
    }

    /// A train that a queue of a quarter of a round trip holds, at what the scout has found or at 100 Mbit/s.
    pub(super) fn train(&self) -> Bytes {
        if matches!(self.stage, Stage::Scout) {
            return self.scout();
        }
        let Some(rtt) = self.rtt else { return self.packet * LEAST_TRAIN_PKTS };
        match (&self.scout, self.manner) {
            (Some(scout), _) => self.train_of(scout.rate(), rtt),
            (None, Manner::Gentle) => self.packet * LEAST_TRAIN_PKTS,
            (None, Manner::Quick) => self.whole_packets(BitRate::mbps(100).bytes_in(rtt / 5)),
        }
    }

    pub(super) fn scout(&self) -> Bytes {
        self.packet * (SCOUT.as_u64() / self.packet.as_u64().max(1)).max(LEAST_SCOUT)
    }

    /// A train that a queue of a quarter of a round trip at this rate holds twice.
    fn train_of(&self, rate: BitRate, rtt: Duration) -> Bytes {
        self.whole_packets(rate.bytes_in(rtt / TRAIN_PART))
    }

    fn whole_packets(&self, bytes: Bytes) -> Bytes {
        self.packet * (bytes.as_u64() / self.packet.as_u64().max(1)).clamp(LEAST_TRAIN_PKTS, MOST_TRAIN_PKTS)
    }
}

/// What is sent on any path, bits per second: the packets that a leg needs take eight round trips, on short paths an epoch.
pub(super) fn least_bps(path: &Path) -> f64 {
    BitRate::of(path.packet() * LEAST_PIPE_PKTS, path.min_rtt().max(path.epoch_length() / 8)).as_bps() as f64
}

/// RFC 9002 7.2: the initial window, in whole packets; ten of 1472 bytes.
const SCOUT: Bytes = Bytes(14_720);
/// The second of two reports is one step after the first.
const SCOUT_STEPS: u32 = 1;
/// Two reports of four packets each are the fewest that tell a rate; what the rest says corrects it.
const LEAST_SCOUT: u64 = 8;
/// Ten times as long as a receiver sleeps that wakes up for several packets at once.
const SCOUT_TIME: Duration = Duration::from_millis(1);
/// Of a round trip: half of what a queue of a quarter of one holds.
const TRAIN_PART: u32 = 8;
/// A queue of that part of a round trip does not hold the shortest train: the scout has to do.
const SLOW_PART: u32 = 4;
/// More than leave before the jump.
const MOST_LEAVING: usize = 32;
/// Between trains: a queue at 100 Mbit/s has sent the last one by then.
const LEAST_GAP: Duration = Duration::from_millis(2);
/// Between trains where no round trip has been measured: a fifth of 50 ms.
const UNKNOWN_GAP: Duration = Duration::from_millis(10);
/// Of two round trips after a train the first is that of its own packets; what is not acknowledged by the end of the second is lost.
const ARRIVING_ROUNDS: u32 = 2;
/// Without a measurement for so long, none will come.
const BLIND_ROUNDS: u32 = 3;
