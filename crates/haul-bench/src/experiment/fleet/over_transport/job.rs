//! What is played, and what is told of it.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_plan::Policy;
use haul_units::{BitRate, Bytes, Time};

/// What is fetched, and from whom.
#[derive(Debug, Clone)]
pub struct Job {
    /// How many servers there are, the fast ones first.
    pub servers: usize,
    /// Files of 12.5 MB of each.
    pub files: usize,
    /// A second server has each file too.
    pub twice: bool,
    /// The first server says nothing more from then on.
    pub killed: Option<Duration>,
    /// Who decides what is sent.
    pub policy: Policy,
    /// The client's link.
    pub client: BitRate,
    /// What drives the connections.
    pub controller: ControllerChoice,
    /// When members come up, and all chance of connections.
    pub seed: u64,
}

impl Job {
    /// Files of their own, nobody dies, and all as it is where nothing is said.
    pub fn of(servers: usize, files: usize, seed: u64) -> Self {
        Self {
            servers,
            files,
            twice: false,
            killed: None,
            policy: Policy::Dynamic,
            client: BitRate::gbps(1),
            controller: ControllerChoice::default(),
            seed,
        }
    }
}

/// How it went.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// From the first order until all had come.
    pub seconds: f64,
    /// What the client's link carried after ten round trips, with its headers.
    pub steady: BitRate,
    /// Packets that did not fit into its queue.
    pub dropped_pkts: u64,
}

/// How things stand, each half second.
#[derive(Debug)]
pub struct Look {
    /// Since the beginning.
    pub now: Time,
    /// What has come of each in the half second.
    pub rates: Vec<BitRate>,
    /// What each was told last in it.
    pub told: Vec<Option<Word>>,
    /// What the client's link holds.
    pub queue: Duration,
    /// Packets that did not fit so far.
    pub dropped_pkts: u64,
}

/// What a member can be told of its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Word {
    /// To be no faster.
    Limit(Option<BitRate>),
    /// That there is room.
    Room(BitRate),
}

pub(super) const FILE: Bytes = Bytes(12_500_000);
/// Short beside a round trip.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// Ticks after which a client looks at what has come, as haul-fleet does.
pub(super) const COUNTED: u64 = 10;
