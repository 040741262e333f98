//! Servers that would be through before the others are bounded, so that all come to their end together.
//!
//! Connections that share the client's link do not share it as the work does: who began a moment earlier, or is nearer, has more of it, and how that evens out is a matter of
//! tens of seconds. What each server has left then ends at different times, and those that are left over at the end have slow lines and cannot fill the link. So while the link is what
//! they share, each is told the rate with which it ends when all do:
//!
//! ```text
//!   T: sum over servers of min(left / T, what it can do) = what all bring together     limit = left / T
//! ```
//!
//! What is left for a server is what nobody else has; where it has work that others have too, what the [balance](super::balance) leaves it. Where work can move, nobody is told anything
//! as long as that evens out who has how much: it does not where what a server died with has one holder left.
//!
//! What a server can do is known only from what it does: one that is not bounded may double its rate, until it has shown that it does not. It is told so, for a connection finds room by itself
//! only in seconds: that others give way, or have ended, is known here alone. (It takes the room up when the queue that others have filled is gone.) Nobody is told anything while the rate of all
//! together still grows, or where nothing is to be gained.
//!
//! Rates are of what arrives through the link, where somebody tells that ([`Plan::handle_received`]): what is handed on comes in bursts, faster than any link, where the destination is slow.

use std::collections::VecDeque;
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use super::Plan;
use super::order::Order;
use super::server::{Server, averaged};
use super::settings::Policy;
use crate::catalogue::ServerId;

/// How often rates are looked at; after [`SHOWN_RTTS`] round trips, where these are longer, for a limit shows after one.
const LOOK: Duration = Duration::from_millis(200);
const SHOWN_RTTS: f64 = 1.5;
/// What all bring together is the most that was seen in so many looks: 4 s, or 30 round trips. Less than that is no narrower link, but may be the limits' own doing.
const REMEMBERED: usize = 20;
/// All together still become faster, as long as they gain so much from one look to the next.
const GROWING: f64 = 1.08;
/// What a server that is not bounded is expected to bring at the next look, where others leave it that: twice as much, as in a slow start ..
const GROWS: f64 = 2.0;
/// .. and where it has not become faster for [`STUCK_LOOKS`] while there was room ([`ROOM`] of what all have brought, or half of what others have left for it): its line, its disk or its
/// processor has no more.
const STUCK: f64 = 1.05;
const STUCK_LOOKS: u32 = 3;
const ROOM: f64 = 0.95;
/// A server this near to its limit is bounded by it.
const NEAR: f64 = 0.9;
/// Where nobody is to take up what the bounded leave, their limits come to so much more than they bring together: else nobody would see that there is more.
const ABOVE: f64 = 1.03;
/// Who differs by less is not told another limit.
const SAME: f64 = 0.02;
/// Room for less than this is not told: a connection finds it by itself, and rates are not known that closely.
const WORTH: f64 = 1.1;
/// Where work can move, somebody who would need so much longer than all together cannot be helped enough: as what the balance takes for another rate.
const UNEVEN: f64 = 1.25;
/// With so little left before all of them together they are let go: rates are not known more closely.
const END_S: f64 = 1.0;

/// Arrivals are averaged over so long: a look, so that each sees what is new.
const AVERAGED: Duration = LOOK;

/// What is known of the rates of all.
#[derive(Debug)]
pub(super) struct Level {
    looks_at: Time,
    /// What all brought together at the latest looks, in bytes per second.
    totals: VecDeque<f64>,
    seats: Vec<Seat>,
    /// What others left at the latest look for those that take up, in bytes per second.
    left: f64,
}

/// What a server is told of its rate, in bytes per second.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// To be no faster.
    bound: Option<f64>,
    /// That there is room for this.
    room: Option<f64>,
}

/// .. and of one server.
#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    told: Told,
    /// It brings nearly what it is bounded to.
    is_bound: bool,
    /// The most that it has brought since it was stuck, and for how many looks it has not brought more though nothing bounded it.
    best: f64,
    stuck: u32,
    /// What arrives from it, in bytes per second, where that is told.
    arriving: Option<f64>,
}

/// A server that has something to send.
struct Busy {
    at: usize,
    left: f64,
    rate: f64,
    /// What it can be expected to bring next.
    can: f64,
}

impl Plan {
    /// When rates are looked at next, if they are.
    pub(super) fn levels_at(&self) -> Option<Time> {
        let busy = self.servers.iter().filter(|server| !server.pieces.is_empty()).take(2).count();
        // One that is left over is let go.
        let is_due = busy == 2 || self.level.seats.iter().any(|seat| seat.told.bound.is_some() || seat.told.room.is_some());
        (self.settings.policy == Policy::Dynamic && is_due).then_some(self.level.looks_at)
    }

    /// Looks at rates, if it is time.
    pub(super) fn level(&mut self, now: Time) {
        if self.levels_at().is_none_or(|then| now < then) {
            return;
        }
        let longest = self.servers.iter().filter(|server| server.is_usable()).map(|server| server.profile.rtt).max();
        self.level.looks_at = now + LOOK.max(longest.unwrap_or_default().mul_f64(SHOWN_RTTS));
        let rate_of = |(server, seat): (&Server, &Seat)| {
            seat.arriving.or(server.measured_rate()).filter(|_| server.is_sending()).unwrap_or(0.0)
        };
        let rates: Vec<f64> = self.servers.iter().zip(&self.level.seats).map(rate_of).collect();
        let is_growing = self.level.watch(&rates);
        self.level.left = 0.0;
        let wanted = if is_growing { Vec::new() } else { self.wanted(&rates) };
        let mut all = vec![Told::default(); self.servers.len()];
        for (at, told) in wanted {
            all[at] = told;
        }
        for (at, told) in all.into_iter().enumerate().filter(|(at, _)| self.servers[*at].is_up) {
            let server = ServerId(at as u16);
            let rate_of = |rate: f64| BitRate::from_bps((rate * 8.0) as u64);
            let before = std::mem::replace(&mut self.level.seats[at].told, told).bound;
            match (before, told.bound) {
                (Some(before), Some(now)) if (before / now - 1.0).abs() < SAME => self.level.seats[at].told.bound = Some(before),
                (None, None) => {}
                (_, bound) => self.orders.push_back(Order::Limit { server, limit: bound.map(rate_of) }),
            }
            if let Some(room) = told.room {
                self.orders.push_back(Order::Room { server, rate: rate_of(room) });
            }
        }
    }

    /// So many bytes have come from a server in this time, as its connection counts them: whatever of them the destination has taken.
    pub fn handle_received(&mut self, server: ServerId, bytes: Bytes, within: Duration) {
        if within.is_zero() {
            return;
        }
        let (arriving, within) = (&mut self.level.seats[server.index()].arriving, within.as_secs_f64());
        let rate = bytes.as_u64() as f64 / within;
        *arriving = Some(arriving.map_or(rate, |before| averaged(before, rate, within, AVERAGED.as_secs_f64())));
    }

    /// A server that has come anew has been told nothing.
    pub(super) fn forget_limit(&mut self, at: usize) {
        self.level.seats[at] = Seat::default();
    }

    /// Who is to be told what.
    fn wanted(&mut self, rates: &[f64]) -> Vec<(usize, Told)> {
        self.rebalance();
        let (mut busy, mut has_own, mut all) = (Vec::new(), false, 0.0);
        for (at, server) in self.servers.iter().enumerate().filter(|(at, server)| server.is_sending() && rates[*at] > 0.0) {
            // A limit of its user's is none of ours.
            let limit = server.profile.limit.map_or(f64::INFINITY, |limit| limit.bytes_per_second() as f64);
            let own = self.left_alone(at);
            let left = own.unwrap_or_else(|| self.busy_s[at] * server.rate());
            has_own |= own.is_some();
            all += left;
            if left > 0.0 {
                let can = self.level.seats[at].can(rates[at]).min(limit);
                busy.push(Busy { at, left, rate: rates[at], can });
            }
        }
        let even_s = all / self.level.most().max(1.0);
        if !has_own && busy.iter().all(|server| server.left / server.rate < even_s * UNEVEN) {
            return Vec::new();
        }
        let takes_up = |server: &Busy| self.level.seats[server.at].takes_up();
        let above = if busy.iter().any(takes_up) { 1.0 } else { ABOVE };
        let end_s = common_end_s(&busy, self.level.most() * above);
        let nothing_left = self.level.room(rates) == 0.0;
        if even_s < END_S || end_s.is_none() && nothing_left {
            return Vec::new();
        }
        let told = |server: &Busy| {
            let bound = end_s.map(|end_s| server.left / end_s).filter(|part| *part < server.can);
            let room = bound.unwrap_or(server.can);
            let room = (!self.level.seats[server.at].is_bound && room > server.rate * WORTH).then_some(room);
            (server.at, Told { bound, room })
        };
        let wanted: Vec<_> = busy.iter().map(told).collect();
        if end_s.is_some() {
            self.level.left = busy.iter().zip(&wanted).filter_map(|(server, (_, told))| Some(told.room? - server.rate)).sum();
        }
        wanted
    }

    /// Bytes that only this server can send; none where it has work that another one could do.
    fn left_alone(&self, at: usize) -> Option<f64> {
        let server = &self.servers[at];
        let mut left = server.outstanding;
        for set in server.sets.iter().copied().filter(|set| self.work.has_work(*set)) {
            let mut others = self.catalogue.members(set).iter().filter(|other| other.index() != at);
            if others.any(|other| self.servers[other.index()].is_usable()) {
                return None;
            }
            left += self.work.pending_of(set);
        }
        Some(left as f64)
    }
}

impl Level {
    /// Of so many servers: nothing is known, and nobody is told anything.
    pub(super) fn of(servers: usize) -> Self {
        Self { looks_at: Time::ZERO, totals: VecDeque::new(), seats: vec![Seat::default(); servers], left: 0.0 }
    }

    /// The most that all brought together of late.
    fn most(&self) -> f64 {
        self.totals.iter().copied().fold(0.0, f64::max)
    }

    /// What nobody has of the most that all brought together, if that is enough to count.
    fn room(&self, rates: &[f64]) -> f64 {
        let (most, total) = (self.most(), rates.iter().sum::<f64>());
        if total < most * ROOM { most - total } else { 0.0 }
    }

    /// Whether all together still become faster.
    fn watch(&mut self, rates: &[f64]) -> bool {
        let total: f64 = rates.iter().sum();
        let before = self.most();
        if self.totals.len() == REMEMBERED {
            self.totals.pop_front();
        }
        self.totals.push_back(total);
        let has_room = total < before * ROOM || self.left > 0.0 && before - total > self.left / 2.0;
        self.seats.iter_mut().zip(rates).for_each(|(seat, rate)| seat.watch(*rate, has_room));
        let is_growing = total > before * GROWING;
        if is_growing {
            // What was seen before says nothing about what there is.
            self.totals.drain(..self.totals.len() - 1);
        }
        is_growing || self.totals.len() < 2
    }
}

impl Seat {
    fn watch(&mut self, rate: f64, has_room: bool) {
        if rate == 0.0 {
            return;
        }
        self.is_bound = self.told.bound.is_some_and(|limit| rate > limit * NEAR);
        if self.is_bound || rate > self.best * STUCK {
            (self.best, self.stuck) = (self.best.max(rate), 0);
        } else if has_room {
            self.stuck += 1;
            if self.stuck == STUCK_LOOKS {
                self.best = rate;
            }
        } else if !self.is_stuck() {
            // Others have what it could have taken.
            self.stuck = self.stuck.saturating_sub(1);
        }
    }

    /// Nobody holds it back, and it may have more than it brings.
    fn takes_up(&self) -> bool {
        !self.is_bound && !self.is_stuck()
    }

    /// Has no more than it brings.
    const fn is_stuck(&self) -> bool {
        self.stuck >= STUCK_LOOKS
    }

    /// What a server that brings so much could bring.
    fn can(&self, rate: f64) -> f64 {
        match (self.is_bound, self.is_stuck()) {
            (true, _) => self.best,
            // What a line carries it carries on, where others squeeze it too.
            (false, true) => self.best * STUCK,
            (false, false) => rate * GROWS,
        }
    }
}

/// After how many seconds servers can all be through that bring so much together; none where they do what they can, or would anyway.
fn common_end_s(servers: &[Busy], bytes_per_s: f64) -> Option<f64> {
    let together = |end_s: f64| servers.iter().map(|server| (server.left / end_s).min(server.can)).sum::<f64>();
    let all_s = servers.iter().map(|server| server.left).sum::<f64>() / bytes_per_s.max(1.0);
    let longest_s = servers.iter().map(|server| server.left / server.can.max(1.0)).fold(all_s, f64::max);
    if servers.len() < 2 || together(all_s.min(longest_s) * 1e-3) <= bytes_per_s {
        return None;
    }
    let (mut early, mut late) = (all_s * 1e-3, longest_s);
    for _ in 0..50 {
        let middle = f64::midpoint(early, late);
        if together(middle) > bytes_per_s { early = middle } else { late = middle }
    }
    Some(late)
}
