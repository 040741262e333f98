//! Members that take files at a rate and tell of it a round trip later, in virtual time.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use haul_plan::{Load, Placement, PlacementSettings, Task};
use haul_units::{Bytes, Time};

/// How often members tell how much they have, and are asked.
const TICK: Duration = Duration::from_millis(200);
/// How long a file that cannot be kept takes to fail: those behind it are finished before.
const FAILING: Duration = Duration::from_secs(1);

/// A member.
#[derive(Debug, Clone)]
pub struct Site {
    /// Bytes per second.
    pub rate: f64,
    pub rtt: Duration,
    /// Bytes; none: nobody knows, and there is enough.
    pub room: Option<u64>,
    pub dies: Option<Time>,
    /// From then on it is so much slower.
    pub slows: Option<(Time, f64)>,
    /// What it says of its machine.
    pub load: Option<Load>,
    /// Files that it cannot keep.
    pub fails: BTreeSet<u32>,
}

impl Site {
    pub fn new(rate: f64, rtt: Duration) -> Self {
        Self { rate, rtt, room: None, dies: None, slows: None, load: None, fails: BTreeSet::new() }
    }
}

#[derive(Debug)]
pub struct Played {
    pub seconds: f64,
    /// Who has each file at the end, the dead left out.
    pub held: Vec<BTreeSet<usize>>,
    /// Files with fewer replicas than asked for.
    pub short: Vec<(u32, usize)>,
    /// Bytes that went to members that died, and replicas that were given.
    pub wasted: u64,
    pub given: usize,
    /// The longest time that a living member had nothing to do before the end.
    pub idle_s: f64,
}

struct Member {
    site: Site,
    alive: bool,
    queue: VecDeque<(u32, f64)>,
    bytes: f64,
    files: u64,
    used: u64,
    /// What it has told and has not been heard: when it will be.
    words: VecDeque<(Time, u64, u64)>,
    /// Files that it could not keep, and when that is heard.
    failed: VecDeque<(Time, u32)>,
    has: BTreeSet<u32>,
    last_busy: Time,
}

/// Places files of these sizes, all known at once; the client sends `client` bytes per second at most.
pub fn play(settings: PlacementSettings, sites: &[Site], sizes: &[u64], client: f64) -> Played {
    let replicas = settings.replicas;
    let mut placement = Placement::new(settings, sites.len());
    let mut now = Time::ZERO;
    for (member, site) in sites.iter().enumerate() {
        placement.handle_up(member, site.rtt, now);
        if let Some(load) = site.load {
            placement.handle_load(member, load);
        }
        if let Some(room) = site.room {
            placement.handle_room(member, Bytes(room));
        }
    }
    let mut given: Vec<BTreeSet<usize>> = sizes.iter().map(|_| BTreeSet::new()).collect();
    for size in sizes {
        let file = placement.add_file(Bytes(*size));
        placement.release(file);
    }
    placement.complete();
    let mut members: Vec<Member> = sites.iter().map(Member::new).collect();
    let (mut wasted, mut count) = (0, 0);
    while !placement.is_settled() {
        assert!(
            now.as_secs_f64() < 1e9,
            "no end: {members:?}",
            members = members.iter().map(|m| m.queue.len()).collect::<Vec<_>>()
        );
        for (at, member) in members.iter_mut().enumerate() {
            if member.alive && member.site.dies.is_some_and(|dies| dies <= now) {
                member.alive = false;
                wasted += member.used - member.queue.iter().map(|(_, left)| *left as u64).sum::<u64>();
                placement.handle_down(at);
                for holders in &mut given {
                    holders.remove(&at);
                }
            }
            while member.alive && member.words.front().is_some_and(|(when, ..)| *when <= now) {
                let (_, bytes, files) = member.words.pop_front().expect("looked at");
                placement.handle_progress(at, Bytes(bytes), files, now);
            }
            while member.alive && member.failed.front().is_some_and(|(when, _)| *when <= now) {
                let (_, file) = member.failed.pop_front().expect("looked at");
                placement.handle_unfit(at, file);
                member.bytes -= sizes[file as usize] as f64;
                given[file as usize].remove(&at);
            }
        }
        // Asked in turns, as by threads of their own.
        let mut asked = true;
        while asked {
            asked = false;
            for (at, member) in members.iter_mut().enumerate().filter(|(_, member)| member.alive) {
                let Task::Take(file) = placement.poll(at, now) else { continue };
                asked = true;
                count += 1;
                assert!(given[file as usize].insert(at), "twice to one member");
                assert!(given[file as usize].len() <= replicas, "too many replicas");
                member.take(file, sizes[file as usize]);
            }
        }
        advance(&mut members, now, client);
        now += TICK;
    }
    let ended = members.iter().filter(|m| m.alive).map(|m| m.last_busy).max().unwrap_or(now);
    let idle = members.iter().filter(|m| m.alive).map(|m| ended.since(m.last_busy).as_secs_f64());
    Played {
        seconds: now.as_secs_f64(),
        held: sizes.iter().enumerate().map(|(file, _)| holders(&members, file as u32)).collect(),
        short: placement.short().collect(),
        wasted,
        given: count,
        idle_s: idle.fold(0.0, f64::max),
    }
}

fn holders(members: &[Member], file: u32) -> BTreeSet<usize> {
    members.iter().enumerate().filter(|(_, m)| m.alive && m.has.contains(&file)).map(|(at, _)| at).collect()
}

/// A tick passes: the client's link is shared by those with work, none above its own rate.
fn advance(members: &mut [Member], now: Time, client: f64) {
    let mut order: Vec<usize> = (0..members.len()).filter(|&at| members[at].alive && !members[at].queue.is_empty()).collect();
    order.sort_by(|a, b| members[*a].rate(now).total_cmp(&members[*b].rate(now)));
    let (mut left, mut sharing) = (client, order.len());
    for at in order {
        let rate = members[at].rate(now).min(left / sharing as f64);
        (left, sharing) = (left - rate, sharing - 1);
        members[at].work(rate * TICK.as_secs_f64(), now);
    }
    for member in members.iter_mut().filter(|member| member.alive) {
        member.words.push_back((now + TICK + member.site.rtt, member.bytes as u64, member.files));
    }
}

impl Member {
    fn new(site: &Site) -> Self {
        Self {
            site: site.clone(),
            alive: true,
            queue: VecDeque::new(),
            bytes: 0.0,
            files: 0,
            used: 0,
            words: VecDeque::new(),
            failed: VecDeque::new(),
            has: BTreeSet::new(),
            last_busy: Time::ZERO,
        }
    }

    fn rate(&self, now: Time) -> f64 {
        self.site.slows.filter(|(when, _)| *when <= now).map_or(self.site.rate, |(_, factor)| self.site.rate * factor)
    }

    fn take(&mut self, file: u32, size: u64) {
        self.used += size;
        assert!(self.site.room.is_none_or(|room| self.used <= room), "more than there is room for");
        self.queue.push_back((file, size as f64));
    }

    fn work(&mut self, mut budget: f64, now: Time) {
        self.last_busy = now;
        while let Some((file, left)) = self.queue.front_mut() {
            let done = left.min(budget);
            (*left, budget) = (*left - done, budget - done);
            self.bytes += done;
            if *left > 0.0 {
                return;
            }
            if self.site.fails.contains(file) {
                self.failed.push_back((now + FAILING + self.site.rtt, *file));
            } else {
                self.has.insert(*file);
                self.files += 1;
            }
            self.queue.pop_front();
        }
    }
}
