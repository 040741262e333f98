//! What a plan is told about the work and about the servers.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::load::Load;

/// How work is dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Servers pull: ranges of files, taken from the slow and given to the fast.
    #[default]
    Dynamic,
    /// Whole files, dealt to their holders in turn before anything is sent; only the death of a server changes that. What the
    /// system of the IPSJ paper does, to compare with.
    RoundRobin,
}

/// How a plan behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How work is dealt out.
    pub policy: Policy,
    /// Ranges begin and end at multiples of this; 1 MiB, as large as the blocks in which files are hashed and sent.
    pub unit: Bytes,
    /// What a server that has begun to send has in its hands, besides what it sends in a round trip: it comes, whatever the server is told then. Default nothing.
    pub committed: Bytes,
    /// Nothing is sent before.
    pub start_at: Time,
    /// How long a server rests after each file. Not zero: a server has one file at a time.
    pub pause: Duration,
    /// How long a server with something to send may be silent before others get its work, at the least; eight of its round trips,
    /// if that is longer. 3 s: longer than the recovery of a connection after a short outage.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            unit: Bytes::mib(1),
            committed: Bytes::ZERO,
            start_at: Time::ZERO,
            pause: Duration::ZERO,
            patience: Duration::from_secs(3),
        }
    }
}

/// What is known of a server when it comes up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerProfile {
    /// Its round-trip time.
    pub rtt: Duration,
    /// What it carried before, if that is known; measured from the first arrivals on.
    pub rate: Option<BitRate>,
    /// No more than this is expected of it. (That it sends no more is its transport's part.)
    pub limit: Option<BitRate>,
    /// How busy its machine is; counts where nothing else is known.
    pub load: Option<Load>,
}

impl ServerProfile {
    /// A server of which only the distance is known.
    pub fn at(rtt: Duration) -> Self {
        Self { rtt, rate: None, limit: None, load: None }
    }
}
