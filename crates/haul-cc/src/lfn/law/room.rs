//! Room that the receiver makes: it sees all that comes through its link, has told others to be slower, and says to this flow what they leave.
//!
//! To find that by itself takes seconds, for each attempt at more is a round trip or two. So it is taken at once, but no more than twice what arrives, as a slow start would take in a round trip.
//! What others leave is theirs until the queue that they have filled is gone: an offer waits for that, for a while.
//! A receiver may be wrong, or mean harm to others on the way: where less than a third of what was taken arrives, it is believed again only after a while, four times as long each time.

use std::time::Duration;

use haul_units::{BitRate, Time};

/// What came of the room that was taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    /// What the receiver has room for, and until when that holds.
    offer: Option<(f64, Time)>,
    /// What arrived before it was last taken, and what was hoped for.
    taken: Option<(f64, f64)>,
    /// Nothing is believed before.
    next: Time,
    wait: Duration,
}

impl Room {
    /// The receiver has room for this rate.
    pub(super) fn offer(&mut self, now: Time, rate: BitRate, min_rtt: Duration) {
        self.offer = Some((rate.as_bps() as f64, now + (min_rtt * VALID_RTTS).max(LEAST)));
    }

    /// Something waits to be taken.
    pub(super) const fn is_offered(&self) -> bool {
        self.offer.is_some()
    }

    /// The rate to go on with where so much arrives, if there is room for more; none: as before.
    pub(super) fn take(&mut self, now: Time, arriving_bps: f64, min_rtt: Duration) -> Option<f64> {
        let (rate_bps, until) = self.offer?;
        if now > until {
            self.offer = None;
            return None;
        }
        if now < self.next {
            return None;
        }
        if let Some(taken) = self.taken.take() {
            let came = has_come(taken, arriving_bps);
            self.wait = if came { Duration::ZERO } else { (self.wait * RARER).clamp(WAIT, WAIT_MAX) };
            if !came {
                self.next = now + self.wait;
                return None;
            }
        }
        let bps = rate_bps.min(arriving_bps * MOST);
        if bps <= arriving_bps {
            self.offer = None;
            return None;
        }
        self.taken = Some((arriving_bps, bps));
        // Before that nothing of it can have arrived for as long as an epoch.
        self.next = now + (min_rtt * 2).max(LEAST);
        Some(bps)
    }

    /// More is lost than the path loses, and so much arrives: the rate to go back to, where what was taken is not there.
    pub(super) fn back_to(&self, arrived_bps: f64) -> Option<f64> {
        self.taken.filter(|taken| !has_come(*taken, arrived_bps)).map(|(before, _)| before.max(arrived_bps))
    }
}

fn has_come((before, hoped): (f64, f64), arriving_bps: f64) -> bool {
    arriving_bps >= before + (hoped - before) * CAME
}

/// As a slow start, RFC 9002 7.3.1, does in a round trip.
const MOST: f64 = 2.0;
/// As an attempt at more, `phase/up.rs`: the mean of an epoch is behind.
const CAME: f64 = 1.0 / 3.0;
/// Until the receiver has seen what came of it, and says so again.
const VALID_RTTS: u32 = 4;
/// Two epochs on short paths.
const LEAST: Duration = Duration::from_millis(200);
const WAIT: Duration = Duration::from_secs(2);
/// Three that are wrong reach the longest wait.
const RARER: u32 = 4;
/// What a receiver that lies can have overflow is 1 % of the time then.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn room_is_doubled_into_while_it_arrives() {
        let (mut room, mut bps, mut now) = (Room::default(), 1e6, Time::ZERO);
        for _ in 0..6 {
            room.offer(now, BitRate::mbps(50), RTT);
            bps = room.take(now, bps, RTT).expect("there is room");
            now += RTT * 2;
        }
        assert!((bps - 50e6).abs() < 1.0, "{bps}");
        assert_eq!(room.take(now, bps, RTT), None, "all is taken");
    }

    #[test]
    fn room_that_is_not_there_is_believed_ever_more_rarely() {
        let mut room = Room::default();
        let is_taken = |n: &u32| {
            room.offer(Time::ZERO + RTT * *n, BitRate::mbps(50), RTT);
            room.take(Time::ZERO + RTT * *n, 1e6, RTT).is_some()
        };
        let taken = (0..1200).filter(is_taken).count();
        assert!((3..12).contains(&taken), "{taken} times in 120 s");
    }
}
