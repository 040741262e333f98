//! Who sends what, and its way to the destination.
//!
//! ```text
//!   plan --orders--> members ==blocks==> what had not come ==> receiver
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use haul_files::block::{self, Piece, PieceSum};
use haul_files::protocol::{FileEnd, Message, Needs, Order as Part, OrderEnd};
use haul_files::{Delivery, Fault, FileProblem, Report, Verify, Waits, Why, Wish};
use haul_units::{BitRate, Bytes, Time};

use super::GetError;
use super::desk::Desk;
use super::inward::Inbound;
use super::merge::{self, Tree};
use super::news::{News, Said};
use super::receiving::{Receiving, Wanted, ended};
use crate::clock;
use crate::observe::JobEvent;
use haul_plan::{Catalogue, CatalogueError, FileId, ServerId};
use haul_plan::{Event, Order, PieceId, Plan, ServerProfile, Settings};

/// What a member has given to its transport and cannot take back: two blocks there, and one in each of its two readers.
const IN_HAND: Bytes = Bytes(4 * block::MAX_CONTENT as u64);

/// Messages that are taken before the plan is asked again: it must not take members for silent whose words wait here.
const MAX_TAKEN: usize = 1024;

/// How far a member is whose path nobody has measured yet: round the world. Where that is too far, it is told a little more at first than it need be.
const UNKNOWN_RTT: Duration = Duration::from_millis(300);
/// How often that is looked at: a few times in the round trips that matter.
const LOOK: Duration = Duration::from_millis(100);

/// No file of the plan.
const NONE: u32 = u32::MAX;

/// The work on one job, once it is known what is needed.
pub(super) struct Transfer<'d, 'a, B> {
    desk: &'d mut Desk<'a, B>,
    tree: &'d Tree,
    receiver: &'d mut Receiving<B>,
    plan: Plan,
    /// The node of each file of the plan, and the file of each node.
    nodes: Vec<u32>,
    files: Vec<u32>,
    tallies: HashMap<FileId, Tally>,
    /// Why members could not give a file, the latest.
    reasons: HashMap<FileId, Why>,
    /// Time that does not count: the destination took no more, or the limit was reached. No member is slow because of it.
    held: Duration,
    /// Nothing is taken before, for the limit.
    free_at: Instant,
    /// When the members' paths are looked at next.
    looks_at: Instant,
    /// Hears of a cancel while nothing is taken.
    woken: Receiver<()>,
    is_closing: bool,
}

/// What has been handed on of a file.
#[derive(Default)]
struct Tally {
    /// All of it at once.
    is_whole: bool,
    bytes: u64,
    sum: PieceSum,
    /// Who sent some of it.
    members: Vec<usize>,
}

impl<'d, 'a, B: AsRef<[u8]>> Transfer<'d, 'a, B> {
    pub(super) fn new(
        desk: &'d mut Desk<'a, B>,
        tree: &'d Tree,
        receiver: &'d mut Receiving<B>,
        wanted: Wanted,
        woken: Receiver<()>,
    ) -> Result<Self, GetError> {
        let mut catalogue = Catalogue::new();
        for _ in &desk.supplies {
            catalogue.add_server();
        }
        let (mut nodes, mut files) = (Vec::with_capacity(wanted.len()), vec![NONE; tree.len() as usize]);
        for (node, needs) in wanted {
            let holders: Vec<ServerId> = tree.holders(node).iter().map(|member| ServerId::new(*member)).collect();
            let size = Bytes(tree.size(node).unwrap_or_default());
            let added = match needs {
                Needs::Ranges(ranges) => {
                    let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(start, end)| start..end).collect();
                    catalogue.add_part(size, &ranges, &holders)
                }
                Needs::All | Needs::Nothing => catalogue.add_file(size, &holders),
            };
            match added {
                Ok(file) => {
                    nodes.push(node);
                    if let Some(known) = files.get_mut(node as usize) {
                        *known = file.index() as u32;
                    }
                }
                Err(CatalogueError::Full) => return Err(GetError::TooManyFiles),
                // What is not a file cannot be wanted.
                Err(_) => return Err(GetError::Destination(haul_files::CopyError::PeerMisbehaved("wants of no file"))),
            }
        }
        // Members cut blocks at these, so that what two of them send is cut alike.
        let unit = desk.job.settings.unit.as_u64().next_multiple_of(block::MAX_CONTENT as u64).max(block::MAX_CONTENT as u64);
        let committed = desk.job.settings.committed.max(IN_HAND);
        let plan = Plan::new(catalogue, Settings { unit: Bytes(unit), committed, ..desk.job.settings.clone() });
        let mut transfer = Self {
            tree,
            receiver,
            plan,
            nodes,
            files,
            tallies: HashMap::new(),
            reasons: HashMap::new(),
            held: Duration::ZERO,
            free_at: clock::now(),
            looks_at: clock::now(),
            woken,
            is_closing: false,
            desk,
        };
        let now = transfer.now();
        for (at, supply) in transfer.desk.supplies.iter().enumerate().filter(|(_, supply)| supply.down.is_none()) {
            let limit = [supply.limit, transfer.desk.job.limit].into_iter().flatten().min();
            transfer.plan.handle_up(ServerId::new(at as u16), ServerProfile { rtt: UNKNOWN_RTT, rate: None, limit }, now);
        }
        transfer.look_at_paths();
        Ok(transfer)
    }

    /// Tells the plan how far members are at present, where that is known.
    fn look_at_paths(&mut self) {
        let now = clock::now();
        if now < self.looks_at {
            return;
        }
        self.looks_at = now + LOOK;
        for (at, supply) in self.desk.supplies.iter().enumerate().filter(|(_, supply)| supply.down.is_none()) {
            let rtt = Duration::from_micros((supply.path)().rtt_us);
            if !rtt.is_zero() {
                self.plan.handle_rtt(ServerId::new(at as u16), rtt);
            }
        }
    }

    /// Until all is in place; the receiver's report, and what the plan knows of the members.
    pub(super) fn run(mut self) -> Result<(Report, Plan), GetError> {
        loop {
            self.look_at_paths();
            self.follow();
            if !self.is_closing && self.plan.is_done() {
                self.close();
            }
            if !self.is_closing && self.plan.is_stuck() {
                return Err(self.out_of_reach());
            }
            let (tree, nodes) = (self.tree, &self.nodes);
            let path = |file: FileId| nodes.get(file.index()).map(|node| tree.path(*node));
            self.desk.tell(Some(&self.plan), |supply| supply.latest.and_then(path), false);
            let Some(mut news) = self.wait()? else { continue };
            for _ in 0..MAX_TAKEN {
                if let Some(report) = self.handle(news)? {
                    self.desk.tell(Some(&self.plan), |_| None, true);
                    return Ok((report, self.plan));
                }
                match self.desk.next(Duration::ZERO)? {
                    Some(next) if clock::now() >= self.free_at => news = next,
                    Some(next) => {
                        // Taken already: it is worked off, and the next one waits.
                        if let Some(report) = self.handle(next)? {
                            return Ok((report, self.plan));
                        }
                        break;
                    }
                    None => break,
                }
            }
        }
    }

    /// The time that the plan knows.
    fn now(&self) -> Time {
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
            News::Woken | News::Member(_, Said::Problem(_)) => {}
            News::Local(message) => self.local(message),
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
                }
            }
            News::Member(at, said) if self.desk.supplies.get(at).is_some_and(|supply| supply.down.is_none()) => match said {
                Said::Delivered(delivery) => self.delivered(at, delivery),
                Said::Ended(ends) => {
                    for end in ends {
                        self.order_ended(at, end);
                    }
                }
                Said::Note(note) => self.desk.observer.event(&JobEvent::Note(&note)),
                _ => self.down(at, "it says what it was not asked"),
            },
            News::Member(..) => {}
        }
        Ok(None)
    }

    fn local(&mut self, message: Message) {
        match message {
            Message::Progress(progress) => self.desk.progress = progress,
            Message::Unwanted(id) => {
                // Of a file that could not be written nothing more is needed.
                let file = merge::node(id).and_then(|node| self.files.get(node as usize)).filter(|file| **file != NONE);
                if let Some(&file) = file {
                    let now = self.now();
                    self.plan.handle_unwanted(FileId::new(file), now);
                    self.tallies.remove(&FileId::new(file));
                }
            }
            Message::Finished(finished) => {
                self.desk.progress = finished.progress;
                self.receiver.say(&Message::Bye);
            }
            _ => {}
        }
    }

    /// A member has shown that it is not to be worked with.
    fn down(&mut self, at: usize, why: &str) {
        if self.desk.down(at, why) {
            self.plan.handle_down(ServerId::new(at as u16), self.now());
        }
    }

    /// Content has come.
    fn delivered(&mut self, at: usize, delivery: Delivery<B>) {
        let Delivery { block, pieces, damaged } = delivery;
        self.charge(block.as_ref().len());
        for piece in damaged {
            match self.desk.supplies.get(at).and_then(|supply| supply.order_of(&piece)) {
                Some(number) => self.unfit(at, number, Why::HashMismatch),
                None => return self.down(at, "it sends what was not ordered"),
            }
        }
        let mut needed = Vec::with_capacity(pieces.len());
        for (piece, place) in pieces {
            let Some(supply) = self.desk.supplies.get_mut(at) else { break };
            let Some((number, open)) = supply.order_of(&piece).and_then(|number| Some((number, supply.order(number)?))) else {
                self.down(at, "it sends what was not ordered");
                break;
            };
            if open.failed {
                continue;
            }
            open.came += u64::from(piece.length);
            self.take(at, number, &piece, &place, block.as_ref(), &mut needed);
            self.finish_order(at, number);
        }
        if !needed.is_empty() {
            let before = self.receiver.outward.is_full().then(clock::now);
            // If the receiver is gone, it says why.
            let _ = self.receiver.outward.put(Inbound { block, pieces: needed });
            self.held += before.map_or(Duration::ZERO, |before| clock::now() - before);
        }
    }

    /// Counts a piece, and adds what had not come of it to what is `needed`.
    fn take(
        &mut self,
        at: usize,
        number: u64,
        piece: &Piece,
        place: &Range<usize>,
        content: &[u8],
        needed: &mut Vec<(Piece, Range<usize>)>,
    ) {
        let Some(file) = self.desk.supplies.get_mut(at).and_then(|supply| Some(supply.order(number)?.file)) else { return };
        let Some(&node) = self.nodes.get(file.index()) else { return };
        let span = piece.offset..piece.offset + u64::from(piece.length);
        let fresh = self.plan.not_come(PieceId::new(number), span.clone());
        if !fresh.is_empty() {
            let is_all = piece.whole && fresh.iter().eq([&span]) && span == (0..self.plan.catalogue().size(file).as_u64());
            let tally = self.tallies.entry(file).or_default();
            if !tally.members.contains(&at) {
                tally.members.push(at);
            }
            tally.is_whole |= is_all;
            for gap in &fresh {
                let start = place.start + (gap.start - span.start) as usize;
                let bytes = start..start + (gap.end - gap.start) as usize;
                let length = (gap.end - gap.start) as u32;
                let hashes = self.desk.job.options.verify != Verify::Off;
                let cut = || block::hash(content.get(bytes.clone()).unwrap_or_default(), hashes);
                let hash = if *gap == span { piece.hash } else { cut() };
                tally.bytes += u64::from(length);
                tally.sum.add(gap.start, length, &hash);
                let (file, offset) = (merge::id(node), gap.start);
                needed.push((Piece { file, offset, length, whole: is_all, hash }, bytes));
            }
        }
        let now = self.now();
        self.plan.handle_arrived(PieceId::new(number), span, now);
    }

    /// A member says that an order is over.
    fn order_ended(&mut self, at: usize, end: OrderEnd) {
        let Some(supply) = self.desk.supplies.get_mut(at) else { return };
        let Some(open) = supply.order(end.number()).filter(|open| open.ended.is_none()) else {
            return self.down(at, "it ends what was not ordered");
        };
        match end {
            OrderEnd::Failed { number, why } => self.unfit(at, number, why),
            OrderEnd::Sent { number, end, bytes } => {
                let is_there = (open.until..=open.range.end).contains(&end);
                if !is_there || bytes > end - open.range.start || bytes < open.came {
                    return self.down(at, "it says that it has sent what it has not");
                }
                open.ended = Some((end, bytes));
                self.finish_order(at, number);
            }
        }
    }

    /// Closes an order if all of it has come: what has not is holes.
    fn finish_order(&mut self, at: usize, number: u64) {
        let now = clock::now();
        let Some(supply) = self.desk.supplies.get_mut(at) else { return };
        let Some((end, bytes)) = supply.order(number).and_then(|open| open.ended) else { return };
        if supply.order(number).is_none_or(|open| open.came < bytes) {
            return;
        }
        let Some(open) = supply.close(number, now) else { return };
        let holes = self.plan.not_come(PieceId::new(number), open.range.start..end);
        let now = self.now();
        for hole in holes {
            self.plan.handle_arrived(PieceId::new(number), hole, now);
        }
        let (Some(supply), Some(node)) = (self.desk.supplies.get(at), self.nodes.get(open.file.index())) else { return };
        let path = self.tree.path(*node);
        self.desk.observer.event(&JobEvent::Delivered { member: &supply.name, path: &path, range: open.range.start..end });
    }

    /// A member cannot give the file of an order.
    fn unfit(&mut self, at: usize, number: u64, why: Why) {
        let Some(supply) = self.desk.supplies.get_mut(at) else { return };
        let Some(file) = supply.fail(number, clock::now()) else { return };
        let path = self.path(file);
        if let Some(supply) = self.desk.supplies.get(at) {
            self.desk.observer.event(&JobEvent::Unfit { member: &supply.name, path: &path, why: &why });
        }
        self.reasons.insert(file, why);
        self.plan.handle_unfit(PieceId::new(number), self.now());
    }

    fn path(&self, file: FileId) -> PathBuf {
        self.nodes.get(file.index()).map(|node| self.tree.path(*node)).unwrap_or_default()
    }

    /// Does what the plan says.
    fn follow(&mut self) {
        while let Some(event) = self.plan.poll_event() {
            match event {
                Event::Complete(file) => self.complete(file),
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
                    let path = self.tree.path(node);
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
            }
        }
        for (supply, orders) in self.desk.supplies.iter().zip(orders).filter(|(_, orders)| !orders.is_empty()) {
            // A session that has ended says so itself.
            let _ = supply.wishes.send(Wish::Orders(orders));
        }
    }

    /// All of a file has been handed on.
    fn complete(&mut self, file: FileId) {
        let tally = self.tallies.remove(&file).unwrap_or_default();
        self.reasons.remove(&file);
        for member in &tally.members {
            if let Some(supply) = self.desk.supplies.get_mut(*member) {
                supply.files += 1;
            }
        }
        if let Some(node) = self.nodes.get(file.index()).filter(|_| !tally.is_whole) {
            let (id, size) = (merge::id(*node), self.plan.catalogue().size(file).as_u64());
            let (bytes, sum) = (tally.bytes, tally.sum.to_bytes());
            self.receiver.say(&Message::FileEnd(FileEnd::Sent { id, size, bytes, sum }));
        }
    }

    /// Nobody can give a file.
    fn lost(&mut self, file: FileId) {
        let why = self.reasons.remove(&file).unwrap_or(Why::Changed);
        let fault = if why == Why::HashMismatch { Fault::Connection } else { Fault::Source };
        let problem = FileProblem { path: self.path(file).as_path().into(), fault, why };
        self.receiver.say(&Message::Problem(problem));
        if let Some(node) = self.nodes.get(file.index()) {
            self.receiver.say(&Message::FileEnd(FileEnd::Failed { id: merge::id(*node) }));
        }
        self.tallies.remove(&file);
        self.plan.handle_unwanted(file, self.now());
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
        if members.len() == self.desk.supplies.len() {
            return GetError::AllDown { members };
        }
        let status = self.plan.status();
        let bytes = status.total.as_u64().saturating_sub(status.arrived.as_u64());
        GetError::OutOfReach { files: status.files_left as u64, bytes: Bytes(bytes), members }
    }

    /// Counts bytes against the limit of all members together.
    fn charge(&mut self, bytes: usize) {
        if let Some(limit) = self.desk.job.limit.filter(|limit| *limit > BitRate::ZERO) {
            let took = Duration::from_secs_f64(bytes as f64 * 8.0 / limit.as_bps() as f64);
            self.free_at = self.free_at.max(clock::now()) + took;
        }
    }
}
