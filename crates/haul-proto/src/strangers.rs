//! Places for those who have not been admitted yet.
//!
//! A stranger is a client with a valid cookie, from the beginning of its handshake until it is admitted (see [`Admission`]). There are places for so
//! many, and for so many of one source. Nobody who comes is turned away for want of a place: the oldest stranger of the source that has the most gives its
//! place up. Whoever is to be admitted needs a place for two or three round trips, and is safe so long from a source that has fewer strangers than another
//! one; those of a flood push out one another.
//!
//! A source is what one customer usually has: of IPv4 a /24, of IPv6 a /56 (RIPE-690 4.2). Finer, and whoever has such a network has as many sources as addresses; coarser, and
//! neighbours push out one another.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::ConnectionId;

/// How long a stranger may stay, counted from its first datagram with a cookie: ten round trips of the slowest path, with time to think.
const DEADLINE: Duration = Duration::from_secs(10);
/// Places.
const PLACES: usize = 1024;
/// Places of one source.
const PLACES_OF_SOURCE: usize = 256;

/// How a server treats clients that have not been admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// What admits them.
    pub by: AdmittedBy,
    /// A client whose connection the application has not admitted so long after its first datagram is gone. Default: 10 s.
    pub deadline: Duration,
    /// Strangers at once. Default: 1024.
    pub places: usize,
    /// Strangers at once of one source: a /24 of IPv4, a /56 of IPv6. Default: 256.
    pub places_of_source: usize,
}

impl Default for Admission {
    fn default() -> Self {
        Self { by: AdmittedBy::Trust, deadline: DEADLINE, places: PLACES, places_of_source: PLACES_OF_SOURCE }
    }
}

/// What makes a client of a stranger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdmittedBy {
    /// The handshake: who has a key that [`crate::identity::PeerTrust`] believes is no stranger, and may use what the configuration gives from its first
    /// packet.
    #[default]
    Trust,
    /// The application alone, for servers that let anyone in. Until then there is credit for 32 KiB, on one bidirectional stream, and one path; and the application hears
    /// of nobody who has not opened that stream.
    Application,
}

/// Where strangers come from, as far as places are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Source {
    V4([u8; 3]),
    V6([u8; 7]),
}

impl Source {
    fn of(from: SocketAddr) -> Self {
        match from.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, ..] = ip.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        }
    }
}

/// Who has a place.
#[derive(Debug)]
pub(crate) struct Strangers {
    places: usize,
    places_of_source: usize,
    /// Of each stranger: its source, and when it came, as a number.
    present: HashMap<ConnectionId, (Source, u64)>,
    /// Of each source, oldest first.
    by_source: HashMap<Source, VecDeque<(u64, ConnectionId)>>,
    arrivals: u64,
}

impl Strangers {
    pub(crate) fn new(admission: &Admission) -> Self {
        Self {
            places: admission.places.max(1),
            places_of_source: admission.places_of_source.max(1),
            present: HashMap::new(),
            by_source: HashMap::new(),
            arrivals: 0,
        }
    }

    /// One comes. Returns who gives up its place for it, if one must.
    pub(crate) fn enter(&mut self, from: SocketAddr, id: ConnectionId) -> Option<ConnectionId> {
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
        let rank =
            |queue: &VecDeque<(u64, ConnectionId)>| (queue.len(), queue.front().map(|&(arrival, _)| std::cmp::Reverse(arrival)));
        self.by_source.iter().max_by_key(|(_, queue)| rank(queue)).map(|(&source, _)| source)
    }

    /// One is no stranger any more, or gone.
    pub(crate) fn leave(&mut self, id: ConnectionId) {
        let Some((source, arrival)) = self.present.remove(&id) else { return };
        let Some(queue) = self.by_source.get_mut(&source) else { return };
        if let Ok(at) = queue.binary_search_by_key(&arrival, |&(arrival, _)| arrival) {
            queue.remove(at);
        }
        if queue.is_empty() {
            self.by_source.remove(&source);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 1000)
    }

    fn strangers(places: usize, places_of_source: usize) -> Strangers {
        Strangers::new(&Admission { places, places_of_source, ..Admission::default() })
    }

    #[test]
    fn a_source_pushes_out_its_own() {
        let mut strangers = strangers(100, 3);
        let mut enter = |ip: &str, id| strangers.enter(from(ip), ConnectionId(id)).map(|id| id.0);
        assert_eq!([enter("192.0.2.1", 1), enter("192.0.2.2", 2), enter("192.0.2.255", 3)], [None; 3]);
        assert_eq!(enter("192.0.2.1", 4), Some(1), "one /24");
        assert_eq!(enter("::ffff:192.0.2.9", 5), Some(2), "written otherwise");
        assert_eq!(enter("192.0.3.1", 6), None, "another /24");
        for (ip, id) in [("2001:db8::1", 7), ("2001:db8:0:ff::1", 8), ("2001:db8:0:f0::1", 9), ("2001:db8:0:100::1", 10)] {
            assert_eq!(enter(ip, id), None);
        }
        assert_eq!(enter("2001:db8:0:1:ffff::", 11), Some(7), "one /56");
    }

    #[test]
    fn a_single_stranger_stays_where_one_source_fills_all_places() {
        let mut strangers = strangers(64, 1000);
        for id in 0..40 {
            assert_eq!(strangers.enter(from("192.0.2.1"), ConnectionId(id)), None);
        }
        let honest = ConnectionId(1_000);
        assert_eq!(strangers.enter(from("198.51.100.1"), honest), None);
        for id in 2_000..3_000 {
            let evicted = strangers.enter(from("192.0.2.1"), ConnectionId(id));
            assert_ne!(evicted, Some(honest));
            assert!(strangers.len() <= 64);
        }
    }

    #[test]
    fn of_many_sources_the_oldest_goes() {
        let mut strangers = strangers(64, 8);
        for id in 0..64 {
            assert_eq!(strangers.enter(from(&format!("10.0.{id}.1")), ConnectionId(id)), None);
        }
        for id in 64..600 {
            assert_eq!(
                strangers.enter(from(&format!("10.{}.{}.1", id / 250, id % 250)), ConnectionId(id)),
                Some(ConnectionId(id - 64))
            );
        }
        strangers.leave(ConnectionId(599));
        assert_eq!(strangers.enter(from("192.0.2.1"), ConnectionId(600)), None, "a place is free");
        (0..700).for_each(|id| strangers.leave(ConnectionId(id)));
        assert_eq!((strangers.len(), strangers.by_source.len()), (0, 0));
    }
}
