//! Credit of the whole connection: how far the peer may send ahead of what is consumed here, and we ahead of the peer.
//!
//! Credit counts stream bytes sent for the first time, over all streams. The window follows what arrives in a round trip, within the memory that the user
//! allows: 3 1/2 times that and `START_WINDOW`, for at 5 % loss a block of a megabyte waits two and a half round trips for its last packet; while arrivals grow, as much as a sender that triples its rate each
//! round trip can use. It travels with every acknowledgement, and as a reliable frame each quarter of a window, so that a blocked sender cannot wait
//! for a lost acknowledgement. A window that shrinks takes no credit back: it gives none until the bytes beyond it are consumed.
//!
//! What lies unread in an ordered stream is bounded by that stream's own window. It does not use up the connection's, or a few streams whose
//! readers stand still would hold up all the others; only the memory bounds it.

/// Window to start with, in bytes.
const START_WINDOW: u64 = 64 << 20;
/// Where arrivals grow by x a round trip, with x = 3: the window is told for the round trip after the one measured and used half a round trip
/// later, so it must hold x^2 (x - 1) / ln x : (x - 1) / (x ln x) = x^2 times what arrived.
const GROWTH_ROOM: u64 = 9;

/// Part of the memory that is promised to streams as soon as they are seen to carry much.
const EARLY_SHARE: u64 = 8;

/// Credit that we give.
#[derive(Debug)]
pub struct ReceiveCredit {
    window: u64,
    memory: u64,
    received: u64,
    consumed: u64,
    /// Of what was received and is not consumed, the part in ordered streams.
    ordered: u64,
    granted: u64,
    /// Granted by a reliable frame.
    told: u64,
    round_mark: u64,
    /// What arrived in the last round trip.
    arrived: u64,
    /// The most that arrived in one of the last round trips; what is longer ago counts less.
    peak: u64,
}

impl ReceiveCredit {
    /// Credit within `memory` bytes.
    pub fn new(memory: u64) -> Self {
        let window = START_WINDOW.min(memory);
        Self {
            window,
            memory,
            received: 0,
            consumed: 0,
            ordered: 0,
            granted: window,
            told: window,
            round_mark: 0,
            arrived: 0,
            peak: 0,
        }
    }

    /// Other memory from now on. What was given is not taken back.
    pub const fn set_memory(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// The memory has become large: the window is what a connection starts with.
    pub fn widen(&mut self) {
        self.window = self.window.max(Self::initial(self.memory));
    }

    /// Credit to start with, for the handshake.
    pub const fn initial(memory: u64) -> u64 {
        if memory < START_WINDOW { memory } else { START_WINDOW }
    }

    /// New bytes have arrived; false if the peer had no credit for them.
    pub fn on_received(&mut self, new: u64) -> bool {
        self.received = self.received.saturating_add(new);
        self.received <= self.granted
    }

    /// The application is done with bytes.
    pub fn on_consumed(&mut self, bytes: u64) {
        self.consumed += bytes;
    }

    /// New bytes have arrived on an ordered stream, to be read there; false if the peer had no credit for them.
    pub fn on_ordered(&mut self, new: u64) -> bool {
        self.ordered += new;
        self.on_received(new)
    }

    /// The application has read bytes of an ordered stream, or will not.
    pub fn on_read(&mut self, bytes: u64) {
        self.ordered = self.ordered.saturating_sub(bytes);
        self.on_consumed(bytes);
    }

    /// A round trip has passed.
    pub fn on_round(&mut self) {
        let arrived = self.received - self.round_mark;
        self.round_mark = self.received;
        let grows = arrived >= self.arrived + self.arrived / 2;
        self.arrived = arrived;
        // A pause must not take the window from the flow that goes on after it.
        self.peak = arrived.max(self.peak - self.peak / 8);
        let steady = self.peak.saturating_mul(7) / 2 + START_WINDOW;
        let wanted = if grows { arrived.saturating_mul(GROWTH_ROOM).max(steady) } else { steady };
        self.window = wanted.max(START_WINDOW).min(self.memory);
    }

    /// The credit to tell with an acknowledgement.
    pub fn grant(&mut self) -> u64 {
        self.granted = self.granted.max(self.limit());
        self.granted
    }

    /// How far the peer may go.
    fn limit(&self) -> u64 {
        self.consumed + (self.window + self.ordered).min(self.memory)
    }

    /// How far an ordered stream's window may grow that holds `own` unread bytes: all of the memory as long as the others hold little, then a small part
    /// of what they leave, so that streams that stand still never take it all (dynamic thresholds: Choudhury and Hahne, 1998).
    pub fn stream_bound(&self, own: u64) -> u64 {
        let others = self.ordered.saturating_sub(own);
        let free = self.memory.saturating_sub(others);
        if others <= self.memory / 4 { free } else { free / 32 }
    }

    /// The window of an ordered stream that has begun to carry much, one of `streams`: a sender that jumps to the rate of the path a round trip
    /// later has no time to wait for the window to follow. What a connection starts with, or its share of an eighth of the memory: where n streams come one after
    /// the other and then all stand still, they hold that eighth times 1 + 1/2 + .. + 1/n, less than the memory for a thousand.
    pub fn early_window(&self, streams: usize) -> u64 {
        (self.memory / EARLY_SHARE / (streams as u64).max(1)).min(Self::initial(self.memory))
    }

    /// The credit to tell by a frame of its own, once enough has been consumed since the last one.
    pub fn frame_due(&mut self) -> Option<u64> {
        let max = self.limit();
        (max > self.told && max >= self.told + self.window / 4).then(|| {
            self.told = max;
            self.grant()
        })
    }

    /// Bytes that the peer may still send.
    pub const fn room(&self) -> u64 {
        self.granted.saturating_sub(self.received)
    }

    /// The credit that the last frame told.
    pub const fn told(&self) -> u64 {
        self.told
    }

    /// Bytes received on all streams, each once.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes received and not yet consumed.
    pub const fn held(&self) -> u64 {
        self.received.saturating_sub(self.consumed)
    }
}

/// Credit that we have.
#[derive(Debug)]
pub struct SendCredit {
    max: u64,
    used: u64,
}

impl SendCredit {
    /// What the peer's handshake gave.
    pub const fn new(max: u64) -> Self {
        Self { max, used: 0 }
    }

    /// The peer gives more. Returns true if it does.
    pub fn raise(&mut self, max: u64) -> bool {
        let more = max > self.max;
        self.max = self.max.max(max);
        more
    }

    /// New bytes leave.
    pub const fn spend(&mut self, bytes: u64) {
        self.used += bytes;
    }

    /// Bytes that may leave.
    pub const fn left(&self) -> u64 {
        self.max.saturating_sub(self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_the_rate_within_memory() {
        let mut credit = ReceiveCredit::new(256 << 20);
        let mut round = |mib: u64| {
            assert!(credit.on_received(mib << 20));
            credit.on_consumed(mib << 20);
            credit.on_round();
            (credit.window >> 20, credit.grant() >> 20)
        };
        assert_eq!(round(10), (35 + 64, 10 + 35 + 64));
        assert_eq!(round(24), (9 * 24, 34 + 9 * 24), "arrivals grow");
        assert_eq!(round(48), (256, 82 + 256), "no more than the memory");
        assert_eq!(round(48), (168 + 64, 82 + 256 + 24), "arrivals stay");
        assert_eq!(round(0), (147 + 64, 82 + 256 + 24), "a pause; what was given is not taken back");
        assert!(!credit.on_received((82 + 256 + 24 - 130 + 1) << 20), "beyond the credit");
    }

    #[test]
    fn the_memory_may_change() {
        let mut credit = ReceiveCredit::new(64 << 20);
        let mut round = |memory: u64| {
            credit.set_memory(memory << 20);
            assert!(credit.on_received(60 << 20));
            credit.on_consumed(60 << 20);
            credit.on_round();
            (credit.window >> 20, credit.grant() >> 20)
        };
        assert_eq!(round(64), (64, 60 + 64));
        assert_eq!(round(1024), (210 + 64, 120 + 210 + 64));
        assert_eq!(round(32), (32, 120 + 210 + 64), "what was given is not taken back");
    }

    #[test]
    fn frames_come_each_quarter_window() {
        let mut credit = ReceiveCredit::new(40);
        assert_eq!(credit.frame_due(), None);
        assert!(credit.on_received(40));
        credit.on_consumed(9);
        assert_eq!((credit.frame_due(), credit.told()), (None, 40));
        credit.on_consumed(1);
        assert_eq!((credit.frame_due(), credit.told()), (Some(50), 50));
        assert_eq!(credit.frame_due(), None);
    }

    #[test]
    fn little_memory_makes_no_frames_that_say_nothing_new() {
        let mut credit = ReceiveCredit::new(3);
        assert_eq!(credit.frame_due(), None);
        assert!(credit.on_received(1));
        credit.on_consumed(1);
        assert_eq!((credit.frame_due(), credit.frame_due()), (Some(4), None));
        assert_eq!(ReceiveCredit::new(0).frame_due(), None);
    }

    #[test]
    fn streams_that_stand_still_do_not_hold_up_the_others() {
        let mut credit = ReceiveCredit::new(256 << 20);
        for held in 1..=8 {
            // A stream's window of 16 MiB, and nobody reads it.
            assert!(credit.on_ordered(16 << 20));
            credit.on_round();
            assert!(credit.grant() >= (held * 16 + 64) << 20, "the others have their window");
        }
        assert_eq!((credit.stream_bound(0), credit.stream_bound(128 << 20)), (4 << 20, 256 << 20));
        while credit.room() > 0 {
            assert!(credit.on_ordered(credit.room().min(1 << 20)));
            credit.grant();
        }
        assert_eq!(credit.held(), 256 << 20, "no more than the memory");
        credit.on_read(256 << 20);
        assert_eq!((credit.held(), credit.stream_bound(0)), (0, 256 << 20));
    }

    #[test]
    fn early_windows_of_a_thousand_streams_fit_the_memory() {
        let credit = ReceiveCredit::new(1 << 30);
        assert_eq!([1, 2, 4, 128].map(|streams| credit.early_window(streams) >> 20), [64, 64, 32, 1]);
        assert!((1..=1000).map(|streams| credit.early_window(streams)).sum::<u64>() < 1 << 30);
        assert_eq!(ReceiveCredit::new(16 << 20).early_window(0), 2 << 20);
    }

    #[test]
    fn spending_stops_at_the_limit() {
        let mut credit = SendCredit::new(10);
        credit.spend(10);
        assert_eq!(credit.left(), 0);
        assert!(credit.raise(15) && !credit.raise(12));
        assert_eq!(credit.left(), 5);
    }
}
