//! Trains of filler: they measure a path whose application has nothing to say yet.
//!
//! Programs that greet each other first, as rsync's two ends do, leave the path idle for its first round trips. A few packets of filler tell by then what
//! the path carries, and the first data can leave at half of that.
//!
//! ```text
//! round trip  0  a scout: the shortest train that can be measured
//!             1  three trains of a fifth of a round trip at the rate that it found, a fifth of a round trip apart
//! ```
//! A slow path is not filled up with it: the scout is what a TCP would send at first, and what follows is sized by it.

use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::DispersionSample;
use crate::dispersion::TOGETHER;

/// Trains in all, the scout included.
const MOST: usize = 4;

/// The filler of one path.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct Fillers {
    /// When the first packets of each train left.
    sent_at: Vec<Time>,
    /// What is left to send of the train that is leaving.
    left: Bytes,
}

/// What trains may be.
#[derive(Debug, Clone, Copy)]
pub(in crate::lfn) struct Sizes {
    /// Filler leaves in whole packets.
    pub(in crate::lfn) packet: Bytes,
    /// The shortest train that is measured.
    pub(in crate::lfn) least: Bytes,
    /// The longest.
    pub(in crate::lfn) most: Bytes,
    /// From one train to the next.
    pub(in crate::lfn) gap: Duration,
}

impl Fillers {
    /// The filler to send next, and when; `scout`, the first measurement.
    pub(in crate::lfn) fn next(&self, scout: Option<&DispersionSample>, sizes: Sizes) -> Option<(Time, Bytes)> {
        let Some(&last) = self.sent_at.last() else { return Some((Time::ZERO, sizes.least)) };
        if self.left >= sizes.packet {
            return Some((Time::ZERO, self.left));
        }
        let train = scout?.rate().bytes_in(sizes.gap).min(sizes.most);
        (self.sent_at.len() < MOST && train >= sizes.least).then(|| (last + sizes.gap, train))
    }

    /// Filler has left, of what [`Fillers::next`] gave as `train`. Less than a packet of it does not leave.
    pub(in crate::lfn) fn on_sent(&mut self, now: Time, bytes: Bytes, train: Bytes, packet: Bytes) {
        if self.left < packet {
            self.sent_at.push(now);
        }
        self.left = train.saturating_sub(bytes);
    }

    /// Data follows: the rest of a train has no use any more.
    pub(in crate::lfn) fn on_data(&mut self) {
        self.left = Bytes::ZERO;
    }

    /// Whether a train is one of filler.
    pub(in crate::lfn) fn contains(&self, sample: &DispersionSample) -> bool {
        self.sent_at.iter().any(|&at| is_of(sample, at))
    }

    /// Whether a train is the scout.
    pub(in crate::lfn) fn is_scout(&self, sample: &DispersionSample) -> bool {
        self.sent_at.first().is_some_and(|&at| is_of(sample, at))
    }
}

/// Whether a train is the one that left at a time; what the application had to say just before that is taken for a part of it.
fn is_of(sample: &DispersionSample, at: Time) -> bool {
    sample.sent_at <= at && at <= sample.sent_at + TOGETHER
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1200);
    const SIZES: Sizes = Sizes { packet: PACKET, least: Bytes(19_200), most: Bytes(211_200), gap: Duration::from_millis(20) };

    fn scout(sent_at: Time, time: Duration) -> DispersionSample {
        DispersionSample { sent_at, bytes: SIZES.least, time: Some(time), steps: 5 }
    }

    #[test]
    fn a_scout_then_trains_of_what_it_found() {
        let (mut fillers, now) = (Fillers::default(), Time::ZERO + Duration::from_secs(1));
        assert_eq!(fillers.next(None, SIZES), Some((Time::ZERO, SIZES.least)));
        fillers.on_sent(now, SIZES.least, SIZES.least, PACKET);
        assert_eq!(fillers.next(None, SIZES), None, "nothing more before it has been measured");

        // 1 Gbit/s: as long as they may be, in as many calls as it takes.
        let found = scout(now, Duration::from_micros(154));
        assert!(fillers.is_scout(&found) && fillers.contains(&found));
        assert_eq!(fillers.next(Some(&found), SIZES), Some((now + SIZES.gap, SIZES.most)));
        let later = now + Duration::from_millis(100);
        fillers.on_sent(later, Bytes(64_800), SIZES.most, PACKET);
        assert_eq!(fillers.next(Some(&found), SIZES), Some((Time::ZERO, Bytes(146_400))));
        fillers.on_sent(later, Bytes(146_400), Bytes(146_400), PACKET);
        assert_eq!(fillers.next(Some(&found), SIZES), Some((later + SIZES.gap, SIZES.most)));
        fillers.on_sent(later + SIZES.gap, SIZES.most, SIZES.most, PACKET);
        fillers.on_sent(later + SIZES.gap * 2, SIZES.most, SIZES.most, PACKET);
        assert_eq!(fillers.next(Some(&found), SIZES), None);
        let with_a_message = scout(now.before(Duration::from_micros(90)), Duration::from_micros(154));
        assert!(fillers.is_scout(&with_a_message), "a message left just before it");
        assert!(!fillers.is_scout(&scout(later, SIZES.gap)) && fillers.contains(&scout(later, SIZES.gap)));
    }

    #[test]
    fn a_train_that_is_no_whole_number_of_packets_is_followed_by_the_next() {
        let (mut fillers, now) = (Fillers::default(), Time::ZERO + Duration::from_secs(1));
        fillers.on_sent(now, SIZES.least, SIZES.least, PACKET);
        // 40 Mbit/s: trains of 100,000 bytes.
        let found = scout(now, Duration::from_micros(3840));
        for n in 1..=3 {
            let Some((due, train)) = fillers.next(Some(&found), SIZES) else { panic!("train {n}") };
            assert_eq!((due, train), (now + SIZES.gap * n, Bytes(100_000)));
            fillers.on_sent(due, PACKET * 50, train, PACKET);
            let Some((rest_due, rest)) = fillers.next(Some(&found), SIZES) else { panic!("the rest of train {n}") };
            assert_eq!((rest_due, rest), (Time::ZERO, Bytes(40_000)));
            fillers.on_sent(due, PACKET * 33, rest, PACKET);
        }
        assert_eq!(fillers.next(Some(&found), SIZES), None);
    }

    #[test]
    fn a_slow_path_gets_no_more_than_the_scout() {
        let mut fillers = Fillers::default();
        fillers.on_sent(Time::ZERO, SIZES.least, SIZES.least, PACKET);
        // 1 Mbit/s.
        assert_eq!(fillers.next(Some(&scout(Time::ZERO, Duration::from_millis(154))), SIZES), None);
    }
}
