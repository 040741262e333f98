//! Places for those who have not been admitted yet.
//!
//! There are places for so many strangers, and for so many of one source. Nobody who comes is turned away for want of a place: the oldest stranger of the
//! source that has the most gives its place up. Whoever is to be admitted needs a place for two or three round trips, and is safe so long from a source that
//! has fewer strangers than another one; those of a flood push out one another.
//!
//! A source is what one customer usually has: of IPv4 a /24, of IPv6 a /56 (RIPE-690 4.2). Finer, and whoever has such a network has as many sources as addresses; coarser, and
//! neighbours push out one another.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

/// Where strangers come from, as far as places are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Source {
    V4([u8; 3]),
    V6([u8; 7]),
    Stream(u64),
}

impl Source {
    fn of(from: SocketAddr) -> Self {
        match from.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                Self::V4([a, b, c])
            }
            // 100::/64, where no packet ever goes (RFC 6666): an endpoint calls byte streams by such addresses, each of which is somebody else's.
            IpAddr::V6(ip) if ip.segments().starts_with(&[0x100, 0, 0, 0]) => Self::Stream(ip.to_bits() as u64),
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, ..] = ip.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        }
    }
}

/// Who has a place, by what tells one from another.
///
/// ```
/// use haul_strangers::Strangers;
///
/// // Two places, and two of one source.
/// let mut strangers = Strangers::new(2, 2);
/// let flood = "192.0.2.1:1000".parse().unwrap();
/// assert_eq!(strangers.enter(flood, "first"), None);
/// assert_eq!(strangers.enter("198.51.100.1:1000".parse().unwrap(), "honest"), None);
/// assert_eq!(strangers.enter(flood, "second"), Some("first"));
/// strangers.leave("honest");
/// ```
#[derive(Debug)]
pub struct Strangers<Id> {
    places: usize,
    places_of_source: usize,
    /// Of each stranger: its source, and when it came, as a number.
    present: HashMap<Id, (Source, u64)>,
    /// Of each source, oldest first.
    by_source: HashMap<Source, VecDeque<(u64, Id)>>,
    arrivals: u64,
}

impl<Id: Copy + Eq + Hash> Strangers<Id> {
    /// Places for so many, and for so many of one source: one at least.
    pub fn new(places: usize, places_of_source: usize) -> Self {
        Self {
            places: places.max(1),
            places_of_source: places_of_source.max(1),
            present: HashMap::new(),
            by_source: HashMap::new(),
            arrivals: 0,
        }
    }

    /// One comes. Returns who gives up its place for it, if one must.
    pub fn enter(&mut self, from: SocketAddr, id: Id) -> Option<Id> {
        let source = Source::of(from);
        let own = self.by_source.get(&source).map_or(0, VecDeque::len);
        let loser = if own >= self.places_of_source {
            Some(source)
        } else if self.present.len() >= self.places {
            self.fullest()
        } else {
            None
        };
        let evicted = loser.and_then(|source| self.by_source.get(&source)?.front().map(|&(_, id)| id));
        if let Some(id) = evicted {
            self.leave(id);
        }
        self.arrivals += 1;
        self.present.insert(id, (source, self.arrivals));
        self.by_source.entry(source).or_default().push_back((self.arrivals, id));
        evicted
    }

    /// The source with the most strangers; of several the one whose oldest came first.
    fn fullest(&self) -> Option<Source> {
        let rank = |queue: &VecDeque<(u64, Id)>| (queue.len(), queue.front().map(|&(arrival, _)| std::cmp::Reverse(arrival)));
        self.by_source.iter().max_by_key(|(_, queue)| rank(queue)).map(|(&source, _)| source)
    }

    /// One is no stranger any more, or gone.
    pub fn leave(&mut self, id: Id) {
        let Some((source, arrival)) = self.present.remove(&id) else { return };
        let Some(queue) = self.by_source.get_mut(&source) else { return };
        if let Ok(at) = queue.binary_search_by_key(&arrival, |&(arrival, _)| arrival) {
            queue.remove(at);
        }
        if queue.is_empty() {
            self.by_source.remove(&source);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 1000)
    }

    #[test]
    fn a_source_pushes_out_its_own() {
        let mut strangers = Strangers::new(100, 3);
        let mut enter = |ip: &str, id| strangers.enter(from(ip), id);
        assert_eq!([enter("192.0.2.1", 1), enter("192.0.2.2", 2), enter("192.0.2.255", 3)], [None; 3]);
        assert_eq!(enter("192.0.2.1", 4), Some(1), "one /24");
        assert_eq!(enter("::ffff:192.0.2.9", 5), Some(2), "written otherwise");
        assert_eq!(enter("192.0.3.1", 6), None, "another /24");
        for (ip, id) in [("2001:db8::1", 7), ("2001:db8:0:ff::1", 8), ("2001:db8:0:f0::1", 9), ("2001:db8:0:100::1", 10)] {
            assert_eq!(enter(ip, id), None);
        }
        assert_eq!(enter("2001:db8:0:1:ffff::", 11), Some(7), "one /56");
        for id in 12..20 {
            assert_eq!(enter(&format!("100::{id}"), id), None, "byte streams are apart");
        }
        assert_eq!([enter("100::12", 20), enter("100::12", 21), enter("100::12", 22)], [None, None, Some(12)]);
    }

    #[test]
    fn a_single_stranger_stays_where_one_source_fills_all_places() {
        let mut strangers = Strangers::new(64, 1000);
        for id in 0..40 {
            assert_eq!(strangers.enter(from("192.0.2.1"), id), None);
        }
        let honest = 1_000;
        assert_eq!(strangers.enter(from("198.51.100.1"), honest), None);
        for id in 2_000..3_000 {
            let evicted = strangers.enter(from("192.0.2.1"), id);
            assert_ne!(evicted, Some(honest));
            assert!(strangers.len() <= 64);
        }
    }

    #[test]
    fn of_many_sources_the_oldest_goes() {
        let mut strangers = Strangers::new(64, 8);
        for id in 0..64 {
            assert_eq!(strangers.enter(from(&format!("10.0.{id}.1")), id), None);
        }
        for id in 64..600 {
            assert_eq!(strangers.enter(from(&format!("10.{}.{}.1", id / 250, id % 250)), id), Some(id - 64));
        }
        strangers.leave(599);
        assert_eq!(strangers.enter(from("192.0.2.1"), 600), None, "a place is free");
        (0..700).for_each(|id| strangers.leave(id));
        assert_eq!((strangers.len(), strangers.by_source.len()), (0, 0));
    }
}
