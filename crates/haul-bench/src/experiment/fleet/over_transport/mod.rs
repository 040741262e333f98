//! The plan over the transport itself, in virtual time: real connections share the client's link as they do, and do what the plan tells them.
//!
//! Members come up one after the other, as their logins end; orders take half a round trip. What reads, hashes and writes files is left out.

mod member;
mod world;

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_plan::{Plan, Policy, ServerId, ServerProfile, Settings};
use haul_sim::EndpointId;
use haul_units::{BitRate, Bytes, Time};

use self::world::World;
use super::paper::{RTT, START};

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

/// Plays a job to its end.
///
/// # Panics
///
/// Where it does not end in ten minutes.
pub fn play(job: &Job, mut look: impl FnMut(&Look)) -> Ended {
    let mut world = World::new(job);
    let mut plan = Plan::new(world.catalogue(), Settings { policy: job.policy, ..Settings::default() });
    let total = FILE.as_u64() * (job.files * job.servers) as u64;
    let (mut first, mut steady) = (None, None);
    let mut before = vec![0; job.servers];
    for tick in 1u64.. {
        let now = Time::ZERO + TICK * tick as u32;
        assert!(now < Time::ZERO + GIVEN_UP, "it does not end");
        world.run(now, &mut plan);
        if tick.is_multiple_of(COUNTED) {
            world.count(&mut plan);
        }
        if world.follow(now, &mut plan) {
            first.get_or_insert(now);
        }
        let come = world.come();
        if first.is_some_and(|first| now >= first + START) {
            steady.get_or_insert((now, come.iter().sum::<u64>()));
        }
        if tick.is_multiple_of(LOOKED) {
            let rates = come.iter().zip(&before).map(|(now, before)| BitRate::of(Bytes(now - before), TICK * LOOKED as u32));
            look(&Look {
                now,
                rates: rates.collect(),
                told: world.told(),
                queue: world.queue(now),
                dropped_pkts: world.dropped_pkts(),
            });
            before = come;
        }
        if plan.is_done() && world.is_up() {
            let first = first.unwrap_or(now);
            let (from, had) = steady.unwrap_or((first, 0));
            let steady = BitRate::of(Bytes(total.saturating_sub(had)), now.since(from)).scaled(ON_THE_WIRE);
            return Ended { seconds: now.since(first).as_secs_f64(), steady, dropped_pkts: world.dropped_pkts() };
        }
    }
    unreachable!("it ends, or has not ended in time")
}

/// A member has connected: the plan hears what it has.
fn come_up(plan: &mut Plan, job: &Job, files: &mut [Vec<haul_plan::FileId>], ids: &[ServerId], at: usize, now: Time) {
    // Its own, and those of whom it has the second copies.
    let other = (at + job.servers - super::paper::FAST % job.servers) % job.servers;
    for of in [Some(at), job.twice.then_some(other)].into_iter().flatten() {
        if files[of].is_empty() {
            files[of] = (0..job.files).filter_map(|_| plan.handle_found(FILE, &[ids[at]]).ok()).collect();
        } else {
            files[of].iter().for_each(|file| plan.handle_holder(*file, ids[at]));
        }
    }
    plan.handle_up(ids[at], ServerProfile::at(RTT), now);
}

const fn sender(at: usize) -> EndpointId {
    EndpointId(at * 2)
}

const fn receiver(at: usize) -> EndpointId {
    EndpointId(at * 2 + 1)
}

const FILE: Bytes = Bytes(12_500_000);
/// Short beside a round trip.
const TICK: Duration = Duration::from_millis(10);
/// Ticks after which a client looks at what has come, as haul-fleet does.
const COUNTED: u64 = 10;
const LOOKED: u64 = 50;
const GIVEN_UP: Duration = Duration::from_secs(600);
/// Bytes of content in a packet of 1,500.
const ON_THE_WIRE: f64 = 1500.0 / 1428.0;
