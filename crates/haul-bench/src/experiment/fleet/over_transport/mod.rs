//! The plan over the transport itself, in virtual time: real connections share the client's link as they do, and do what the plan tells them.
//!
//! Members come up one after the other, as their logins end; orders take half a round trip. What reads, hashes and writes files is left out.

mod job;
mod member;
mod world;

use std::time::Duration;

use haul_plan::{Plan, Settings};
use haul_units::{BitRate, Bytes, Time};

use self::job::{COUNTED, FILE, TICK};
pub use self::job::{Ended, Job, Look, Word};
use self::world::World;
use super::paper::START;

/// Plays a job to its end.
///
/// # Panics
///
/// Where it does not end in ten minutes.
pub fn play(job: &Job, mut look: impl FnMut(&Look)) -> Ended {
    let (mut world, catalogue) = World::new(job);
    let mut plan = Plan::new(catalogue, Settings { policy: job.policy, ..Settings::default() });
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

const LOOKED: u64 = 50;
const GIVEN_UP: Duration = Duration::from_secs(600);
/// Bytes of content in a packet of 1,500.
const ON_THE_WIRE: f64 = 1500.0 / 1428.0;
