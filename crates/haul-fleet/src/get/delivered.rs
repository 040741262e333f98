//! What comes, what of it had not come, and how orders and files end.

use std::ops::Range;
use std::time::Duration;

use haul_files::block::{self, Piece};
use haul_files::protocol::{FileEnd, Message, OrderEnd};
use haul_files::{Delivery, Fault, FileProblem, Verify, Why};
use haul_plan::{FileId, PieceId};
use haul_units::BitRate;

use super::inward::Inbound;
use super::merge;
use super::transfer::Transfer;
use crate::clock;
use crate::observe::JobEvent;

impl<B: AsRef<[u8]>> Transfer<'_, '_, B> {
    /// Content has come.
    pub(super) fn delivered(&mut self, at: usize, delivery: Delivery<B>) {
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
    pub(super) fn take(
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
    pub(super) fn order_ended(&mut self, at: usize, end: OrderEnd) {
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
    pub(super) fn finish_order(&mut self, at: usize, number: u64) {
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
        let path = self.listing.tree.path(*node);
        self.desk.observer.event(&JobEvent::Delivered { member: &supply.name, path: &path, range: open.range.start..end });
    }

    /// A member cannot give the file of an order.
    pub(super) fn unfit(&mut self, at: usize, number: u64, why: Why) {
        let Some(supply) = self.desk.supplies.get_mut(at) else { return };
        let Some(file) = supply.fail(number, clock::now()) else { return };
        let path = self.path(file);
        if let Some(supply) = self.desk.supplies.get(at) {
            self.desk.observer.event(&JobEvent::Unfit { member: &supply.name, path: &path, why: &why });
        }
        self.reasons.insert(file, why);
        self.plan.handle_unfit(PieceId::new(number), self.now());
    }

    /// All of a file has been handed on.
    pub(super) fn complete(&mut self, file: FileId) {
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
    pub(super) fn lost(&mut self, file: FileId) {
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

    /// Counts bytes against the limit of all members together.
    pub(super) fn charge(&mut self, bytes: usize) {
        if let Some(limit) = self.desk.job.limit.get().filter(|limit| *limit > BitRate::ZERO) {
            let took = Duration::from_secs_f64(bytes as f64 * 8.0 / limit.as_bps() as f64);
            self.free_at = self.free_at.max(clock::now()) + took;
        }
    }
}
