//! Servers that send what a plan tells them, over a client's link that they share, in virtual time.
//!
//! An order takes half a round trip to its server, bytes take half a round trip back. All servers together get what the client's link carries, shared max-min, evenly or by weight.
//! Between two events rates are constant, so no time is stepped through that is not needed. What has arrived is told when a piece ends, and at ticks; or block by block.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::catalogue::{Catalogue, FileId, ServerId};
use crate::load::Load;
use crate::plan::{Event, Order, PieceId, Plan, ServerProfile, Settings, Why};

/// A tick: 50 ms, or a two-thousandth of the job.
fn tick(bound_s: f64) -> Duration {
    Duration::from_secs_f64((bound_s / 2000.0).clamp(0.05, 1.0))
}

/// A connection whose other end has gone with a word is noticed so soon.
const NOTICED: Duration = Duration::from_millis(200);

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// Its rate is multiplied.
    Slows(f64),
    /// It dies, and its connection with it.
    Dies,
    /// It says nothing more, and nobody tells.
    FallsSilent,
}

/// One server.
#[derive(Debug, Clone)]
pub struct Site {
    /// What it can send.
    pub bytes_per_s: f64,
    /// To the client and back.
    pub rtt: Duration,
    /// How long bytes wait in queues on their way to the client, besides. The plan hears of it as a driver measures it: a moment after the start.
    pub queue: Duration,
    /// Bytes arrive in blocks of this, none of it before all of it; zero: at any time.
    pub block: u64,
    /// What will happen to it, the earliest first.
    pub fates: Vec<(Time, Fate)>,
    /// Files that it does not have, whatever the catalogue says.
    pub lacks: Vec<FileId>,
    /// Its part of the client's link where that is too narrow for all, beside those of the others: 1 for all is an even share.
    pub weight: f64,
    /// What its connection begins with, in bytes per second; infinite where it finds all at once.
    pub begins: f64,
    /// The factor by which that becomes more in each second in which it sends all of it.
    pub grows: f64,
    /// When it says what it has, and can be told to send: the plan knows of its files and of itself from then on. The catalogue's numbers of files are the caller's, as the plan's may be others.
    pub joins: Time,
    /// What the plan is told of the machine.
    pub load: Option<Load>,
}

impl Site {
    /// One that keeps its rate, lives, and has what the catalogue says.
    pub fn new(bytes_per_s: f64, rtt: Duration) -> Self {
        Self {
            bytes_per_s,
            rtt,
            queue: Duration::ZERO,
            block: 0,
            fates: Vec::new(),
            lacks: Vec::new(),
            weight: 1.0,
            begins: f64::INFINITY,
            grows: f64::INFINITY,
            joins: Time::ZERO,
            load: None,
        }
    }

    fn profile(&self) -> ServerProfile {
        ServerProfile { load: self.load, ..ServerProfile::at(self.rtt) }
    }
}

#[derive(Debug, Clone)]
struct Told {
    piece: PieceId,
    file: FileId,
    next: u64,
    end: u64,
}

struct Server {
    site: Site,
    /// Orders on their way, with the time of their arrival.
    coming: VecDeque<(Time, Order)>,
    queue: VecDeque<Told>,
    /// Bytes on their way back.
    going: VecDeque<(Time, Going)>,
    rate: f64,
    /// It was told to be no faster.
    limit: f64,
    /// What its connection has found out that it may send, and what it sends.
    finds: f64,
    sent: f64,
    is_gone: bool,
    /// When the client hears of that.
    noticed: Option<Time>,
    /// Sent bytes of the front piece, not yet on their way.
    fraction: f64,
    /// Bytes that have come since the plan was last told: what passes is even, though what is sent goes a tick at a time. What is under way counts already.
    received: f64,
}

enum Going {
    Bytes(PieceId, Range<u64>, Part),
    Lacks(PieceId),
}

/// Which part of a piece; the last one, and a block, is heard of at once.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Middle,
    Last,
}

/// How a job went.
#[derive(Debug, Default)]
pub struct Played {
    /// Until all had come, or nothing could happen any more.
    pub seconds: f64,
    /// Bytes that came for nothing.
    pub wasted: u64,
    /// What the plan told servers.
    pub orders: usize,
    /// Of these, work that was taken from another one.
    pub taken: usize,
    /// .. that another one does too.
    pub twice: usize,
    /// Whether all has come.
    pub is_done: bool,
    /// How often each file was told to be complete, by its number.
    pub complete: BTreeMap<usize, u32>,
    /// Files that nobody has any more.
    pub lost: usize,
    /// Bytes that the plan counted as new.
    pub counted: u64,
    /// New bytes by server, for each [`BIN`] of the time.
    pub arrived: Vec<Vec<u64>>,
}

/// What [`Played::arrived`] is told by: short beside a job, and no shorter than its ticks.
pub const BIN: Duration = Duration::from_secs(1);

/// How often the plan is told what has come by each connection.
const COUNTED: Duration = Duration::from_millis(100);

/// Plays a job to its end, or until nothing can happen any more. `client` is what its link carries, in bytes per second; `bound_s` about how long it should take at best.
///
/// # Panics
///
/// Where the plan gives orders without end.
pub fn play(catalogue: Catalogue, settings: Settings, sites: &[Site], client: f64, ids: &[ServerId], bound_s: f64) -> Played {
    let tick = tick(bound_s);
    // Later than ten times slower servers need, all patience, and, where nobody helps the slowest one, what it takes for everything.
    let slowest = sites.iter().map(|site| site.bytes_per_s).fold(client, f64::min);
    let given_up_s = 100.0 * bound_s + 1000.0 + 20.0 * catalogue.total().as_u64() as f64 / slowest;
    let files: usize = catalogue.files().count();
    let (mut plan, mut joining) = Joining::begin(catalogue, settings, sites, ids);
    let mut now = Time::ZERO;
    let mut played = Played { arrived: vec![Vec::new(); sites.len()], ..Played::default() };
    let mut servers: Vec<Server> = sites.iter().map(Server::new).collect();
    let (mut steps, mut counted_at) = (0u64, Time::ZERO);
    loop {
        joining.join(&mut plan, now, sites, ids);
        let within = now.since(counted_at);
        if within >= COUNTED {
            counted_at = now;
            for (server, id) in servers.iter_mut().zip(ids) {
                plan.handle_received(*id, Bytes(std::mem::take(&mut server.received) as u64), within);
            }
        }
        for (at, server) in servers.iter_mut().enumerate() {
            server.arrive(now, ids[at], &mut plan, &mut played);
        }
        while let Some(mut order) = plan.poll_order(now) {
            if let Order::Send { file, .. } = &mut order {
                *file = joining.original(*file);
            }
            played.orders += 1;
            assert!(played.orders < 50 * (files + 10_000), "orders without end: {order:?}, {:?}", plan.status());
            let (to, why) = match &order {
                Order::Send { server, why, .. } => (server.index(), Some(*why)),
                Order::Shorten { server, .. } | Order::Limit { server, .. } | Order::Room { server, .. } => {
                    (server.index(), None)
                }
            };
            played.taken += usize::from(matches!(why, Some(Why::Taken(_))));
            played.twice += usize::from(matches!(why, Some(Why::Twice(_))));
            let there = now + servers[to].site.rtt / 2;
            servers[to].coming.push_back((there, order));
        }
        while let Some(event) = plan.poll_event() {
            match event {
                Event::Complete(file) => *played.complete.entry(joining.original(file).index()).or_default() += 1,
                Event::Lost(_) => played.lost += 1,
            }
        }
        if joining.is_over() && (plan.is_done() || plan.is_stuck()) || now.as_secs_f64() > given_up_s {
            break;
        }
        for server in &mut servers {
            server.hear(now);
        }
        let shares = share(&servers, client);
        let next = servers
            .iter()
            .zip(&shares)
            .flat_map(|(server, share)| server.next(now, *share))
            .chain(plan.next_timeout(now))
            .chain(joining.next())
            .min();
        let ticks = now.as_nanos() / tick.as_nanos() as u64 + 1;
        let next = next
            .unwrap_or(Time::NEVER)
            .min(Time::from_nanos(ticks * tick.as_nanos() as u64))
            .max(now + Duration::from_nanos(100));
        let is_tick = next.as_nanos() % tick.as_nanos() as u64 == 0;
        for ((server, share), id) in servers.iter_mut().zip(&shares).zip(ids) {
            server.send(*share, now, next, is_tick);
            if is_tick {
                plan.handle_rtt(*id, server.site.rtt + server.site.queue);
            }
        }
        now = next;
        steps += 1;
        assert!(steps < 20_000_000, "it does not end: {:?} of {files} files", plan.status());
    }
    let status = plan.status();
    played.seconds = now.as_secs_f64();
    played.wasted = status.wasted.as_u64();
    played.is_done = plan.is_done();
    played
}

/// The servers that are still to join, and what a plan calls the files that it has heard of meanwhile.
struct Joining {
    whole: Catalogue,
    /// The last to join first.
    queue: Vec<(Time, usize)>,
    /// By the caller's number of a file the plan's, and the other way round; empty where they are the same.
    heard: Vec<Option<FileId>>,
    originals: Vec<FileId>,
}

impl Joining {
    /// A plan, and who is not in it yet.
    fn begin(mut whole: Catalogue, settings: Settings, sites: &[Site], ids: &[ServerId]) -> (Plan, Self) {
        let (mut heard, mut queue) = (Vec::new(), Vec::new());
        let at_once = sites.iter().all(|site| site.joins == Time::ZERO);
        let mut known = Catalogue::new();
        if at_once {
            std::mem::swap(&mut known, &mut whole);
        } else {
            for _ in 0..whole.servers() {
                known.add_server();
            }
            heard = vec![None; whole.files().count()];
            queue = sites.iter().enumerate().map(|(at, site)| (site.joins, at)).collect();
            queue.sort_unstable_by(|a, b| b.cmp(a));
        }
        let mut plan = Plan::new(known, settings);
        for (site, id) in sites.iter().zip(ids).filter(|_| at_once) {
            plan.handle_up(*id, site.profile(), Time::ZERO);
        }
        (plan, Self { whole, queue, heard, originals: Vec::new() })
    }

    /// Those whose time has come say what they have.
    fn join(&mut self, plan: &mut Plan, now: Time, sites: &[Site], ids: &[ServerId]) {
        while let Some((_, at)) = self.queue.pop_if(|(then, _)| *then <= now) {
            let id = ids[at];
            for file in self.whole.files().filter(|file| self.whole.holders(*file).contains(&id)) {
                if let Some(known) = self.heard[file.index()] {
                    plan.handle_holder(known, id);
                    continue;
                }
                let found = plan.handle_found(self.whole.size(file), &[id]).expect("a file of the catalogue");
                self.heard[file.index()] = Some(found);
                self.originals.push(file);
            }
            plan.handle_up(id, sites[at].profile(), now);
        }
    }

    fn is_over(&self) -> bool {
        self.queue.is_empty()
    }

    /// When somebody joins next.
    fn next(&self) -> Option<Time> {
        self.queue.last().map(|(then, _)| *then)
    }

    /// The caller's number of a file.
    fn original(&self, file: FileId) -> FileId {
        self.originals.get(file.index()).copied().unwrap_or(file)
    }
}

impl Server {
    fn new(site: &Site) -> Self {
        Self {
            rate: site.bytes_per_s,
            limit: f64::INFINITY,
            finds: site.begins,
            sent: 0.0,
            site: site.clone(),
            coming: VecDeque::new(),
            queue: VecDeque::new(),
            going: VecDeque::new(),
            is_gone: false,
            noticed: None,
            fraction: 0.0,
            received: 0.0,
        }
    }

    /// What reaches the client.
    fn arrive(&mut self, now: Time, id: ServerId, plan: &mut Plan, played: &mut Played) {
        while self.going.front().is_some_and(|(then, _)| *then <= now) {
            let Some((_, going)) = self.going.pop_front() else { break };
            match going {
                Going::Lacks(piece) => plan.handle_unfit(piece, now),
                Going::Bytes(piece, range, _) => {
                    let fresh = plan.handle_arrived(piece, range, now);
                    played.counted += fresh;
                    let (bins, at) = (&mut played.arrived[id.index()], (now.as_nanos() / BIN.as_nanos() as u64) as usize);
                    bins.resize(bins.len().max(at + 1), 0);
                    bins[at] += fresh;
                }
            }
        }
        if self.noticed.is_some_and(|then| then <= now) {
            self.noticed = None;
            plan.handle_down(id, now);
        }
    }

    /// What reaches the server.
    fn hear(&mut self, now: Time) {
        while self.coming.front().is_some_and(|(then, _)| *then <= now) {
            match self.coming.pop_front() {
                Some((_, Order::Send { piece, file, range, .. })) => {
                    self.queue.push_back(Told { piece, file, next: range.start, end: range.end });
                }
                Some((_, Order::Shorten { piece, end, .. })) => {
                    if let Some(told) = self.queue.iter_mut().find(|told| told.piece == piece) {
                        told.end = told.end.min(end.max(told.next));
                    }
                    // What was under way of it is for nothing.
                    if let Some(front) = self.queue.front().filter(|told| told.piece == piece) {
                        self.fraction = self.fraction.min((front.end - front.next) as f64);
                    }
                    let is_over = |told: &Told| told.piece == piece && told.next >= told.end;
                    self.queue.retain(|told| !is_over(told));
                }
                Some((_, Order::Limit { limit, .. })) => {
                    self.limit = limit.map_or(f64::INFINITY, |limit| limit.bytes_per_second() as f64);
                }
                Some((_, Order::Room { rate, .. })) => {
                    // As far as a connection takes it up.
                    let room = (rate.bytes_per_second() as f64).min(self.sent * 2.0);
                    self.finds = self.finds.max(room);
                }
                None => break,
            }
        }
        while let Some(&(then, fate)) = self.site.fates.first() {
            if then > now {
                break;
            }
            self.site.fates.remove(0);
            match fate {
                Fate::Slows(factor) => self.rate *= factor,
                Fate::Dies | Fate::FallsSilent => {
                    self.is_gone = true;
                    self.queue.clear();
                    self.noticed = (fate == Fate::Dies).then(|| now + NOTICED);
                }
            }
        }
        if self.is_gone {
            self.queue.clear();
        }
        // Empty files, and those that are not there, take no time to say so.
        while let Some(told) = self.queue.front() {
            let back = now + self.back();
            let going = if self.site.lacks.contains(&told.file) {
                Going::Lacks(told.piece)
            } else if told.next == told.end {
                Going::Bytes(told.piece, told.next..told.end, Part::Last)
            } else {
                break;
            };
            self.going.push_back((back, going));
            self.queue.pop_front();
        }
    }

    /// When something happens here next.
    fn next(&self, now: Time, share: f64) -> impl Iterator<Item = Time> {
        let coming = self.coming.front().map(|(then, _)| *then);
        let fate = self.site.fates.first().map(|(then, _)| *then);
        let ends =
            self.going.front().filter(|(_, going)| !matches!(going, Going::Bytes(_, _, Part::Middle))).map(|(then, _)| *then);
        let sent = self.queue.front().filter(|_| share > 0.0).map(|told| {
            let left = (self.whole(told) - told.next) as f64 - self.fraction;
            now + Duration::from_secs_f64((left / share).max(1e-9))
        });
        [coming, ends, fate, self.noticed, sent].into_iter().flatten()
    }

    /// The way to the client takes so long.
    fn back(&self) -> Duration {
        self.site.rtt / 2 + self.site.queue
    }

    /// The end of what is sent next, as a whole.
    fn whole(&self, told: &Told) -> u64 {
        let block = self.site.block;
        told.next.checked_div(block).map_or(told.end, |whole| (whole + 1).saturating_mul(block).min(told.end))
    }

    /// Sends for a while; what has been sent of a piece goes when it is over, or at a tick.
    fn send(&mut self, share: f64, from: Time, to: Time, is_tick: bool) {
        self.fraction += share * (to - from).as_secs_f64();
        if !self.queue.is_empty() {
            self.sent = share;
            self.received += share * (to - from).as_secs_f64();
            if share >= self.finds {
                self.finds *= self.site.grows.powf((to - from).as_secs_f64());
            }
        }
        let back = self.back();
        while let Some(end) = self.queue.front().map(|told| self.whole(told)) {
            let Some(told) = self.queue.front_mut() else { break };
            // Half a byte: what rounding has eaten.
            let whole = ((self.fraction + 0.5) as u64).min(end - told.next);
            if whole == 0 || (told.next + whole < end && (!is_tick || self.site.block > 0)) {
                break;
            }
            self.fraction -= whole as f64;
            let range = told.next..told.next + whole;
            told.next = range.end;
            let part = if told.next < told.end && self.site.block == 0 { Part::Middle } else { Part::Last };
            self.going.push_back((to + back, Going::Bytes(told.piece, range, part)));
            if told.next < told.end {
                if told.next < end {
                    break;
                }
                continue;
            }
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            self.fraction = 0.0;
        }
    }
}

/// Max-min shares of the client's link, by weight.
fn share(servers: &[Server], client: f64) -> Vec<f64> {
    let wants = |server: &Server| if server.queue.is_empty() { 0.0 } else { server.rate.min(server.limit).min(server.finds) };
    let mut wanted: Vec<(f64, f64)> = servers.iter().map(|server| (wants(server), server.site.weight)).collect();
    wanted.retain(|(rate, _)| *rate > 0.0);
    wanted.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (mut left, mut weights, mut level) = (client, wanted.iter().map(|(_, weight)| weight).sum::<f64>(), f64::INFINITY);
    for (rate, weight) in wanted {
        let even = left / weights;
        if rate / weight > even {
            level = even;
            break;
        }
        left -= rate;
        weights -= weight;
    }
    servers.iter().map(|server| wants(server).min(level * server.site.weight)).collect()
}
