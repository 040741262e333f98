//! Path MTU discovery by the packetization layer.
//!
//! Packets start at 1200 bytes of UDP payload. Probes (a padded ping each, no data at risk) try the size that Ethernet gives, then the largest the
//! user allows, then sizes that common tunnels leave; an acknowledged probe raises the packet size, a probe lost three times rules its size
//! out. Large packets lost for two round trips, and none arriving, mean a black hole: back to 1200, and the search starts again. Source: RFC 8899.

use std::time::Duration;

use haul_units::Time;

use crate::CONTROL_BYTES;

/// What every path carries.
const BASE_BYTES: u16 = CONTROL_BYTES as u16;
/// Losses of a size before it is ruled out. // RFC 8899 5.1.2: MAX_PROBES
const MAX_PROBES: u8 = 3;
/// Time until sizes that were ruled out are tried again, at first and at most. // RFC 8899 5.1.1: PMTU_RAISE_TIMER
// DEVIATION: RFC 8899 waits 600 s at once. A probe may have been lost to a full queue, and a bulk transfer at 1200 bytes is slow: the first wait is short, each one after it four times
// as long.
const RAISE_AFTER_MIN: Duration = Duration::from_secs(1);
const RAISE_AFTER_MAX: Duration = Duration::from_secs(600);
/// Payloads worth a probe: 9000 and 1500 bytes of Ethernet less IPv4 and IPv6 headers, FDDI, and what tunnels leave.
const SIZES: [u16; 9] = [8972, 8952, 4324, 1472, 1452, 1432, 1392, 1352, 1280];
/// The size that most paths have: tried first.
const LIKELY: u16 = 1472;
/// Loss events without a full-sized packet arriving, and packets lost in them, that make a black hole. // RFC 8899 4.3
const BLACK_HOLE_EVENTS: u8 = 3;
const BLACK_HOLE_PACKETS: u64 = 16;

/// Packet size of a path, and the search for a larger one.
#[derive(Debug)]
pub struct MtuDiscovery {
    current: u16,
    /// The largest size that the user and the peer allow.
    max: u16,
    /// Sizes of this and above are ruled out.
    ceiling: u16,
    probing: Option<u16>,
    losses: u8,
    next_search: Time,
    raise_after: Duration,
    hole_events: u8,
    hole_packets: u64,
    /// When the first of these losses was noticed.
    hole_since: Time,
}

impl MtuDiscovery {
    /// A path that may carry up to `max` bytes of UDP payload.
    pub fn new(max: u16) -> Self {
        Self {
            current: BASE_BYTES,
            max: max.max(BASE_BYTES),
            ceiling: max.max(BASE_BYTES).saturating_add(1),
            probing: None,
            losses: 0,
            next_search: Time::ZERO,
            raise_after: RAISE_AFTER_MIN,
            hole_events: 0,
            hole_packets: 0,
            hole_since: Time::ZERO,
        }
    }

    /// Packet size, UDP payload.
    pub const fn current(&self) -> u16 {
        self.current
    }

    /// Bytes of a probe in flight that may well be too large to arrive, and tells nothing of the path's load.
    pub fn doubtful(&self) -> u64 {
        self.probing.filter(|&size| size > LIKELY).map_or(0, u64::from)
    }

    /// The size to probe now, if any.
    pub fn poll_probe(&mut self, now: Time) -> Option<u16> {
        if self.probing.is_some() || now < self.next_search {
            return None;
        }
        let size = self.next_size();
        if size.is_none() {
            self.next_search = now + self.raise_after;
            self.raise_after = (self.raise_after * 4).min(RAISE_AFTER_MAX);
            self.ceiling = self.max.saturating_add(1);
        }
        self.probing = size;
        size
    }

    fn next_size(&self) -> Option<u16> {
        let first = [LIKELY, self.max].into_iter();
        first.chain(SIZES).find(|&size| size > self.current && size < self.ceiling)
    }

    /// A probe of `size` has arrived. Returns true if packets grow.
    pub fn on_probe_acked(&mut self, size: u16) -> bool {
        self.settle(size);
        self.losses = 0;
        let grows = size > self.current && size < self.ceiling;
        if grows {
            self.current = size;
        }
        grows
    }

    /// A probe of `size` is lost.
    pub fn on_probe_lost(&mut self, size: u16) {
        self.settle(size);
        self.losses += 1;
        if self.losses >= MAX_PROBES {
            self.rule_out(size);
        }
    }

    /// The system itself says that packets of `size` are too large. Returns true if packets shrink.
    pub fn on_refused(&mut self, size: u16) -> bool {
        self.settle(size);
        if size <= BASE_BYTES {
            return false;
        }
        self.rule_out(size);
        let shrinks = self.current >= size;
        if shrinks {
            self.current = BASE_BYTES;
        }
        shrinks
    }

    /// Data packets of `size` have arrived.
    pub fn on_data_acked(&mut self, size: u16) {
        if size > BASE_BYTES {
            self.hole_events = 0;
            self.hole_packets = 0;
        }
    }

    /// Large data packets are lost. Returns true if that makes a black hole and packets shrink: not one has arrived for two round trips, for a full queue loses
    /// whole bursts between two acknowledgements.
    pub fn on_data_lost(&mut self, now: Time, packets: u64, rtt: Duration) -> bool {
        if self.current == BASE_BYTES {
            return false;
        }
        if self.hole_events == 0 {
            self.hole_since = now;
        }
        self.hole_events = self.hole_events.saturating_add(1);
        self.hole_packets += packets;
        let lasting = now.since(self.hole_since) >= rtt * 2;
        let hole = lasting && self.hole_events >= BLACK_HOLE_EVENTS && self.hole_packets >= BLACK_HOLE_PACKETS;
        if hole {
            self.on_silence(now);
        }
        hole
    }

    /// Nothing arrives any more: packets shrink, and the search starts again in a while. Returns true if they were larger.
    pub fn on_silence(&mut self, now: Time) -> bool {
        let shrinks = self.current > BASE_BYTES;
        self.current = BASE_BYTES;
        self.hole_events = 0;
        self.hole_packets = 0;
        self.next_search = now + Duration::from_secs(1);
        shrinks
    }

    fn settle(&mut self, size: u16) {
        if self.probing == Some(size) {
            self.probing = None;
        }
    }

    fn rule_out(&mut self, size: u16) {
        if size > BASE_BYTES {
            self.ceiling = self.ceiling.min(size);
        }
        self.losses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search on a path that carries `carries` bytes.
    fn search(max: u16, carries: u16) -> (u16, u32) {
        let mut mtu = MtuDiscovery::new(max);
        let mut probes = 0;
        while let Some(size) = mtu.poll_probe(Time::ZERO) {
            probes += 1;
            assert!(probes < 40);
            if size <= carries {
                mtu.on_probe_acked(size);
            } else {
                mtu.on_probe_lost(size);
            }
        }
        (mtu.current(), probes)
    }

    #[test]
    fn a_probe_larger_than_most_paths_take_is_in_doubt_until_it_is_settled() {
        let mut mtu = MtuDiscovery::new(9000);
        assert_eq!((mtu.poll_probe(Time::ZERO), mtu.doubtful()), (Some(LIKELY), 0));
        mtu.on_probe_acked(LIKELY);
        assert_eq!((mtu.poll_probe(Time::ZERO), mtu.doubtful()), (Some(9000), 9000));
        mtu.on_probe_lost(9000);
        assert_eq!(mtu.doubtful(), 0);
    }

    #[test]
    fn finds_what_the_path_carries() {
        assert_eq!(search(8972, 65507).0, 8972);
        assert_eq!(search(8972, 1472).0, 1472);
        assert_eq!(search(8972, 1400).0, 1392);
        assert_eq!(search(8972, 1200).0, 1200);
        assert_eq!(search(9500, 9200).0, 8972);
        assert_eq!(search(1472, 65507), (1472, 1));
        assert_eq!(search(1460, 65507).0, 1460);
        assert_eq!(search(1200, 65507), (1200, 0));
    }

    #[test]
    fn a_size_lost_to_a_full_queue_gets_another_chance() {
        let mut mtu = MtuDiscovery::new(1472);
        while let Some(size) = mtu.poll_probe(Time::ZERO) {
            mtu.on_probe_lost(size);
        }
        assert_eq!(mtu.current(), BASE_BYTES);
        let later = Time::ZERO + RAISE_AFTER_MIN;
        assert_eq!(mtu.poll_probe(later), Some(1472));
        assert!(mtu.on_probe_acked(1472));
        assert_eq!(mtu.poll_probe(later), None);
    }

    #[test]
    fn a_black_hole_is_left() {
        let mut mtu = MtuDiscovery::new(1472);
        let size = mtu.poll_probe(Time::ZERO).unwrap();
        assert!(mtu.on_probe_acked(size));
        let (rtt, later) = (Duration::from_millis(100), Time::ZERO + Duration::from_millis(200));
        assert!(!mtu.on_data_lost(Time::ZERO, 10, rtt));
        mtu.on_data_acked(1472);
        assert!((0..10).all(|_| !mtu.on_data_lost(Time::ZERO, 10, rtt)), "a burst is no hole");
        assert!(mtu.on_data_lost(later, 10, rtt));
        assert_eq!(mtu.current(), BASE_BYTES);
        assert_eq!(mtu.poll_probe(later), None);
        assert_eq!(mtu.poll_probe(later + Duration::from_secs(2)), Some(1472));
    }

    #[test]
    fn the_systems_refusal_counts_at_once() {
        let mut mtu = MtuDiscovery::new(8972);
        assert_eq!(mtu.poll_probe(Time::ZERO), Some(1472));
        mtu.on_probe_acked(1472);
        assert_eq!(mtu.poll_probe(Time::ZERO), Some(8972));
        assert!(!mtu.on_refused(8972));
        assert_eq!(mtu.current(), 1472);
        assert_ne!(mtu.poll_probe(Time::ZERO), Some(8972));
    }
}
