//! Why a fleet, or one of its hosts, is not there.

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use haul::BindError;
use haul_peer::{Lost, ReachError, SshEnded};
use haul_units::PeerText;
use thiserror::Error;

use crate::member::Member;

/// What becomes of a host, by its place among the hosts.
pub(super) type Report<'a> = dyn Fn(usize, Result<Member, AbsentError>) + Sync + 'a;

/// Why nothing could be started at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Nobody is named.
    #[error("no hosts named")]
    NoHosts,
    /// There is no UDP port to listen on for the members.
    #[error("no UDP port to listen on for the members: {source}")]
    NoPort {
        /// Why.
        source: BindError,
        /// Whether the user has named ports.
        ports_named: bool,
    },
    /// Members could call this host nowhere.
    #[error("no address of this host is known at which members could call it")]
    NoAddress,
    /// What starts the members, ssh for instance, could not be started itself.
    #[error("{}: {source}", program.display())]
    NotStarted {
        /// The program.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
}

/// Why a host is not among the members.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AbsentError {
    /// It could not be reached from here.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The program there said that it cannot serve.
    #[error("{error}")]
    Failed {
        /// Why, in its words.
        error: PeerText,
        /// What to do about it there, in its words.
        hint: Option<PeerText>,
    },
    /// What was to start it ended before it had said anything.
    #[error("{ended}")]
    NotStarted {
        /// How it ended, and what was printed.
        ended: SshEnded,
    },
    /// The host that was to start it cannot be reached, or started nothing.
    #[error("{starter} started nothing: {why}")]
    NoStarter {
        /// The representative, or the program that starts the members.
        starter: String,
        /// What became of it.
        why: PeerText,
    },
    /// It was started, and nothing came from it over UDP.
    #[error("it was started, and did not call back over UDP within {:.0} s", waited.as_secs_f64())]
    NoCall {
        /// For how long it could.
        waited: Duration,
    },
    /// It was started and listens, and cannot be reached over UDP.
    #[error("it was started, and cannot be reached over UDP at {}: {lost}", listed(tried))]
    NoAnswer {
        /// Where it was tried.
        tried: Vec<IpAddr>,
        /// Why.
        lost: Box<Lost>,
    },
    /// Nothing was heard of it at all.
    #[error("nothing was heard of it within {:.0} s", waited.as_secs_f64())]
    Silent {
        /// For how long there could have been.
        waited: Duration,
    },
    /// It came, and did not stay.
    #[error("it does not stay for several jobs")]
    NotKept {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It was a member of a fleet that is kept, and is not there.
    #[error("{why}")]
    Gone {
        /// Why, as the keeper of the fleet says it.
        why: PeerText,
    },
    /// What it said makes no sense to this version.
    #[error("the haul there speaks another version")]
    OtherVersion,
}

fn listed(addresses: &[IpAddr]) -> String {
    let listed = addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
    if listed.is_empty() { "no address".to_owned() } else { listed }
}
