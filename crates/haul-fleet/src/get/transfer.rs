//! Who sends what, and its way to the destination.
//!
//! ```text
//!   plan --orders--> members ==blocks==> what had not come ==> receiver
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use haul_files::block::{self, PieceSum};
use haul_files::protocol::{Message, Order as Part};
use haul_files::{Report, Waits, Why, Wish};
use haul_plan::{Catalogue, Event, FileId, Order, Plan, ServerId, ServerProfile, Settings};
use haul_units::{BitRate, Bytes, Time};

use super::desk::Desk;
use super::disputed::Disputed;
use super::error::GetError;
use super::listing::Listing;
use super::merge::{self, NONE};
use super::news::{News, Said};
use super::receiving::{Receiving, Wants, ended};
use super::waiting::Waiting;
use crate::clock;
use crate::member::load_of;
use crate::observe::JobEvent;

/// What a member has given to its transport and cannot take back: two blocks there, and one in each of its two readers.
const IN_HAND: Bytes = Bytes(4 * block::MAX_CONTENT as u64);

/// Bytes that a connection sends for one of content, in packets of 1500 bytes: 28 of header and 16 of tag in 1472.
const WIRE: f64 = 1472.0 / 1428.0;

/// Messages that are taken before the plan is asked again: it must not take members for silent whose words wait here ..
const MAX_TAKEN: usize = 1024;
/// .. for so long: where each of them waits for the destination, members are to have their orders all the same, and the observer its news.
const MAX_TAKING: Duration = Duration::from_millis(50);

/// How far a member is whose path nobody has measured yet: round the world. Where that is too far, it is told a little more at first than it need be.
const UNKNOWN_RTT: Duration = Duration::from_millis(300);
/// How often that is looked at: a few times in the round trips that matter.
const LOOK: Duration = Duration::from_millis(100);

/// The work on one job, from the first member that has said what it has.
pub(super) struct Transfer<'d, 'a, B> {
    pub(super) desk: &'d mut Desk<'a, B>,
    pub(super) listing: Listing,
    pub(super) receiver: &'d mut Receiving<B>,
    pub(super) plan: Plan,
    /// The node of each file of the plan, and the file of each node that was announced.
    pub(super) nodes: Vec<u32>,
    pub(super) files: Vec<u32>,
    pub(super) wants: Wants,
    /// All that members have is known.
    pub(super) is_all_found: bool,
    /// What nobody has who was heard so far.
    pub(super) lost_for_now: Vec<FileId>,
    pub(super) waiting: Waiting,
    pub(super) tallies: HashMap<FileId, Tally>,
    /// Why members could not give a file, the latest.
    pub(super) reasons: HashMap<FileId, Why>,
    /// Time that does not count: the destination took no more, or the limit was reached. No member is slow because of it.
    pub(super) held: Duration,
    /// Nothing is taken before, for the limit.
    pub(super) free_at: Instant,
    /// The limit of all members together, as the plan knows it.
    limit: Option<BitRate>,
    /// When the members' paths are looked at next.
    looks_at: Instant,
    /// Hears of a cancel while nothing is taken.
    woken: Receiver<()>,
    is_closing: bool,
}

/// What has been handed on of a file.
#[derive(Default)]
pub(super) struct Tally {
    /// All of it at once.
    pub(super) is_whole: bool,
    pub(super) bytes: u64,
    pub(super) sum: PieceSum,
    /// Who sent some of it.
    pub(super) members: Vec<usize>,
}

impl<'d, 'a, B: AsRef<[u8]>> Transfer<'d, 'a, B> {
    /// Nothing is known of it to the receiver yet.
    pub(super) fn new(desk: &'d mut Desk<'a, B>, listing: Listing, receiver: &'d mut Receiving<B>, woken: Receiver<()>) -> Self {
        let mut catalogue = Catalogue::new();
        for _ in &desk.supplies {
            catalogue.add_server();
        }
        // Members cut blocks at these, so that what two of them send is cut alike.
        let unit = desk.job.settings.unit.as_u64().next_multiple_of(block::MAX_CONTENT as u64).max(block::MAX_CONTENT as u64);
        let committed = desk.job.settings.committed.max(IN_HAND);
        let plan = Plan::new(catalogue, Settings { unit: Bytes(unit), committed, ..desk.job.settings.clone() });
        let (now, wants) = (clock::now(), Wants::default());
        Self {
            listing,
            receiver,
            plan,
            nodes: Vec::new(),
            files: Vec::new(),
            wants,
            is_all_found: false,
            lost_for_now: Vec::new(),
            waiting: Waiting::default(),
            tallies: HashMap::new(),
            reasons: HashMap::new(),
            held: Duration::ZERO,
            free_at: now,
            limit: desk.job.limit.get(),
            looks_at: now,
            woken,
            is_closing: false,
            desk,
        }
    }

    /// A member has said all that it has: it can be told to send.
    pub(super) fn up(&mut self, at: usize) {
        let Some(supply) = self.desk.supplies.get(at).filter(|supply| supply.is_up()) else { return };
        let limit = [supply.limit, self.limit].into_iter().flatten().min();
        let load = (supply.path)().machine.map(load_of);
        self.plan.handle_up(ServerId::new(at as u16), ServerProfile { rtt: UNKNOWN_RTT, rate: None, limit, load }, self.now());
        self.looks_at = clock::now();
    }

    /// Somebody wants all of it slower, or faster, from now on.
    fn look_at_limit(&mut self) {
        let limit = self.desk.job.limit.get();
        if limit == self.limit {
            return;
        }
        self.limit = limit;
        // What was taken at the old rate is forgiven: it may be an hour of waiting.
        self.free_at = clock::now();
        for (at, supply) in self.desk.supplies.iter().enumerate().filter(|(_, supply)| supply.is_up()) {
            self.plan.handle_limit(ServerId::new(at as u16), [supply.limit, limit].into_iter().flatten().min());
        }
    }

    /// Tells the plan how far members are at present and what comes from them, where that is known.
    fn look_at_paths(&mut self) {
        let now = clock::now();
        if now < self.looks_at {
            return;
        }
        self.looks_at = now + LOOK;
        self.look_at_limit();
        // Who is heard is not beyond a link that is down, and the look before was not long ago.
        let heard = self.desk.supplies.iter().filter(|supply| supply.is_up() && (supply.path)().silence < LOOK * 2).count();
        for (at, supply) in self.desk.supplies.iter_mut().enumerate().filter(|(_, supply)| supply.is_up()) {
            let server = ServerId::new(at as u16);
            let (path, came) = supply.look(now);
            let rtt = Duration::from_micros(path.rtt_us);
            if !rtt.is_zero() {
                self.plan.handle_rtt(server, rtt);
            }
            if let Some((bytes, within)) = came {
                self.plan.handle_received(server, bytes, within);
            }
            if (supply.doubt)() || supply.is_mute(&path, heard > 0) {
                self.plan.handle_doubted(server);
            }
        }
    }

    /// Until all is in place; the receiver's report, and what the plan knows of the members. With a conflict what was done about it.
    pub(super) fn run(mut self) -> Result<(Report, Plan), (GetError, Option<Disputed>)> {
        match self.work() {
            Ok(report) => Ok((report, self.plan)),
            Err(error) => Err((error, self.disputed())),
        }
    }

    fn work(&mut self) -> Result<Report, GetError> {
        self.tell_found()?;
        for at in 0..self.desk.supplies.len() {
            if self.desk.supplies.get(at).is_some_and(|supply| supply.is_listed) {
                self.up(at);
            }
        }
        loop {
            self.look_at_paths();
            self.find_all()?;
            self.reach_further()?;
            self.follow();
            let is_settled = !self.is_closing && self.is_all_found && self.wants.is_all_said();
            if is_settled && self.plan.is_done() {
                self.close();
            } else if is_settled && self.plan.is_stuck() {
                return Err(self.out_of_reach());
            }
            let (tree, nodes) = (&self.listing.tree, &self.nodes);
            let path = |file: FileId| nodes.get(file.index()).map(|node| tree.path(*node));
            self.desk.tell(Some(&self.plan), |supply| supply.latest.and_then(path), false);
            let Some(mut news) = self.wait()? else { continue };
            let until = clock::now() + MAX_TAKING;
            for _ in 0..MAX_TAKEN {
                if let Some(report) = self.handle(news)? {
                    self.desk.tell(Some(&self.plan), |_| None, true);
                    return Ok(report);
                }
                if clock::now() >= until {
                    break;
                }
                match self.desk.next(Duration::ZERO)? {
                    Some(next) if clock::now() >= self.free_at => news = next,
                    Some(next) => {
                        // Taken already: it is worked off, and the next one waits.
                        if let Some(report) = self.handle(next)? {
                            return Ok(report);
                        }
                        break;
                    }
                    None => break,
                }
            }
        }
    }

    /// The time that the plan knows.
    pub(super) fn now(&self) -> Time {
        let passed = (clock::now() - self.desk.started).saturating_sub(self.held);
        Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for news, or until something is to be done without.
    fn wait(&mut self) -> Result<Option<News<B>>, GetError> {
        let now = self.now();
        let plan = self.plan.next_timeout(now).map(|then| then.since(now));
        // A timer that is due has been seen to; it is not run after.
        let least = Duration::from_millis(1);
        let wait = self.desk.tells_in().min(plan.unwrap_or(Duration::MAX)).max(least);
        let before = clock::now();
        if before < self.free_at {
            if let Err(RecvTimeoutError::Disconnected) = self.woken.recv_timeout(wait.min(self.free_at - before)) {
                return Err(GetError::Cancelled);
            }
            self.held += clock::now() - before;
            return if self.desk.cancel.is_cancelled() { Err(GetError::Cancelled) } else { Ok(None) };
        }
        self.desk.next(wait)
    }

    /// Takes a piece of news; the report, once that is there.
    fn handle(&mut self, news: News<B>) -> Result<Option<Report>, GetError> {
        match news {
            News::Came(at, newcomer) => self.desk.came(at, newcomer),
            News::Absent(at) => self.desk.is_absent(at),
            News::NoMore => self.desk.no_more(),
            News::Local(message) => self.local(message)?,
            News::LocalOver(Ok(report)) if self.is_closing => return Ok(Some(*report)),
            News::LocalOver(result) => return Err(ended(result.err())),
            News::Member(at, Said::Over(result)) => {
                if self.is_closing {
                    // It has done its work, however it ended.
                    if let Some(supply) = self.desk.supplies.get_mut(at) {
                        supply.is_over = true;
                    }
                } else if self.desk.over(at, result)? {
                    self.plan.handle_down(ServerId::new(at as u16), self.now());
                    self.look_further();
                }
            }
            News::Member(at, said) if self.desk.supplies.get(at).is_some_and(|supply| !supply.is_heard()) => {
                self.hear(at, said)?;
            }
            News::Member(at, said) if self.desk.supplies.get(at).is_some_and(|supply| supply.down.is_none()) => match said {
                Said::Problem(_) => {}
                Said::Delivered(delivery) => self.delivered(at, delivery),
                Said::Ended(ends) => {
                    for end in ends {
                        self.order_ended(at, end);
                    }
                }
                Said::Note(note) => self.desk.note(at, &note),
                _ => self.down(at, "it says what it was not asked"),
            },
            News::Woken | News::Member(..) => {}
        }
        Ok(None)
    }

    fn local(&mut self, message: Message) -> Result<(), GetError> {
        match message {
            Message::Start { wants } => self.is_asked(wants)?,
            Message::Wants(wants) => self.wanted(wants)?,
            Message::Progress(progress) => self.desk.progress = progress,
            Message::Unwanted(id) => {
                // Of a file that could not be written nothing more is needed.
                if let Some(file) = merge::node(id).and_then(|node| self.file(node)) {
                    let now = self.now();
                    self.plan.handle_unwanted(file, now);
                    self.tallies.remove(&file);
                }
            }
            Message::Finished(finished) => {
                self.desk.progress = finished.progress;
                self.receiver.say(&Message::Bye);
            }
            _ => {}
        }
        Ok(())
    }

    /// A member has shown that it is not to be worked with.
    pub(super) fn down(&mut self, at: usize, why: &str) {
        if self.desk.down(at, why) {
            self.plan.handle_down(ServerId::new(at as u16), self.now());
            self.look_further();
        }
    }

    pub(super) fn path(&self, file: FileId) -> PathBuf {
        self.nodes.get(file.index()).map(|node| self.listing.tree.path(*node)).unwrap_or_default()
    }

    /// Does what the plan says.
    fn follow(&mut self) {
        while let Some(event) = self.plan.poll_event() {
            match event {
                Event::Complete(file) => self.complete(file),
                Event::Lost(file) if self.reach(file) => {}
                // Somebody who is still to be heard may have it.
                Event::Lost(file) if !self.is_all_found => self.lost_for_now.push(file),
                Event::Lost(file) => self.lost(file),
            }
        }
        let (plan_now, now) = (self.now(), clock::now());
        let mut orders: Vec<Vec<Part>> = self.desk.supplies.iter().map(|_| Vec::new()).collect();
        while let Some(order) = self.plan.poll_order(plan_now) {
            match order {
                Order::Send { piece, server, file, range, why } => {
                    let Some(supply) = self.desk.supplies.get_mut(server.index()) else { continue };
                    let node = self.nodes.get(file.index()).copied().unwrap_or(NONE);
                    let Some(id) = supply.id_of(node) else { continue };
                    supply.ordered(piece.number(), file, id, range.clone(), now);
                    if let Some(orders) = orders.get_mut(server.index()) {
                        orders.push(Part { number: piece.number(), file: id, start: range.start, end: range.end });
                    }
                    let path = self.listing.tree.path(node);
                    self.desk.observer.event(&JobEvent::Ordered { member: &supply.name, path: &path, range, why });
                }
                Order::Shorten { piece, server, end } => {
                    let Some(supply) = self.desk.supplies.get_mut(server.index()) else { continue };
                    let Some(open) = supply.order(piece.number()) else { continue };
                    open.until = open.until.min(end.max(open.range.start));
                    // Behind the order that it is about.
                    let before = orders.get_mut(server.index()).map(std::mem::take).unwrap_or_default();
                    if !before.is_empty() {
                        let _ = supply.wishes.send(Wish::Orders(before));
                    }
                    let _ = supply.wishes.send(Wish::Shorten { number: piece.number(), end });
                }
                Order::Limit { server, limit } => {
                    let Some(supply) = self.desk.supplies.get(server.index()) else { continue };
                    let _ = supply.wishes.send(Wish::Limit(limit.map(|limit| limit.scaled(WIRE))));
                }
                Order::Room { server, rate } => {
                    let Some(supply) = self.desk.supplies.get(server.index()) else { continue };
                    let _ = supply.wishes.send(Wish::Room(rate.scaled(WIRE)));
                }
            }
        }
        for (supply, orders) in self.desk.supplies.iter().zip(orders).filter(|(_, orders)| !orders.is_empty()) {
            // A session that has ended says so itself.
            let _ = supply.wishes.send(Wish::Orders(orders));
        }
    }

    /// Nothing more is to come.
    fn close(&mut self) {
        self.is_closing = true;
        self.receiver.say(&Message::AllSent(Waits::default()));
        self.receiver.outward.finish();
        for supply in &self.desk.supplies {
            let _ = supply.wishes.send(Wish::Enough);
        }
    }

    fn out_of_reach(&self) -> GetError {
        let members = self.desk.gone();
        if self.desk.supplies.iter().all(|supply| !supply.is_up()) {
            return GetError::AllDown { members };
        }
        let status = self.plan.status();
        let bytes = status.total.as_u64().saturating_sub(status.arrived.as_u64());
        GetError::OutOfReach { files: status.files_left as u64, bytes: Bytes(bytes), members }
    }
}
