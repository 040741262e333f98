//! Who is told next, and how much: the server that will be idle first, a part of what the others can help with least.

use std::ops::Range;

use haul_units::Time;

use super::Plan;
use super::balance::{self, Balanced};
use super::order::{Order, Why};
use super::piece::{Piece, PieceId};
use super::server::Server;
use super::settings::Policy;
use crate::catalogue::{FileId, ServerId};

/// Longest time that one range should take a server: after it the server's disk has had its long read, and a checkpoint falls due.
const LONGEST_S: f64 = 8.0;
/// The balance is made anew when an eighth of the work has gone: what it says then is wrong by no more than that.
const REBALANCED: u64 = 8;
/// .. or when a server's rate is so different from what the balance was made with.
const CHANGED: f64 = 1.25;

impl Plan {
    /// Tells one server to send more, the one that will be idle first. False if nobody needs more or there is nothing to be told.
    pub(super) fn feed_the_hungriest(&mut self, now: Time) -> bool {
        let (rests, unit) = (!self.settings.pause.is_zero(), self.settings.unit.as_u64());
        let mut hungry: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].is_hungry(now, rests, unit)).collect();
        let (busy_s, share) = (|at: usize| self.servers[at].busy_s(), |at: usize| self.servers[at].share);
        hungry.sort_by(|a, b| busy_s(*a).total_cmp(&busy_s(*b)).then(share(*b).total_cmp(&share(*a))));
        hungry.into_iter().any(|at| match self.settings.policy {
            Policy::Dynamic => self.feed(at, now) || self.end_sooner(at, now),
            Policy::RoundRobin => self.feed_dealt(at, now),
        })
    }

    pub(super) fn feed(&mut self, at: usize, now: Time) -> bool {
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
            // Who rests after each file has all of it at once.
            let want = if self.settings.pause.is_zero() { (server.rate() * seconds) as u64 } else { u64::MAX };
            let Some((file, range)) = self.work.take(&self.catalogue, set, want.max(1)) else {
                server.next += 1;
                continue;
            };
            self.send(ServerId(at as u16), file, range, Why::Next, now);
            return true;
        }
        false
    }

    pub(super) fn rebalance(&mut self) {
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

    pub(super) fn send(&mut self, server: ServerId, file: FileId, range: Range<u64>, why: Why, now: Time) {
        let piece = PieceId(self.next_piece);
        self.next_piece += 1;
        let told = &mut self.servers[server.index()];
        if told.pieces.is_empty() {
            // It had nothing to say until now.
            told.heard = told.heard.max(now);
        }
        told.outstanding += range.end - range.start;
        told.pieces.push_back(piece);
        if let Some(begun) = self.work.begun_mut(file) {
            begun.pieces.push(piece);
        }
        let known = Piece { server, file, range: range.clone(), arrived: 0, reached: range.start, is_doubled: false };
        self.pieces.insert(piece, known);
        self.orders.push_back(Order::Send { piece, server, file, range, why });
    }
}
