//! When a receive thread lets trains wait in the socket.
//!
//! Packets that a link has spaced come one by one, and to wake up for each costs more than the packet does. Until a report is due nobody asks for them, so they wait
//! in the socket until then and are taken together; the system notes when each came. Where they come so seldom that few would be taken together, each is
//! taken at once, for whoever reads it.

use std::time::Duration;

use haul_units::{Bytes, Time};

/// How long arrivals are counted: as long as reports are apart at most.
const COUNTED: Duration = Duration::from_millis(5);
/// Trains that a nap is to gather at least.
const GATHERED: u64 = 4;
/// The part of the socket's buffer that may fill meanwhile: bursts want the rest, and the system's bookkeeping its own.
const BUFFER_PART: u64 = 8;

/// What a socket has brought of late.
#[derive(Debug)]
pub(super) struct Naps {
    /// Bytes that may wait in the socket.
    room: u64,
    /// Since when it is counted.
    since: Time,
    counted: Arrivals,
    /// Of the last time that was counted, and how long that was.
    last: Option<(Arrivals, Duration)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    trains: u64,
    bytes: u64,
}

impl Naps {
    /// Of a socket with such a receive buffer.
    pub(super) fn new(buffer: Bytes) -> Self {
        Self { room: buffer.as_u64() / BUFFER_PART, since: Time::ZERO, counted: Arrivals::default(), last: None }
    }

    /// So much has been taken from the socket.
    pub(super) fn on_received(&mut self, now: Time, trains: u64, bytes: u64) {
        self.counted.trains += trains;
        self.counted.bytes += bytes;
        let took = now.since(self.since);
        if took >= COUNTED {
            self.last = Some((std::mem::take(&mut self.counted), took));
            self.since = now;
        }
    }

    /// How long to leave trains where they are, if nobody asks for them before `due`.
    pub(super) fn length(&self, now: Time, due: Time) -> Option<Duration> {
        let (arrivals, took) = self.last?;
        let nanos = |room: u64, came: u64| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).saturating_mul(room) / came.max(1);
        let fills = Duration::from_nanos(nanos(self.room, arrivals.bytes));
        let nap = due.since(now).min(COUNTED).min(fills);
        let is_worth_it = nap >= Duration::from_nanos(nanos(GATHERED, arrivals.trains));
        Some(nap).filter(|_| is_worth_it && arrivals.trains > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_micros(n)
    }

    /// After packets of 1500 bytes, one every so many microseconds, over 20 ms.
    fn after(apart_us: u64, buffer: Bytes) -> Naps {
        let mut naps = Naps::new(buffer);
        for at in (0..20_000).step_by(apart_us as usize) {
            naps.on_received(us(at), 1, 1500);
        }
        naps
    }

    #[test]
    fn trains_wait_until_a_report_is_due() {
        let naps = after(12, Bytes::mib(4));
        assert_eq!(naps.length(us(20_000), us(23_000)), Some(Duration::from_millis(3)));
        assert_eq!(naps.length(us(20_000), us(20_000)), None, "it is due");
        assert_eq!(naps.length(us(20_000), us(20_030)), None, "a nap of two packets");
    }

    #[test]
    fn few_trains_are_taken_at_once() {
        assert_eq!(after(2_000, Bytes::mib(4)).length(us(20_000), us(25_000)), None);
        assert_eq!(Naps::new(Bytes::mib(4)).length(us(0), us(5_000)), None, "nothing has come yet");
    }

    #[test]
    fn what_was_before_a_pause_says_nothing() {
        let mut naps = after(12, Bytes::mib(4));
        naps.on_received(us(1_000_000), 1, 1500);
        assert_eq!(naps.length(us(1_000_000), us(1_005_000)), None);
    }

    #[test]
    fn a_small_buffer_is_never_filled() {
        // 1 Gbit/s: 26 KiB are there in 213 us.
        let nap = after(12, Bytes::kib(208)).length(us(20_000), us(25_000)).expect("a nap");
        assert!(nap > Duration::from_micros(200) && nap < Duration::from_micros(220), "{nap:?}");
        // 40 Gbit/s in trains of 64 KB.
        let mut naps = Naps::new(Bytes::kib(208));
        for at in (0..20_000).step_by(13) {
            naps.on_received(us(at), 1, 64_000);
        }
        assert_eq!(naps.length(us(20_000), us(25_000)), None);
    }
}
