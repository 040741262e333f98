//! Opening paths, and which of them is for what.
//!
//! ```text
//!   client                                                        server
//!     opens 1 .. n: PathChallenge, padded to 1200 bytes   -->      keeps the path's state, sends nothing but challenges to it
//!                                    <--  PathResponse, PathChallenge
//!     proved: data may go             PathResponse  -->            proved: data may go
//! ```
//! Only a client opens paths, as many as both sides want; the handshake's is the first. Which of them carry data, and whose turn it is, is haul-paths' to say. A path on which two probe timeouts in a row have passed while another one answers is *silent*: its bytes go to
//! the others, and it is pinged until it answers. Frames of the connection leave on its *main* path, the first one that is usable;
//! reports leave on the path they are about, for that is where the sender measures its round trip, unless its address is not proved: a report
//! can be longer than what it answers. Sources: draft-ietf-quic-multipath, RFC 9000 8.2, RFC 6182 2.2.

use std::net::SocketAddr;
use std::time::Duration;

use haul_cc::{Company, ControllerChoice};
use haul_paths::{Candidate, Load, PeerAddress, Standing, Told, Turns};
use haul_units::{BitRate, Bytes, Ratio, Time};

use super::{Connection, Phase};
use crate::config::PATHS_MAX;
use crate::path::Path;
use crate::streams::Side;
use crate::wire::Frame;

/// What is short is over by then where round trips are short, as the answers of a query are among neighbours, and does not pay for challenges of paths that it will not use.
const OPENING_WAIT: Duration = Duration::from_millis(50);
/// On longer ones a path that is better than the first one is wanted soon.
const SHORT_RTT: Duration = Duration::from_millis(5);

/// One path of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathStats {
    /// Its number.
    pub id: u8,
    /// Where the peer is.
    pub remote: SocketAddr,
    /// The peer has answered there, and has not been silent since.
    pub usable: bool,
    /// What it is for.
    pub standing: Standing,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Pacing rate.
    pub pacing_rate: BitRate,
    /// Congestion window.
    pub window: Bytes,
    /// In flight.
    pub in_flight: Bytes,
    /// UDP payload sent.
    pub sent: Bytes,
    /// UDP payload acknowledged.
    pub acknowledged: Bytes,
    /// UDP payload received, each packet once.
    pub received: Bytes,
    /// Packets taken for lost.
    pub lost_pkts: u64,
    /// Loss of what we sent.
    pub loss: Ratio,
}

impl Connection {
    /// The paths there are, by their number; none before the handshake is complete.
    pub fn paths(&self) -> impl Iterator<Item = PathStats> + '_ {
        self.paths.iter().map(|path| PathStats {
            id: path.id,
            remote: path.peer.current(),
            usable: path.is_usable(),
            standing: path.duty.standing(),
            rtt: path.rtt.smoothed(),
            pacing_rate: path.controller.rate(),
            window: path.controller.window(),
            in_flight: Bytes(path.sent.in_flight()),
            sent: Bytes(path.meter.sent_bytes),
            acknowledged: Bytes(path.meter.delivered),
            received: Bytes(path.reporter.bytes()),
            lost_pkts: path.meter.lost_pkts,
            loss: Ratio::new(path.loss_ratio()),
        })
    }

    /// A client opens one more path to this address of its server's, if both sides take more: its number.
    pub fn open_path(&mut self, now: Time, to: SocketAddr) -> Option<u8> {
        let may = self.side == Side::Client && self.phase == Phase::Established && self.paths.len() < self.paths_allowed.into();
        may.then(|| {
            let rtt = self.first_rtt();
            let wait = if rtt.is_some_and(|rtt| rtt < SHORT_RTT) { OPENING_WAIT } else { Duration::ZERO };
            self.add_path(now, PeerAddress::opening(now + wait, to), rtt);
            self.look_elsewhere(now, self.paths.len() - 1);
            self.paths.len() as u8 - 1
        })
    }

    /// How many paths there may be, as far as both sides say.
    pub const fn paths_allowed(&self) -> u8 {
        self.paths_allowed
    }

    /// A client says what a path is for; `limit`: how much may be sent and received there in all, kept if it was said before. What was on its way on one that is away goes to the
    /// others; one that comes back is used once the peer has answered there. The server keeps to it too, where it knows how to.
    pub fn set_standing(&mut self, now: Time, path: u8, standing: Standing, limit: Option<Bytes>) {
        let Some(index) = self.known_path(path) else { return };
        let was = self.paths[index].duty.standing();
        let told = self.paths[index].duty.set(standing, limit.map(Bytes::as_u64));
        self.tell(path, told);
        self.on_standing(now, index, was);
    }

    /// A client's path leaves from another address from now on: the server is asked there, and follows.
    pub fn renew_path(&mut self, now: Time, path: u8) {
        if let Some(index) = self.known_path(path) {
            self.lose_flight(now, index);
            self.paths[index].ask_again(now, true);
            self.look_elsewhere(now, index);
        }
    }

    /// The system has no room for what a path sends: it gets no more data before `until`, and the others go on.
    pub fn hold_path(&mut self, path: u8, until: Time) {
        if let Some(path) = self.paths.get_mut(usize::from(path)) {
            path.held_until = until;
        }
    }

    fn known_path(&self, path: u8) -> Option<usize> {
        let index = usize::from(path);
        (self.side == Side::Client && self.phase == Phase::Established && index < self.paths.len()).then_some(index)
    }

    fn tell(&mut self, path: u8, told: Told) {
        if self.takes_standings {
            self.control.push_back(Frame::PathStatus(path, told));
        }
    }

    /// The client says what a path is for.
    pub(super) fn on_told(&mut self, now: Time, from: SocketAddr, path: u8, told: &Told) {
        if self.may_admit_path(path) {
            // Its first packet may come later.
            self.admit_path(now, path, from);
        }
        let Some(known) = self.paths.get_mut(usize::from(path)).filter(|_| self.side == Side::Server) else { return };
        let was = known.duty.standing();
        if known.duty.on_told(told) {
            self.on_standing(now, path.into(), was);
        }
    }

    fn on_standing(&mut self, now: Time, index: usize, was: Standing) {
        match (was, self.paths[index].duty.standing()) {
            (Standing::Available | Standing::Backup, Standing::Away) => self.lose_flight(now, index),
            // A server asks who has proved where it is: others may be anybody's address, and are asked for what comes from there.
            (Standing::Away, Standing::Available | Standing::Backup)
                if self.side == Side::Client || self.paths[index].peer.is_proved() =>
            {
                self.paths[index].ask_again(now, false);
                if !self.paths[index].peer.is_open() {
                    self.look_elsewhere(now, index);
                }
            }
            _ => {}
        }
    }

    /// A client shares out what metered paths may carry.
    pub(super) fn renew_allowances(&mut self) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if let Some(told) = path.duty.renew(path.meter.sent_bytes, path.reporter.bytes()) {
                self.tell(index as u8, told);
            }
        }
    }

    /// An authentic packet names a path that is not there: a client has opened it, and perhaps others before it whose packets are late.
    pub(super) fn admit_path(&mut self, now: Time, id: u8, from: SocketAddr) {
        while self.paths.len() <= usize::from(id) {
            self.add_path(now, PeerAddress::unproved(from), self.first_rtt());
        }
    }

    /// Whether a packet may make a path of this number.
    pub(super) fn may_admit_path(&self, id: u8) -> bool {
        self.side == Side::Server && !self.is_confined() && !self.paths.is_empty() && id < PATHS_MAX
    }

    /// The first path's round-trip time, by which a further one is asked until it has one of its own.
    fn first_rtt(&self) -> Option<Duration> {
        self.paths.first().filter(|path| path.rtt.is_measured()).map(|path| path.rtt.smoothed())
    }

    pub(super) fn add_path(&mut self, now: Time, peer: PeerAddress, rtt: Option<Duration>) {
        let seed = self.rng.next_u64();
        let mut path = Path::new(self.paths.len() as u8, now, peer, rtt, self.max_packet, &self.config, seed);
        if self.reports_the_start {
            path.reporter.report_the_start();
        }
        self.paths.push(path);
    }

    /// A challenge has been answered.
    pub(super) fn on_path_response(&mut self, now: Time, nonce: u64) {
        let controller = share_of(self.config.controller, self.sharers);
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let Some(proof) = path.peer.on_response(now, nonce) else { continue };
            if proof.is_first {
                path.begin(now, proof.rtt, controller, self.rng.next_u64());
                continue;
            }
            if proof.old.ip() != path.peer.current().ip() {
                self.lose_flight(now, index);
            }
            self.paths[index].on_new_address(now, proof.old, Some(proof.rtt));
        }
    }

    /// Where frames of the connection leave: the first usable path that is no backup, else the first usable one, else the first one that is not away.
    pub(super) fn main_path(&self) -> usize {
        let first = |is: fn(&Path) -> bool| self.paths.iter().position(is);
        first(|path| path.is_usable() && path.duty.standing() == Standing::Available)
            .or_else(|| first(Path::is_usable))
            .or_else(|| first(Path::is_home))
            .unwrap_or(0)
    }

    /// Whether anything at all may leave on a path: on the main one always.
    pub(super) fn may_leave_on(&self, index: usize) -> bool {
        self.paths.get(index).is_some_and(Path::may_carry) || index == self.main_path()
    }

    /// How many paths are asked side by side because no path answers; 0 where several do, of which one may be about to fall silent.
    pub(super) fn silent_paths(&self) -> u32 {
        match self.paths.iter().filter(|path| path.is_usable()).count() {
            0 => self.paths.iter().filter(|path| path.peer.is_open()).count() as u32,
            1 => 1,
            _ => 0,
        }
    }

    /// Whether another path than this one is usable.
    pub(super) fn is_beside_others(&self, index: usize) -> bool {
        self.paths.iter().enumerate().any(|(other, path)| other != index && path.is_usable())
    }

    /// The paths on which data may leave, in order: of the usable ones, those that are to carry data; where none is usable, of all that may carry any.
    pub(super) fn turns(&mut self, now: Time) -> Turns {
        let is_usable = self.paths.iter().any(Path::is_usable);
        let is_spare = |path: &Path| path.duty.standing() == Standing::Backup;
        let wants_spare = is_usable && !self.paths.iter().any(|path| path.is_usable() && !is_spare(path));
        let may = |path: &&Path| {
            if is_usable { path.is_usable() && is_spare(path) == wants_spare } else { path.is_home() }
        };
        let mut candidates = [Candidate::default(); PATHS_MAX as usize];
        let mut count = 0;
        for path in self.paths.iter().filter(may) {
            let (rtt, carried) = (path.rtt.smoothed(), path.meter.delivered);
            let rate = path.meter.delivery_rate.as_bps() / 8;
            candidates[count] = Candidate { id: path.id, rtt, sent_at: path.sent_at, carried, rate };
            count += 1;
        }
        let product = self.paths.iter().map(Path::product).max().unwrap_or_default();
        let keeps_all = self.config.controller.is_coupled() || matches!(self.config.controller, ControllerChoice::Fixed(_));
        let scheduler = self.config.scheduler;
        let left = if count > 1 && !self.streams.is_idle() { self.left_at_the_end() } else { None };
        let turns = self.roster.turns(now, &candidates[..count], &Load { product, keeps_all, scheduler, left });
        if turns.len() != self.sharers && !turns.is_empty() {
            self.sharers = turns.len();
            if matches!(self.config.controller, ControllerChoice::Fixed(_)) {
                self.set_controllers(now);
            }
        }
        let beside = self.paths.iter().map(|path| path.meter.delivery_rate).max().unwrap_or_default();
        if let Some(path) = self.roster.take_joined().and_then(|id| self.paths.get_mut(usize::from(id))) {
            path.join(now, share_of(self.config.controller, self.sharers), beside, self.rng.next_u64());
        }
        turns
    }

    /// What is still to be sent, if that is all there will be and a path might be too long for it.
    fn left_at_the_end(&self) -> Option<u64> {
        let longest = self.longest_rtt().unwrap_or_default();
        let rate: u64 = self.paths.iter().map(|path| path.meter.delivery_rate.bytes_in(longest).as_u64()).sum();
        // More than all paths carry in the longest round trip is not the end on any.
        if self.streams.unsent > rate { None } else { self.streams.left_at_the_end() }
    }

    /// Tells a path's controller of the others that may share its bottleneck.
    pub(super) fn introduce(&mut self, index: usize) {
        if self.paths.len() < 2 {
            return;
        }
        let Some(share) = self.paths.get(index).and_then(|path| path.controller.share()) else { return };
        let all = self.config.controller.is_coupled();
        let is_with = |path: &&Path| {
            let together = self.roster.are_together(index as u8, path.id);
            usize::from(path.id) != index && path.is_usable() && path.sent.in_flight() > 0 && (all || together)
        };
        let company = Company::new(share, self.paths.iter().filter(is_with).filter_map(|path| path.controller.share()));
        self.paths[index].controller.on_company(&company);
    }

    /// The user's bound on the rate, as far as it is one path's.
    pub(super) fn rate_limit_each(&self) -> Option<BitRate> {
        self.config.rate_limit.map(|limit| limit.scaled(1.0 / self.sharers.max(1) as f64))
    }

    /// Gives every path the controller that the user wants.
    pub(super) fn set_controllers(&mut self, now: Time) {
        let choice = share_of(self.config.controller, self.sharers);
        for path in &mut self.paths {
            path.set_controller(now, choice, self.rng.next_u64());
        }
    }

    /// The longest round trip of a path that carries data.
    pub(super) fn longest_rtt(&self) -> Option<Duration> {
        self.paths.iter().filter(|path| path.peer.is_open()).map(|path| path.rtt.smoothed()).max()
    }
}

/// A rate that the user has fixed is the connection's: each path gets its part.
fn share_of(choice: ControllerChoice, sharers: usize) -> ControllerChoice {
    match choice {
        ControllerChoice::Fixed(rate) => ControllerChoice::Fixed(rate.scaled(1.0 / sharers.max(1) as f64)),
        other => other,
    }
}
