//! Hundreds of strangers at once, who come again when they are turned away.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use e2e::{Stopwatch, pause};
use haul_proto::identity::Identity;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::attempt::{Attempt, Outcome};
use crate::peer::{Heard, Peer, is_end};

/// How long one stays away that was turned away.
const SULK: Duration = Duration::from_secs(5);
/// Handshakes under way at once: more would only wait for each other's processor time.
const AT_ONCE: usize = 64;
/// Time between two looks at all of them.
const LOOK: Duration = Duration::from_millis(5);

/// Where strangers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// All from 127.1.1.1.
    One,
    /// Each from a network of its own: 127.(2..).(0..).1.
    Many,
    /// All from this address, of the network that the crowd is gathered in.
    At(IpAddr),
}

impl Sources {
    fn address(self, index: usize) -> IpAddr {
        let index = index as u32;
        match self {
            Self::One => Ipv4Addr::new(127, 1, 1, 1).into(),
            Self::Many => Ipv4Addr::new(127, 2 + (index / 250) as u8, (index % 250) as u8, 1).into(),
            Self::At(address) => address,
        }
    }
}

/// What they do there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// They shake hands, and are silent if that lets them in.
    Silent,
    /// They show the cookie, and leave the server alone with its half of the handshake.
    Halfway,
}

/// Strangers with keys that they made themselves, in a thread; they go with this value.
pub struct Crowd {
    stop: Arc<AtomicBool>,
    tried: Arc<AtomicUsize>,
    inside: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

enum Stranger {
    Away(Stopwatch),
    Attempting(Attempt),
    In(Box<Peer>),
}

impl Crowd {
    /// So many, at a server.
    pub fn gather(server: SocketAddr, protocol: &'static [u8], manner: Manner, groups: &[(Sources, usize)]) -> Self {
        raise_descriptors();
        let (stop, tried, inside) = (Arc::default(), Arc::default(), Arc::default());
        let sources: Vec<IpAddr> =
            groups.iter().flat_map(|&(sources, count)| (0..count).map(move |index| sources.address(index))).collect();
        let shared = (Arc::clone(&stop), Arc::clone(&tried), Arc::clone(&inside));
        let thread = thread::spawn(move || live(server, protocol, manner, &sources, &shared));
        Self { stop, tried, inside, thread: Some(thread) }
    }

    /// Strangers whose first attempt has had its end.
    pub fn tried(&self) -> usize {
        self.tried.load(Ordering::Relaxed)
    }

    /// Strangers that hold a connection or half a handshake, as far as they know.
    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    /// Waits until the crowd is there: each has been let in or turned away once, or that takes too long.
    pub fn wait_until_there(&self, count: usize, limit: Duration) -> bool {
        e2e::eventually(limit, || self.tried() >= count)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Shared = (Arc<AtomicBool>, Arc<AtomicUsize>, Arc<AtomicUsize>);

fn live(server: SocketAddr, protocol: &[u8], manner: Manner, sources: &[IpAddr], (stop, tried, inside): &Shared) {
    let mut strangers: Vec<(Option<Stranger>, bool)> = sources.iter().map(|_| (None, false)).collect();
    while !stop.load(Ordering::Relaxed) {
        let mut attempting = strangers
            .iter()
            .filter(|(state, _)| matches!(state, Some(Stranger::Attempting(attempt)) if !attempt.has_stopped()))
            .count();
        for ((state, has_tried), source) in strangers.iter_mut().zip(sources) {
            let next = match state.take() {
                None if attempting < AT_ONCE => {
                    attempting += 1;
                    // A key of its own each, as a stranger with any sense has.
                    let attempt = Attempt::begin(server, *source, Some(&Identity::generate()), protocol);
                    Some(Stranger::Attempting(if manner == Manner::Halfway { attempt.halfway() } else { attempt }))
                }
                Some(Stranger::Away(watch)) if watch.elapsed() < SULK => Some(Stranger::Away(watch)),
                None | Some(Stranger::Away(_)) => None,
                Some(Stranger::Attempting(attempt)) => match attempt.step() {
                    Outcome::Waiting(attempt) => Some(Stranger::Attempting(attempt)),
                    Outcome::In(peer) => Some(Stranger::In(peer)),
                    Outcome::Out => Some(Stranger::Away(Stopwatch::start())),
                },
                Some(Stranger::In(mut peer)) => {
                    let ended = peer.hear_now().iter().any(is_end);
                    Some(if ended { Stranger::Away(Stopwatch::start()) } else { Stranger::In(peer) })
                }
            };
            let has_stopped = matches!(&next, Some(Stranger::Attempting(attempt)) if attempt.has_stopped());
            if !*has_tried && (has_stopped || matches!(next, Some(Stranger::In(_) | Stranger::Away(_)))) {
                *has_tried = true;
                tried.fetch_add(1, Ordering::Relaxed);
            }
            *state = next;
        }
        let is_there = |state: &Option<Stranger>| match state {
            Some(Stranger::In(_)) => true,
            Some(Stranger::Attempting(attempt)) => attempt.has_stopped(),
            Some(Stranger::Away(_)) | None => false,
        };
        let there = strangers.iter().filter(|(state, _)| is_there(state)).count();
        inside.store(there, Ordering::Relaxed);
        pause(LOOK);
    }
}

impl Peer {
    /// What is there, without waiting.
    fn hear_now(&mut self) -> Vec<Heard> {
        self.hear(Duration::ZERO)
    }
}

/// A socket each: the usual soft limit is 1024.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
