//! How pieces end: they have come, others have sent them sooner, or their server does not send them.

use std::ops::Range;

use haul_units::Time;

use super::Plan;
use super::order::{Event, Order};
use super::piece::PieceId;
use super::settings::Policy;
use crate::catalogue::{FileId, ServerId, SetId};

impl Plan {
    /// A file has come: whoever still sends some of it may stop.
    pub(super) fn finish(&mut self, file: FileId, last: PieceId, now: Time) {
        let Some(begun) = self.work.finish(&self.catalogue, file) else { return };
        self.end_pieces(file, begun.pieces, Some(last), now);
        self.events.push_back(Event::Complete(file));
    }

    /// Nothing more of a file is needed.
    pub(super) fn end_pieces(&mut self, file: FileId, pieces: Vec<PieceId>, last: Option<PieceId>, now: Time) {
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
    pub(super) fn end_the_needless(&mut self, file: FileId) {
        let Some(begun) = self.work.begun(file) else { return };
        if begun.pieces.len() < 2 {
            return;
        }
        let is_needless = |piece: &&PieceId| {
            let known = &self.pieces[*piece];
            known.outstanding() > 0 && begun.coverage.contains(&known.range)
        };
        let needless: Vec<PieceId> = begun.pieces.iter().filter(is_needless).copied().collect();
        for piece in needless {
            self.shorten_to_nothing(piece);
            let heard = self.servers[self.pieces[&piece].server.index()].heard;
            self.drop_piece(piece, heard);
        }
    }

    pub(super) fn shorten_to_nothing(&mut self, piece: PieceId) {
        let known = &self.pieces[&piece];
        if self.servers[known.server.index()].is_up {
            self.orders.push_back(Order::Shorten { piece, server: known.server, end: known.range.start });
        }
    }

    /// Forgets a piece that has come, or will not.
    pub(super) fn drop_piece(&mut self, piece: PieceId, now: Time) {
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
            server.on_idle(now);
            server.rests_until = now + pause;
        }
    }

    /// A piece will not come from its server: the rest of it is for others.
    pub(super) fn take_back(&mut self, piece: PieceId, now: Time) {
        let Some(known) = self.pieces.get(&piece) else { return };
        let (file, range) = (known.file, known.range.clone());
        self.drop_piece(piece, now);
        let left = self.work.begun(file).map(|begun| begun.pieces.clone()).unwrap_or_default();
        for other in left {
            if let Some(known) = self.pieces.get_mut(&other) {
                known.is_doubled = false;
            }
        }
        let others = self.expected_elsewhere(file, piece);
        self.balanced.is_stale |= self.work.give_back(&self.catalogue, file, &range, &others);
    }

    /// The ranges of a file's other pieces that can be waited for: those of a server that has gone silent cannot.
    fn expected_elsewhere(&self, file: FileId, piece: PieceId) -> Vec<Range<u64>> {
        let pieces = self.work.begun(file).map(|begun| begun.pieces.as_slice()).unwrap_or_default();
        let others = pieces.iter().filter(|other| **other != piece).filter_map(|other| self.pieces.get(other));
        others.filter(|other| self.servers[other.server.index()].is_usable()).map(|other| other.range.clone()).collect()
    }

    pub(super) fn take_all_back(&mut self, server: ServerId, now: Time) {
        for piece in Vec::from(std::mem::take(&mut self.servers[server.index()].pieces)) {
            self.take_back(piece, now);
        }
        self.balanced.is_stale = true;
    }

    /// A server that was silent is heard again: what it was told comes, as far as nobody else has been told it since.
    pub(super) fn claim_all(&mut self, server: ServerId) {
        for piece in &self.servers[server.index()].pieces {
            let known = &self.pieces[piece];
            self.work.claim(&self.catalogue, known.file, &known.range);
        }
        self.balanced.is_stale = true;
    }

    /// Whether there is something to be told that only this server could send.
    pub(super) fn is_needed(&self, at: usize) -> bool {
        let is_alone = |set: SetId| {
            self.catalogue.members(set).iter().all(|other| other.index() == at || !self.servers[other.index()].is_usable())
        };
        self.settings.policy == Policy::Dynamic
            && self.servers[at].sets.iter().any(|set| self.work.has_work(*set) && is_alone(*set))
    }

    /// What a silent server was told has not come and may never: it need not send that any more, and is told what is missing of it like everything else.
    fn ask_anew(&mut self, at: usize, now: Time) {
        let told: Vec<PieceId> = self.servers[at].pieces.iter().copied().collect();
        for piece in told {
            self.shorten_to_nothing(piece);
            self.drop_piece(piece, now);
        }
    }

    /// Servers that have been silent for too long lose what they were told.
    pub(super) fn find_stalled(&mut self, now: Time) {
        let patience = self.settings.patience;
        for at in 0..self.servers.len() {
            if self.servers[at].is_tried_again_at(patience, || self.is_needed(at)).is_some_and(|then| then <= now) {
                self.ask_anew(at, now);
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
                    let others = self.expected_elsewhere(file, piece);
                    self.work.give_back(&self.catalogue, file, &range, &others);
                }
                self.balanced.is_stale = true;
            }
        }
    }
}
