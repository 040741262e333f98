//! Who sends which part of which file.
//!
//! ```text
//!   piece      a range that one server has been told
//!   work       what nobody has been told to send, what has come
//!   server     what each one has been told, how fast it is
//!   balance    who would be busy for how long: what to begin with
//!   endgame    what to do when everything has been told to somebody
//!   settings   policy, units, patience
//! ```
//!
//! A server is *hungry* when what it has been told and has not delivered would take it less than two of its round trips, as long as they are with the queues on the way, and a block; then it is told more. How
//! long a range it gets is guided self-scheduling: half of what its part of the rest will take, 8 s at the most. So ranges are long
//! at first, and near the end all servers have about the same time before them.

mod balance;
mod endgame;
mod piece;
mod server;
mod settings;
mod work;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::piece::Piece;
pub use self::piece::PieceId;
use self::server::Server;
pub use self::settings::{Policy, ServerProfile, Settings};
use self::work::Work;
use crate::catalogue::{Catalogue, FileId, ServerId};

/// Longest time that one range should take a server: after it the server's disk has had its long read, and a checkpoint falls due.
const LONGEST_S: f64 = 8.0;
/// The balance is made anew when an eighth of the work has gone: what it says then is wrong by no more than that.
const REBALANCED: u64 = 8;
/// .. or when a server's rate is so different from what the balance was made with.
const CHANGED: f64 = 1.25;

/// Why a server is told to send something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nobody has been told before.
    Next,
    /// Taken from a server that would have sent it later.
    Taken(ServerId),
    /// Another one sends it too, and will be late.
    Twice(ServerId),
}

/// What the driver is to tell a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Send this range of this file, after what you have been told before. An empty file has an empty range.
    Send {
        /// By which its arrivals are told.
        piece: PieceId,
        /// Who is told.
        server: ServerId,
        /// Of which file.
        file: FileId,
        /// Which bytes.
        range: Range<u64>,
        /// Why.
        why: Why,
    },
    /// Stop before this byte; where that is the beginning of the piece, or behind it, do not send it at all. What is sent all the same
    /// may be told by `handle_arrived`.
    Shorten {
        /// Which piece.
        piece: PieceId,
        /// Who is told.
        server: ServerId,
        /// The first byte that it need not send.
        end: u64,
    },
}

/// What has become of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// All of it has come.
    Complete(FileId),
    /// No server holds it any more.
    Lost(FileId),
}

/// How far everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// All bytes of all files.
    pub total: Bytes,
    /// Bytes that have come, each counted once.
    pub arrived: Bytes,
    /// Bytes that came again, or were for nothing.
    pub wasted: Bytes,
    /// Bytes that somebody has been told to send and that have not come.
    pub in_flight: Bytes,
    /// Files that have not come.
    pub files_left: usize,
}

/// How one server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerStatus {
    /// Can be given work.
    pub is_up: bool,
    /// Has been silent for too long.
    pub is_stalled: bool,
    /// What is expected of it.
    pub rate: BitRate,
    /// Bytes that came from it before they came from others.
    pub delivered: Bytes,
    /// Bytes that it has been told to send and that have not come.
    pub in_flight: Bytes,
}

/// The plan of one job: see [the crate's page](crate).
#[derive(Debug)]
pub struct Plan {
    catalogue: Catalogue,
    settings: Settings,
    servers: Vec<Server>,
    work: Work,
    pieces: HashMap<PieceId, Piece>,
    next_piece: u64,
    orders: VecDeque<Order>,
    events: VecDeque<Event>,
    wasted: u64,
    /// Seconds of work of each server, and what that was made with.
    busy_s: Vec<f64>,
    balanced: Balanced,
    is_dealt: bool,
    lost: usize,
}

#[derive(Debug, Default)]
struct Balanced {
    number: u64,
    pending: u64,
    rates: Vec<f64>,
    is_stale: bool,
}

impl Plan {
    /// Nobody is up yet.
    pub fn new(catalogue: Catalogue, settings: Settings) -> Self {
        let work = Work::new(&catalogue, settings.unit.as_u64());
        let mut plan = Self {
            servers: (0..catalogue.servers()).map(|_| Server::new()).collect(),
            busy_s: vec![0.0; catalogue.servers()],
            work,
            catalogue,
            settings,
            pieces: HashMap::new(),
            // They are the numbers of orders, which begin with 1.
            next_piece: 1,
            orders: VecDeque::new(),
            events: VecDeque::new(),
            wasted: 0,
            balanced: Balanced { is_stale: true, ..Balanced::default() },
            is_dealt: false,
            lost: 0,
        };
        plan.enter_sets(0);
        for file in plan.catalogue.files() {
            for holder in plan.catalogue.holders(file) {
                plan.servers[holder.index()].files_left += 1;
            }
        }
        plan
    }

    /// A server can be told to send, for the first time or again.
    pub fn handle_up(&mut self, server: ServerId, profile: ServerProfile, now: Time) {
        self.servers[server.index()].come_up(profile, now);
        self.balanced.is_stale = true;
    }

    /// A server's round trips take so long at present, queues included.
    pub fn handle_rtt(&mut self, server: ServerId, rtt: Duration) {
        self.servers[server.index()].on_rtt(rtt);
    }

    /// A server has gone. What has come from it stays; the rest goes to others, or waits for it.
    pub fn handle_down(&mut self, server: ServerId, now: Time) {
        self.servers[server.index()].is_up = false;
        self.take_all_back(server, now);
        self.redeal(server);
    }

    /// Bytes of a piece have come and are what they should be. Returns how many of them had not come before.
    pub fn handle_arrived(&mut self, piece: PieceId, range: Range<u64>, now: Time) -> u64 {
        let Some(known) = self.pieces.get_mut(&piece) else {
            // Shortened to nothing, given up, or of a file that is whole already.
            self.wasted += range.end.saturating_sub(range.start);
            return 0;
        };
        let (server, file) = (known.server, known.file);
        let size = self.catalogue.size(file).as_u64();
        let range = range.start.min(size)..range.end.min(size);
        let bytes = range.end.saturating_sub(range.start);
        let before = known.outstanding();
        let inside = range.end.min(known.range.end).saturating_sub(range.start.max(known.range.start));
        known.arrived += inside;
        known.reached = known.reached.max(range.end);
        let after = known.outstanding();
        let is_over = after == 0;
        let sender = &mut self.servers[server.index()];
        sender.outstanding -= before - after;
        if sender.is_stalled {
            self.balanced.is_stale = true;
        }
        sender.on_arrived(bytes, now);
        let (fresh, is_whole) = self.work.arrived(&self.catalogue, file, &range);
        sender.delivered += fresh;
        self.wasted += bytes - fresh;
        self.work.forget_arrived(&self.catalogue, file, &range);
        if is_whole {
            self.finish(file, piece, now);
        } else {
            if is_over {
                // What was told twice has not come once: the rest is still to be sent.
                self.take_back(piece, now);
            }
            self.end_the_needless(file);
        }
        fresh
    }

    /// What of a range of a piece has not come yet, ascending; nothing where the piece is over.
    pub fn not_come(&self, piece: PieceId, range: Range<u64>) -> Vec<Range<u64>> {
        let known = self.pieces.get(&piece).and_then(|known| self.work.begun(known.file));
        known.map(|begun| begun.coverage.missing(&range)).unwrap_or_default()
    }

    /// A file need not come any more: nobody is told to send it, and who sends some of it may stop. It counts as neither come nor lost.
    pub fn handle_unwanted(&mut self, file: FileId, now: Time) {
        if let Some(begun) = self.work.drop_file(&self.catalogue, file) {
            self.end_pieces(file, begun.pieces, None, now);
        }
    }

    /// A server does not hold the file of a piece, or holds other content than was agreed on.
    pub fn handle_unfit(&mut self, piece: PieceId, now: Time) {
        let Some(known) = self.pieces.get(&piece) else { return };
        let (server, file) = (known.server, known.file);
        if self.catalogue.holders(file).contains(&server) {
            self.servers[server.index()].files_left -= 1;
        }
        let before = self.catalogue.set(file);
        let count = self.catalogue.set_count();
        self.catalogue.remove_holder(file, server);
        self.work.regroup(&self.catalogue, file, before);
        self.enter_sets(count);
        let of_file = self.work.begun(file).map(|begun| begun.pieces.clone()).unwrap_or_default();
        for piece in of_file {
            if self.pieces[&piece].server == server {
                self.take_back(piece, now);
            }
        }
        self.balanced.is_stale = true;
        if self.catalogue.holders(file).is_empty() {
            self.lost += 1;
            self.events.push_back(Event::Lost(file));
        } else if self.settings.policy == Policy::RoundRobin {
            self.deal(file);
        }
    }

    /// What is to be told to whom; call until there is nothing.
    pub fn poll_order(&mut self, now: Time) -> Option<Order> {
        loop {
            if let Some(order) = self.orders.pop_front() {
                return Some(order);
            }
            if now < self.settings.start_at {
                return None;
            }
            self.find_stalled(now);
            if !self.feed_the_hungriest(now) {
                return None;
            }
        }
    }

    /// What has become of files, in the order in which it happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to poll again though nothing has happened.
    pub fn next_timeout(&self, now: Time) -> Option<Time> {
        if now < self.settings.start_at {
            return Some(self.settings.start_at);
        }
        let patience = self.settings.patience;
        let stalls =
            self.servers.iter().filter_map(|server| server.stalls_at(patience).or_else(|| server.is_tried_again_at(patience)));
        let later = |time: Time| (time > now).then_some(time);
        let idle = self.servers.iter().filter(|server| server.is_usable() && server.files_left > 0);
        stalls.chain(idle.filter_map(|server| later(server.rests_until.max(server.retry)))).min()
    }

    /// Whether all files have come.
    pub fn is_done(&self) -> bool {
        self.work.files_left == 0
    }

    /// Whether nothing more can come: every file that is left is held by nobody, or by servers that are down.
    pub fn is_stuck(&self) -> bool {
        !self.is_done()
            && self.orders.is_empty()
            && self.pieces.is_empty()
            && !self.servers.iter().any(|server| {
                server.is_up && (!server.dealt.is_empty() || server.sets.iter().any(|set| self.work.has_work(*set)))
            })
    }

    /// Whether this file has come.
    pub fn is_complete(&self, file: FileId) -> bool {
        self.work.is_done(file)
    }

    /// Files that no server holds any more.
    pub fn lost_files(&self) -> usize {
        self.lost
    }

    /// How far everything is.
    pub fn status(&self) -> Status {
        Status {
            total: self.catalogue.total(),
            arrived: Bytes(self.work.arrived),
            wasted: Bytes(self.wasted),
            in_flight: Bytes(self.servers.iter().map(|server| server.outstanding).sum()),
            files_left: self.work.files_left,
        }
    }

    /// How one server does.
    pub fn server(&self, server: ServerId) -> ServerStatus {
        let server = &self.servers[server.index()];
        ServerStatus {
            is_up: server.is_up,
            is_stalled: server.is_stalled,
            rate: BitRate::from_bps((server.rate() * 8.0) as u64),
            delivered: Bytes(server.delivered),
            in_flight: Bytes(server.outstanding),
        }
    }

    /// The files and who holds them, as far as is known by now.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Tells one server to send more, the one that will be idle first. False if nobody needs more or there is nothing to be told.
    fn feed_the_hungriest(&mut self, now: Time) -> bool {
        let (rests, unit) = (!self.settings.pause.is_zero(), self.settings.unit.as_u64());
        let mut hungry: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].is_hungry(now, rests, unit)).collect();
        hungry.sort_by(|a, b| self.servers[*a].busy_s().total_cmp(&self.servers[*b].busy_s()));
        hungry.into_iter().any(|at| match self.settings.policy {
            Policy::Dynamic => self.feed(at) || self.end_sooner(at, now),
            Policy::RoundRobin => self.feed_dealt(at),
        })
    }

    fn feed(&mut self, at: usize) -> bool {
        if self.work.pending == 0 && !self.servers[at].sets.iter().any(|set| self.work.has_work(*set)) {
            return false;
        }
        self.rebalance();
        if self.servers[at].ordered_at != self.balanced.number {
            let order = balance::order(&self.catalogue, &self.work, &self.servers, &self.busy_s, at);
            let server = &mut self.servers[at];
            (server.order, server.next, server.ordered_at) = (order, 0, self.balanced.number);
        }
        let server = &mut self.servers[at];
        while let Some(&set) = server.order.get(server.next) {
            if !self.work.has_work(set) {
                server.next += 1;
                continue;
            }
            let seconds = (self.busy_s[at] / 2.0).min(LONGEST_S);
            let want = (server.rate() * seconds) as u64;
            let Some((file, range)) = self.work.take(&self.catalogue, set, want.max(1)) else {
                server.next += 1;
                continue;
            };
            self.send(ServerId(at as u16), file, range, Why::Next);
            return true;
        }
        false
    }

    fn rebalance(&mut self) {
        let is_old = self.work.pending < self.balanced.pending - self.balanced.pending / REBALANCED;
        let has_changed =
            |server: &Server, then: &f64| server.is_usable() && !(1.0 / CHANGED..=CHANGED).contains(&(server.rate() / then));
        let has_changed = || self.servers.iter().zip(&self.balanced.rates).any(|(server, then)| has_changed(server, then));
        if !(self.balanced.is_stale || is_old || has_changed()) {
            return;
        }
        self.busy_s = balance::balance(&self.catalogue, &self.work, &self.servers);
        self.balanced = Balanced {
            number: self.balanced.number + 1,
            pending: self.work.pending,
            rates: self.servers.iter().map(Server::rate).collect(),
            is_stale: false,
        };
    }

    fn send(&mut self, server: ServerId, file: FileId, range: Range<u64>, why: Why) {
        let piece = PieceId(self.next_piece);
        self.next_piece += 1;
        let told = &mut self.servers[server.index()];
        told.outstanding += range.end - range.start;
        told.pieces.push_back(piece);
        if let Some(begun) = self.work.begun_mut(file) {
            begun.pieces.push(piece);
        }
        let known = Piece { server, file, range: range.clone(), arrived: 0, reached: range.start, is_doubled: false };
        self.pieces.insert(piece, known);
        self.orders.push_back(Order::Send { piece, server, file, range, why });
    }

    /// A file has come: whoever still sends some of it may stop.
    fn finish(&mut self, file: FileId, last: PieceId, now: Time) {
        let Some(begun) = self.work.finish(&self.catalogue, file) else { return };
        self.end_pieces(file, begun.pieces, Some(last), now);
        self.events.push_back(Event::Complete(file));
    }

    /// Nothing more of a file is needed.
    fn end_pieces(&mut self, file: FileId, pieces: Vec<PieceId>, last: Option<PieceId>, now: Time) {
        for piece in pieces {
            if Some(piece) != last && self.pieces.get(&piece).is_some_and(|known| known.outstanding() > 0) {
                self.shorten_to_nothing(piece);
            }
            self.drop_piece(piece, now);
        }
        for holder in self.catalogue.holders(file) {
            self.servers[holder.index()].files_left -= 1;
        }
        self.balanced.is_stale |= last.is_none();
    }

    /// Of a file that several send: ends pieces of which everything has come from others.
    fn end_the_needless(&mut self, file: FileId) {
        let Some(begun) = self.work.begun(file) else { return };
        if begun.pieces.len() < 2 {
            return;
        }
        let is_needless = |piece: &&PieceId| {
            let known = &self.pieces[*piece];
            known.outstanding() > 0 && begun.coverage.has(&known.range)
        };
        let needless: Vec<PieceId> = begun.pieces.iter().filter(is_needless).copied().collect();
        for piece in needless {
            self.shorten_to_nothing(piece);
            let heard = self.servers[self.pieces[&piece].server.index()].heard;
            self.drop_piece(piece, heard);
        }
    }

    fn shorten_to_nothing(&mut self, piece: PieceId) {
        let known = &self.pieces[&piece];
        if self.servers[known.server.index()].is_up {
            self.orders.push_back(Order::Shorten { piece, server: known.server, end: known.range.start });
        }
    }

    /// Forgets a piece that has come, or will not.
    fn drop_piece(&mut self, piece: PieceId, now: Time) {
        let Some(known) = self.pieces.remove(&piece) else { return };
        if let Some(begun) = self.work.begun_mut(known.file) {
            begun.pieces.retain(|other| *other != piece);
        }
        let pause = self.settings.pause;
        let server = &mut self.servers[known.server.index()];
        server.outstanding -= known.outstanding();
        // Nearly always the first.
        if let Some(at) = server.pieces.iter().position(|other| *other == piece) {
            server.pieces.remove(at);
        }
        if server.pieces.is_empty() {
            server.on_idle();
            server.rests_until = now + pause;
        }
    }

    /// A piece will not come from its server: the rest of it is for others.
    fn take_back(&mut self, piece: PieceId, now: Time) {
        let Some(known) = self.pieces.get(&piece) else { return };
        let (file, range) = (known.file, known.range.clone());
        self.drop_piece(piece, now);
        let left = self.work.begun(file).map(|begun| begun.pieces.clone()).unwrap_or_default();
        let mut others = Vec::with_capacity(left.len());
        for other in left {
            let Some(known) = self.pieces.get_mut(&other) else { continue };
            known.is_doubled = false;
            others.push(known.range.clone());
        }
        self.balanced.is_stale |= self.work.give_back(&self.catalogue, file, &range, &others);
    }

    fn take_all_back(&mut self, server: ServerId, now: Time) {
        for piece in Vec::from(std::mem::take(&mut self.servers[server.index()].pieces)) {
            self.take_back(piece, now);
        }
        self.balanced.is_stale = true;
    }

    /// Servers that have been silent for too long lose what they were told.
    fn find_stalled(&mut self, now: Time) {
        let patience = self.settings.patience;
        for at in 0..self.servers.len() {
            if self.servers[at].is_tried_again_at(patience).is_some_and(|then| then <= now) {
                self.servers[at].is_stalled = false;
                self.servers[at].heard = now;
                self.balanced.is_stale = true;
            }
            if self.servers[at].stalls_at(patience).is_some_and(|then| then <= now) {
                let told: Vec<PieceId> = self.servers[at].pieces.iter().copied().collect();
                self.servers[at].is_stalled = true;
                // They stay known: what comes late counts.
                for piece in told {
                    let known = &self.pieces[&piece];
                    let (file, range) = (known.file, known.range.clone());
                    let Some(begun) = self.work.begun(file) else { continue };
                    let others = begun.pieces.iter().filter(|other| **other != piece).map(|other| &self.pieces[other]);
                    let others: Vec<Range<u64>> = others
                        .filter(|other| self.servers[other.server.index()].is_usable())
                        .map(|other| other.range.clone())
                        .collect();
                    self.work.give_back(&self.catalogue, file, &range, &others);
                }
                self.balanced.is_stale = true;
            }
        }
    }

    /// Servers enter the sets from `first` on.
    fn enter_sets(&mut self, first: usize) {
        for set in (first..self.catalogue.set_count()).map(|set| crate::catalogue::SetId(set as u32)) {
            for server in self.catalogue.members(set) {
                self.servers[server.index()].sets.push(set);
            }
        }
    }
}

/// The paper's policy.
impl Plan {
    fn feed_dealt(&mut self, at: usize) -> bool {
        if !std::mem::replace(&mut self.is_dealt, true) {
            let files: Vec<FileId> = self.catalogue.files().collect();
            for file in files {
                self.deal(file);
            }
        }
        while let Some(file) = self.servers[at].dealt.pop_front() {
            if let Some(range) = self.work.take_whole(&self.catalogue, file) {
                // What a dead one had begun may be several ranges.
                let more = self.work.begun(file).is_some();
                self.send(ServerId(at as u16), file, range, Why::Next);
                if more {
                    self.servers[at].dealt.push_front(file);
                }
                return true;
            }
        }
        false
    }

    /// Gives a file to the next of its holders that is up.
    fn deal(&mut self, file: FileId) {
        let holders = self.catalogue.holders(file);
        let up: Vec<usize> = holders.iter().map(|holder| holder.index()).filter(|at| self.servers[*at].is_up).collect();
        // Nobody is: it waits for the first.
        let at = if up.is_empty() { holders.first().map(|holder| holder.index()) } else { Some(up[file.index() % up.len()]) };
        if let Some(at) = at {
            self.servers[at].dealt.push_back(file);
        }
    }

    fn redeal(&mut self, server: ServerId) {
        if self.settings.policy == Policy::RoundRobin && self.is_dealt {
            let begun: Vec<FileId> = self
                .catalogue
                .files()
                .filter(|file| self.work.begun(*file).is_some_and(|begun| begun.pieces.is_empty()))
                .collect();
            let dealt = std::mem::take(&mut self.servers[server.index()].dealt);
            dealt.into_iter().chain(begun).for_each(|file| self.deal(file));
        }
    }
}
