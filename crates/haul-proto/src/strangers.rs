//! How a server treats those who have not been admitted yet.
//!
//! A stranger is a client with a valid cookie, from the beginning of its handshake until it is admitted. Who has a place, and who goes when there is none, is in haul-strangers.

use std::time::Duration;

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
    /// A client whose connection the application has not admitted so long after its first datagram is gone, whether or not its handshake is complete. Default: 10 s.
    pub deadline: Duration,
    /// Strangers at once. Default: 1024.
    pub places: usize,
    /// Strangers at once of one source: a /24 of IPv4, a /56 of IPv6. Default: 256.
    pub places_of_source: usize,
    /// Whether clients are given a token with which their next connection to this endpoint saves the round trip of a cookie. Default: not, for who listens for one client only.
    pub lets_return: bool,
}

impl Default for Admission {
    fn default() -> Self {
        Self { by: AdmittedBy::Trust, deadline: DEADLINE, places: PLACES, places_of_source: PLACES_OF_SOURCE, lets_return: false }
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
