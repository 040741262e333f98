//! Who carries data.
//!
//! ```text
//!              the flow has proved long              what it shares with others is known, or it has been tried long enough
//!   waiting ------------------------------> joining ------------------------------------------------------------> member
//!      ^                                       |                                                                     |
//!      '------- shares a bottleneck with a member: again after a while, each time twice as long <---------------------'
//! ```
//!
//! - **One path until the flow has proved long.** What is short is over before a second path has found its rate, and pays for each packet that is lost where few follow it.
//!   The count begins anew when everything has been acknowledged: requests on a connection that lives long are short flows.
//! - **One joins at a time**, so that what is seen is its doing.
//! - **Of those that share a bottleneck one carries data**: more of them carry no more, and would take from others what as many flows take.
//! - A member that falls silent is no candidate; where no member is left, the one with the shortest round trip becomes one at once.

use std::time::Duration;

use haul_units::Time;

use crate::PATHS_MAX;
use crate::kin::{Delays, Kin, Verdict};
use crate::scheduler::Scheduler;
use crate::turns::{Candidate, Turns};

/// What is to be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Product of bandwidth and round-trip time of the path that carries it so far, in bytes.
    pub product: u64,
    /// The controller has a rule of its own for all paths: none is left out for what it shares.
    pub keeps_all: bool,
    /// Who is asked first.
    pub scheduler: Scheduler,
    /// All that is still to be sent, if nothing is to come after it.
    pub left: Option<u64>,
}

/// Where a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It may join from then on; the next time it waits so long.
    Waiting { until: Time, next: Duration },
    /// It carries what it can get, and is watched.
    Joining { since: Time, next: Duration },
    /// It carries data.
    Member { next: Duration },
}

/// The paths of a connection.
#[derive(Debug, Clone)]
pub struct Roster {
    standings: [Standing; PATHS_MAX],
    /// New bytes sent since everything was last acknowledged.
    run: u64,
    /// What has been seen of queues; nothing before a second path carries data.
    watch: Option<Box<Watch>>,
    /// To be begun anew, beside others.
    joined: Option<u8>,
}

/// What has been seen of queues.
#[derive(Debug, Clone)]
struct Watch {
    delays: [Delays; PATHS_MAX],
    /// Of a pair, by the larger number and the smaller.
    kin: [[Kin; PATHS_MAX]; PATHS_MAX],
    /// What delays are averaged over.
    stretch: Duration,
}

impl Default for Roster {
    fn default() -> Self {
        Self {
            standings: [Standing::Waiting { until: Time::ZERO, next: FIRST_PAUSE }; PATHS_MAX],
            run: 0,
            watch: None,
            joined: None,
        }
    }
}

impl Roster {
    /// So many new bytes have been sent.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.run = self.run.saturating_add(bytes);
    }

    /// Everything that was to be sent has been acknowledged: what comes next may be short.
    pub const fn on_idle(&mut self) {
        self.run = 0;
    }

    /// A packet of this path arrived then, by the receiver's clock, so long after it left by ours, in nanoseconds: what clocks differ by does not matter.
    pub fn on_delay(&mut self, id: u8, arrived: Time, one_way_ns: i64) {
        if let Some(watch) = &mut self.watch {
            watch.on_delay(usize::from(id) % PATHS_MAX, arrived, one_way_ns as f64 * 1e-9);
        }
    }

    /// What is known of two paths.
    pub fn verdict(&self, one: u8, other: u8) -> Verdict {
        let (larger, smaller) = (usize::from(one.max(other)) % PATHS_MAX, usize::from(one.min(other)) % PATHS_MAX);
        self.watch.as_ref().map_or(Verdict::Unknown, |watch| watch.kin[larger][smaller].verdict())
    }

    /// Whether what one path takes is taken for the other's doing too: both carry data, and are not known to have bottlenecks of their own.
    pub fn are_together(&self, one: u8, other: u8) -> bool {
        one != other && self.carries(one) && self.carries(other) && self.verdict(one, other) != Verdict::Separate
    }

    /// The path that has joined since this was last asked: its controller begins anew, beside others.
    pub const fn take_joined(&mut self) -> Option<u8> {
        self.joined.take()
    }

    /// Whose turn it is, of the paths that can be used.
    pub fn turns(&mut self, now: Time, candidates: &[Candidate], load: &Load) -> Turns {
        if candidates.len() < 2 || load.scheduler == Scheduler::Redundant {
            return Turns::new(load.scheduler, candidates.iter().copied());
        }
        let lead = self.lead(candidates);
        let is_long = self.run >= LONG_BYTES.max(load.product.saturating_mul(LONG_PRODUCTS));
        if is_long {
            self.review(now, candidates, load);
            self.let_join(now, candidates);
        }
        let carries = |path: &&Candidate| if is_long { self.carries(path.id) } else { Some(path.id) == lead };
        let mut turns = Turns::new(load.scheduler, candidates.iter().filter(carries).copied());
        if let (Scheduler::Completion, Some(left)) = (load.scheduler, load.left) {
            turns.end_soonest(candidates, left);
        }
        turns
    }

    fn carries(&self, id: u8) -> bool {
        !matches!(self.standing(id), Standing::Waiting { .. })
    }

    fn standing(&self, id: u8) -> Standing {
        self.standings[usize::from(id) % PATHS_MAX]
    }

    fn set(&mut self, id: u8, standing: Standing) {
        self.standings[usize::from(id) % PATHS_MAX] = standing;
    }

    /// The member that carries what is short; where there is none, the candidate with the shortest round trip becomes one.
    fn lead(&mut self, candidates: &[Candidate]) -> Option<u8> {
        let is_member = |path: &&Candidate| matches!(self.standing(path.id), Standing::Member { .. });
        let carried_most =
            |paths: &mut dyn Iterator<Item = &Candidate>| paths.max_by_key(|path| path.carried).map(|path| path.id);
        if let Some(lead) = carried_most(&mut candidates.iter().filter(is_member)) {
            return Some(lead);
        }
        // The handshake's, where none is much shorter.
        let unsent = candidates.iter().map(|path| Candidate { sent_at: Time::ZERO, ..*path });
        let next = Turns::new(Scheduler::ShortestRtt, unsent).iter().next()?;
        self.set(next, Standing::Member { next: FIRST_PAUSE });
        Some(next)
    }

    /// Who joins has been seen long enough, or shares a bottleneck; members may turn out to share one.
    fn review(&mut self, now: Time, candidates: &[Candidate], load: &Load) {
        for path in candidates {
            let (since, next) = match self.standing(path.id) {
                Standing::Waiting { .. } => continue,
                Standing::Joining { since, next } => (Some(since), next),
                Standing::Member { next } => (None, next),
            };
            let is_less = |other: &&Candidate| {
                let newer = since.is_some() || (path.carried, other.id) < (other.carried, path.id);
                newer && matches!(self.standing(other.id), Standing::Member { .. })
            };
            let mut others = candidates.iter().filter(|other| other.id != path.id).filter(is_less);
            if !load.keeps_all && others.any(|other| self.verdict(path.id, other.id) == Verdict::Shared) {
                self.set(path.id, Standing::Waiting { until: now + next, next: (next * 2).min(LONGEST_PAUSE) });
                continue;
            }
            let Some(since) = since else { continue };
            let is_apart = |other: &Candidate| {
                !matches!(self.standing(other.id), Standing::Member { .. })
                    || self.verdict(path.id, other.id) == Verdict::Separate
            };
            let is_known = candidates.iter().filter(|other| other.id != path.id).all(is_apart);
            if is_known || load.keeps_all || now.since(since) > (path.rtt * JOIN_ROUNDS).max(LEAST_JOIN) {
                self.set(path.id, Standing::Member { next });
            }
        }
    }

    /// The next one that waits joins, unless one is at it.
    fn let_join(&mut self, now: Time, candidates: &[Candidate]) {
        if candidates.iter().any(|path| matches!(self.standing(path.id), Standing::Joining { .. })) {
            return;
        }
        let waits = |path: &&Candidate| matches!(self.standing(path.id), Standing::Waiting { until, .. } if until <= now);
        let Some(path) = candidates.iter().filter(waits).min_by_key(|path| (path.rtt, path.id)) else { return };
        if let Standing::Waiting { next, .. } = self.standing(path.id) {
            self.set(path.id, Standing::Joining { since: now, next });
            self.joined = Some(path.id);
        }
        let longest = candidates.iter().map(|path| path.rtt).max().unwrap_or_default();
        let stretch = (longest / STRETCHES).clamp(STRETCH_MIN, STRETCH_MAX);
        self.watch.get_or_insert_with(|| Box::new(Watch::new(stretch))).renew(usize::from(path.id) % PATHS_MAX, stretch);
    }
}

impl Watch {
    fn new(stretch: Duration) -> Self {
        Self { delays: Default::default(), kin: Default::default(), stretch }
    }

    fn on_delay(&mut self, path: usize, arrived: Time, seconds: f64) {
        let stretch = arrived.as_nanos() / nanos(self.stretch);
        let Some((number, mean)) = self.delays[path].on_delay(stretch, seconds) else { return };
        for other in (0..PATHS_MAX).filter(|other| *other != path) {
            if let Some(others) = self.delays[other].mean(number) {
                self.kin[path.max(other)][path.min(other)].on_stretch(mean, others);
            }
        }
    }

    /// A path joins, which may lead elsewhere than when it was last seen.
    fn renew(&mut self, path: usize, stretch: Duration) {
        if stretch.abs_diff(self.stretch) > self.stretch / 2 {
            self.stretch = stretch;
            self.delays = Default::default();
        }
        for other in 0..PATHS_MAX {
            self.kin[path.max(other)][path.min(other)] = Kin::default();
        }
    }
}

fn nanos(stretch: Duration) -> u64 {
    u64::try_from(stretch.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// What counts as long: the largest of what the papers on data centres call a short message, 1 MB (Kheirkhah 2016 and its kin begin at 70 kB and switch at 100 kB).
const LONG_BYTES: u64 = 1 << 20;
/// And four products of bandwidth and round-trip time: the start is over, and what it has queued is gone.
const LONG_PRODUCTS: u64 = 4;
/// In which the attempt at more of a path that joins has come to its end (haul-cc, lfn/phase/up.rs: ten).
const JOIN_ROUNDS: u32 = 20;
/// An epoch of cruise takes 0.1 s on short paths.
const LEAST_JOIN: Duration = Duration::from_secs(2);
/// A second look at paths that shared a bottleneck costs others a flow's start: one in 15 s, and each time half as often.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(240);
/// Of a round trip: reports come more often than that.
const STRETCHES: u32 = 4;
const STRETCH_MIN: Duration = Duration::from_millis(2);
const STRETCH_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    fn candidates(count: u8) -> Vec<Candidate> {
        (0..count).map(|id| Candidate { id, rtt: RTT, carried: 1000 - u64::from(id), ..Candidate::default() }).collect()
    }

    fn ids(turns: &Turns) -> Vec<u8> {
        let mut ids: Vec<u8> = turns.iter().collect();
        ids.sort_unstable();
        ids
    }

    struct Run {
        roster: Roster,
        now: Time,
        load: Load,
    }

    impl Run {
        fn new() -> Self {
            Self { roster: Roster::default(), now: Time::ZERO + Duration::from_secs(1), load: Load::default() }
        }

        fn turns(&mut self, count: u8) -> Vec<u8> {
            ids(&self.roster.turns(self.now, &candidates(count), &self.load))
        }

        /// Time passes; what queues of the paths are is told each millisecond, in milliseconds.
        fn pass(&mut self, ms: u32, count: u8, queue: impl Fn(u8, u32) -> f64) {
            for at in 0..ms {
                self.now += Duration::from_millis(1);
                for id in 0..count {
                    self.roster.on_delay(id, self.now, (queue(id, at) * 1e6) as i64);
                }
                self.turns(count);
            }
        }
    }

    fn wave(at: u32, period: u32) -> f64 {
        f64::from(at % period) * 10.0 / f64::from(period)
    }

    #[test]
    fn what_is_short_takes_one_path_whatever_came_before() {
        let mut run = Run::new();
        assert_eq!(run.turns(3), [0]);
        run.roster.on_sent(LONG_BYTES - 1);
        assert_eq!(run.turns(3), [0]);
        run.roster.on_sent(1);
        assert_eq!(run.turns(3), [0, 1]);
        assert_eq!(run.roster.take_joined(), Some(1));
        run.roster.on_idle();
        assert_eq!(run.turns(3), [0]);
        run.load.product = LONG_BYTES;
        run.roster.on_sent(LONG_BYTES * LONG_PRODUCTS - 1);
        assert_eq!(run.turns(3), [0], "four products of a long path");
    }

    #[test]
    fn one_joins_at_a_time_and_stays_where_it_adds() {
        let mut run = Run::new();
        run.roster.on_sent(LONG_BYTES);
        assert_eq!(run.turns(3), [0, 1]);
        run.pass(1000, 3, |id, at| wave(at, 70 + u32::from(id) * 31));
        assert_eq!(run.turns(3), [0, 1, 2]);
        assert_eq!(run.roster.verdict(0, 1), Verdict::Separate);
        assert!(!run.roster.are_together(1, 0));
    }

    #[test]
    fn of_those_that_share_a_bottleneck_one_is_left() {
        let mut run = Run::new();
        run.roster.on_sent(LONG_BYTES);
        assert_eq!(run.turns(4), [0, 1]);
        assert!(run.roster.are_together(0, 1));
        run.pass(3000, 4, |_, at| wave(at, 90));
        assert_eq!(run.turns(4), [0]);
        // Another look later, and the next pause is longer.
        run.now += FIRST_PAUSE;
        assert_eq!(run.turns(4), [0, 1]);
        run.load.keeps_all = true;
        run.pass(3000, 4, |_, at| wave(at, 90));
        assert_eq!(run.turns(4), [0, 1, 2, 3], "coupled laws want all");
    }

    #[test]
    fn nothing_known_is_no_reason_to_leave_one_out() {
        let mut run = Run::new();
        run.roster.on_sent(LONG_BYTES);
        run.turns(2);
        run.pass(3000, 2, |_, _| 0.0);
        assert_eq!(run.turns(2), [0, 1]);
        assert!(run.roster.are_together(0, 1), "one flow to others");
    }

    #[test]
    fn where_the_only_member_is_silent_another_takes_over_at_once() {
        let mut run = Run::new();
        assert_eq!(run.turns(3), [0]);
        let left = candidates(3).split_off(1);
        assert_eq!(ids(&run.roster.turns(run.now, &left, &run.load)), [1]);
        assert_eq!(run.turns(3), [0], "and back");
        assert_eq!(ids(&run.roster.turns(run.now, &left[1..], &run.load)), [2], "the only one, without a choice");
    }
}
