//! Who sends which part of which file.
//!
//! ```text
//!   order      what the plan says: orders, events, how far everything is
//!   piece      a range that one server has been told; ends: how it ends
//!   work       what nobody has been told to send, what has come
//!   server     what each one has been told, how fast it is
//!   feed       who is told next; balance: who would be busy for how long
//!   endgame    what to do when everything has been told to somebody
//!   level      who is told to be slower, so that all end together
//!   dealt      round robin
//!   settings   policy, units, patience
//! ```
//!
//! A server is *hungry* when what it has been told and has not delivered would take it less than two of its round trips, as long as they are with the queues on the way, and a block; then it is told more. How
//! long a range it gets is guided self-scheduling: half of what its part of the rest will take, 8 s at the most. So ranges are long
//! at first, and near the end all servers have about the same time before them.

mod balance;
mod dealt;
mod endgame;
mod ends;
mod feed;
mod level;
mod order;
mod piece;
mod server;
mod settings;
mod work;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::balance::Balanced;
use self::level::Level;
pub use self::order::{Event, Order, ServerStatus, Status, Why};
use self::piece::Piece;
pub use self::piece::PieceId;
use self::server::Server;
pub use self::settings::{Policy, ServerProfile, Settings};
use self::work::Work;
use crate::catalogue::{Catalogue, CatalogueError, FileId, ServerId, SetId};

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
    level: Level,
    is_dealt: bool,
    lost: usize,
}

impl Plan {
    /// Nobody is up yet.
    pub fn new(catalogue: Catalogue, settings: Settings) -> Self {
        let work = Work::new(&catalogue, settings.unit.as_u64());
        let mut plan = Self {
            servers: (0..catalogue.servers()).map(|_| Server::new()).collect(),
            busy_s: vec![0.0; catalogue.servers()],
            level: Level::of(catalogue.servers()),
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
            plan.count_for_holders(file);
        }
        plan
    }

    /// A file is found after the start, on these servers as far as is known.
    pub fn handle_found(&mut self, size: Bytes, holders: &[ServerId]) -> Result<FileId, CatalogueError> {
        let count = self.catalogue.set_count();
        let file = self.catalogue.add_file(size, holders)?;
        self.found(file, count);
        Ok(file)
    }

    /// As [`handle_found`](Self::handle_found), of which only these ranges are needed: see [`Catalogue::add_part`].
    pub fn handle_found_part(
        &mut self,
        size: Bytes,
        needed: &[Range<u64>],
        holders: &[ServerId],
    ) -> Result<FileId, CatalogueError> {
        let count = self.catalogue.set_count();
        let file = self.catalogue.add_part(size, needed, holders)?;
        self.found(file, count);
        Ok(file)
    }

    /// A server turns out to hold a file too, whether or not others are at it. A file that was lost is not any more.
    pub fn handle_holder(&mut self, file: FileId, server: ServerId) {
        let (before, count) = (self.catalogue.set(file), self.catalogue.set_count());
        let was_lost = self.catalogue.holders(file).is_empty();
        if self.work.is_done(file) || !self.catalogue.add_holder(file, server) {
            return;
        }
        self.lost -= usize::from(was_lost);
        self.work.regroup(&self.catalogue, file, before);
        self.enter_sets(count);
        let joined = &mut self.servers[server.index()];
        joined.files_left += 1;
        // There may be something to take from the others now.
        joined.retry = Time::ZERO;
        self.balanced.is_stale = true;
        if was_lost && self.settings.policy == Policy::RoundRobin && self.is_dealt {
            self.deal(file);
        }
    }

    /// A server can be told to send, for the first time or again; at whatever time it joins.
    pub fn handle_up(&mut self, server: ServerId, profile: ServerProfile, now: Time) {
        self.servers[server.index()].come_up(profile, now);
        self.deal_what_waits();
        self.forget_limit(server.index());
        self.balanced.is_stale = true;
    }

    /// A server's user has it bring no more than this from now on.
    pub fn handle_limit(&mut self, server: ServerId, limit: Option<BitRate>) {
        self.servers[server.index()].profile.limit = limit;
        self.balanced.is_stale = true;
    }

    /// A server's round trips take so long at present, queues included.
    pub fn handle_rtt(&mut self, server: ServerId, rtt: Duration) {
        self.servers[server.index()].on_rtt(rtt);
    }

    /// There is a sign that a server may be gone, which is no proof; its login has ended, for instance. It loses its work to others when it has been silent for a moment.
    pub fn handle_doubted(&mut self, server: ServerId) {
        self.servers[server.index()].is_doubted = true;
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
        let was_stalled = sender.is_stalled;
        sender.on_arrived(bytes, now);
        if was_stalled {
            self.claim_all(server);
        }
        let (fresh, is_whole) = self.work.arrived(&self.catalogue, file, &range);
        self.servers[server.index()].delivered += fresh;
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
        known.map(|begun| begun.coverage.missing_in(range).collect()).unwrap_or_default()
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
            self.level(now);
            if !self.feed_the_hungriest(now) && self.orders.is_empty() {
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
        let stalls = self.servers.iter().enumerate().filter_map(|(at, server)| {
            server.stalls_at(patience).or_else(|| server.is_tried_again_at(patience, || self.is_needed(at)))
        });
        let later = |time: Time| (time > now).then_some(time);
        let idle = self.servers.iter().filter(|server| server.is_usable() && server.files_left > 0);
        let levels = self.levels_at().and_then(later);
        stalls.chain(idle.filter_map(|server| later(server.rests_until.max(server.retry)))).chain(levels).min()
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

    /// A file is in the catalogue that was not; `count`: sets before it was.
    fn found(&mut self, file: FileId, count: usize) {
        self.work.found(&self.catalogue, file);
        self.enter_sets(count);
        self.count_for_holders(file);
        self.balanced.is_stale = true;
        if self.settings.policy == Policy::RoundRobin && self.is_dealt {
            self.deal(file);
        }
    }

    fn count_for_holders(&mut self, file: FileId) {
        for holder in self.catalogue.holders(file) {
            self.servers[holder.index()].files_left += 1;
        }
    }

    /// Servers enter the sets from `first` on.
    fn enter_sets(&mut self, first: usize) {
        for set in (first..self.catalogue.set_count()).map(|set| SetId(set as u32)) {
            for server in self.catalogue.members(set) {
                self.servers[server.index()].sets.push(set);
            }
        }
    }
}
