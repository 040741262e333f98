//! Everything has been told to somebody, and a server has nothing to send.
//!
//! It takes over the end of what the one has that would be busy for longest, in the proportion of their rates. What is under way
//! when the order to stop arrives comes twice, so a round trip's worth, and what the server has in its hands, is left alone. Where nothing can be taken, it sends a second time what would come
//! so late that this is sooner.

use std::ops::Range;
use std::time::Duration;

use haul_units::Time;

use super::Plan;
use super::order::{Order, Why};
use super::piece::PieceId;
use super::server::Server;
use crate::catalogue::{FileId, ServerId};

/// A second sending must be expected in two thirds of the time of the first, or it is not worth the bytes.
const SOONER: f64 = 1.5;
/// Nothing has changed much after so short a time: a server that found nothing to take does not look again. Nor after a sixteenth of
/// the time that the others still need.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const LOOK_AGAIN_PART: f64 = 1.0 / 16.0;

impl Plan {
    /// Finds something for an idle server. False if the others will be through before it could help.
    pub(super) fn end_sooner(&mut self, at: usize, now: Time) -> bool {
        if now < self.servers[at].retry {
            return false;
        }
        let found = self.take_from_slowest(at, now) || (self.servers[at].pieces.is_empty() && self.send_twice(at, now));
        if !found {
            let rest_s = self.servers.iter().filter(|server| server.is_usable()).map(Server::busy_s).fold(0.0, f64::max);
            let later = Duration::from_secs_f64((rest_s * LOOK_AGAIN_PART).min(self.settings.patience.as_secs_f64()));
            self.servers[at].retry = now + LOOK_AGAIN.max(later);
        }
        found
    }

    fn take_from_slowest(&mut self, at: usize, now: Time) -> bool {
        let thief = ServerId(at as u16);
        let mine_s = self.servers[at].busy_s();
        let mut victims: Vec<usize> = (0..self.servers.len())
            .filter(|other| *other != at && self.servers[*other].is_usable() && self.servers[*other].busy_s() > mine_s)
            .collect();
        victims.sort_by(|a, b| self.servers[*b].busy_s().total_cmp(&self.servers[*a].busy_s()));
        victims.into_iter().any(|victim| self.take_from(thief, victim, mine_s, now))
    }

    /// Takes the end of what `victim` has. `mine_s`: how long the thief is busy anyway.
    fn take_from(&mut self, thief: ServerId, victim: usize, mine_s: f64, now: Time) -> bool {
        let (mine, theirs) = (&self.servers[thief.index()], &self.servers[victim]);
        // The victim goes on until the first byte of the thief can be here.
        let until_s = mine_s.max(mine.rtt_s()) + theirs.rtt_s() / 2.0;
        let rest = theirs.outstanding as f64 - theirs.rate() * until_s - self.settings.committed.as_u64() as f64;
        let share = mine.rate() / (mine.rate() + theirs.rate());
        let unit = self.settings.unit.as_u64();
        let mut left = (rest * share).max(0.0) as u64;
        if left == 0 {
            return false;
        }
        // Later than this the thief must not be through, or the two would hand the same piece to and fro.
        let room = (mine.rate() * (theirs.busy_s() - until_s)) as u64;
        let mut sum = 0;
        let mut taken: Vec<(PieceId, Range<u64>)> = Vec::new();
        for piece in theirs.pieces.iter().rev() {
            let known = &self.pieces[piece];
            if known.is_doubled || !self.catalogue.holders(known.file).contains(&thief) {
                continue;
            }
            let length = known.range.end - known.range.start;
            let is_untouched = known.arrived == 0;
            // Whole, where that is nearer to the share than nothing.
            if is_untouched && length / 2 <= left && sum + length < room {
                taken.push((*piece, known.range.clone()));
                sum += length;
                left = left.saturating_sub(length);
            } else {
                let cut = known.range.end.saturating_sub(left).next_multiple_of(unit).max(known.reached.next_multiple_of(unit));
                if cut < known.range.end && known.range.end - cut >= unit.min(length) {
                    taken.push((*piece, cut..known.range.end));
                }
                break;
            }
            if left == 0 {
                break;
            }
        }
        let found = !taken.is_empty();
        // In the order in which the victim would have sent them.
        for (piece, range) in taken.into_iter().rev() {
            self.hand_over(piece, range, thief, now);
        }
        found
    }

    /// Gives the end of a piece, or all of it, to another server.
    fn hand_over(&mut self, piece: PieceId, range: Range<u64>, thief: ServerId, now: Time) {
        let Some(known) = self.pieces.get_mut(&piece) else { return };
        let (victim, file) = (known.server, known.file);
        let before = known.outstanding();
        self.orders.push_back(Order::Shorten { piece, server: victim, end: range.start });
        if range.start <= known.range.start {
            let heard = self.servers[victim.index()].heard;
            self.drop_piece(piece, heard);
        } else {
            known.range.end = range.start;
            let after = known.outstanding();
            let is_over = after == 0;
            let from = &mut self.servers[victim.index()];
            from.outstanding -= before - after;
            let heard = from.heard;
            if is_over {
                self.drop_piece(piece, heard);
            }
        }
        for gap in self.still_missing(file, range) {
            self.send(thief, file, gap, Why::Taken(victim), now);
        }
    }

    /// Sends the rest of a piece a second time: of those where that is sooner, the one that would come last.
    fn send_twice(&mut self, at: usize, now: Time) -> bool {
        let me = ServerId(at as u16);
        let mine = &self.servers[at];
        let mut latest: Option<(f64, PieceId)> = None;
        for (_, theirs) in self.servers.iter().enumerate().filter(|(other, theirs)| *other != at && theirs.is_usable()) {
            let mut before = 0;
            for piece in &theirs.pieces {
                let known = &self.pieces[piece];
                before += known.outstanding();
                if known.is_doubled || !self.catalogue.holders(known.file).contains(&me) {
                    continue;
                }
                let there_s = before as f64 / theirs.rate();
                let here_s = mine.rtt_s() + known.outstanding() as f64 / mine.rate();
                if there_s > here_s * SOONER && latest.is_none_or(|(s, _)| there_s > s) {
                    latest = Some((there_s, *piece));
                }
            }
        }
        let Some((_, piece)) = latest else { return false };
        let known = self.pieces.get_mut(&piece).expect("found above");
        known.is_doubled = true;
        let (file, range, first) = (known.file, known.range.clone(), known.server);
        for gap in self.still_missing(file, range) {
            self.send(me, file, gap, Why::Twice(first), now);
            let own = PieceId(self.next_piece - 1);
            if let Some(known) = self.pieces.get_mut(&own) {
                // The first one has it: a third would be too much.
                known.is_doubled = true;
            }
        }
        true
    }

    /// What of a range has not come, for what came out of order need not come again. An empty file's range is missing until it has.
    fn still_missing(&self, file: FileId, range: Range<u64>) -> Vec<Range<u64>> {
        if range.is_empty() {
            return vec![range];
        }
        self.work.begun(file).map(|begun| begun.coverage.missing_in(range).collect()).unwrap_or_default()
    }
}
