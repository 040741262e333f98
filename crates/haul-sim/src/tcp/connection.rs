//! The sending end of a connection: one subflow, or several that share its packets and, where their law says so, its windows.
//!
//! As Multipath TCP (RFC 8684) has it: the first subflow connects, the others join when it stands; each has sequence numbers, a window and
//! recovery of its own, and takes packets of the connection as it has room, the one with the shortest round trip first. What a subflow
//! holds whose retransmission timer runs out is sent again on the others. Not modelled: the receive window across subflows and what
//! follows from it (head-of-line blocking, opportunistic retransmission), address announcements.
//!
//! With [`Scatter`] the first subflow spreads its packets over all ways and the others come later, for what is long.
//! Source: Kheirkhah, Wakeman and Parisis, "MMPTCP: a multipath transport protocol for data centers" (2016).

use haul_units::Time;

use super::coupling::{self, Share};
use super::sender::Sender;
use super::supply::Supply;
use super::window::Coupled;
use super::{Segment, TcpConfig, TcpStats};
use crate::{EndpointId, Rng, Transmit};

#[derive(Debug)]
pub(super) struct Connection {
    config: TcpConfig,
    supply: Supply,
    subflows: Vec<Sender>,
    ways: u16,
    /// Where scattered packets go.
    random: Rng,
    /// What subflows tell each other, and which of them; empty where they are not coupled.
    shares: Vec<Share>,
    sharing: Vec<usize>,
}

impl Connection {
    pub(super) fn new(config: TcpConfig, peer: EndpointId, start: Time, total_pkts: u32, ways: u16, seed: u64) -> Self {
        let starts = std::iter::once(Some(start)).chain(std::iter::repeat(None));
        let subflows = (0..config.subflows(ways)).zip(starts).map(|(number, start)| {
            let scatters = config.scatter.filter(|_| number == 0);
            Sender::new(config, peer, number, start, scatters.map(|scatter| scatter.reordering_pkts))
        });
        Self {
            config,
            supply: Supply::new(total_pkts),
            subflows: subflows.collect(),
            ways,
            random: Rng::new(seed),
            shares: Vec::new(),
            sharing: Vec::new(),
        }
    }

    pub(super) fn stats(&self) -> TcpStats {
        let mut sum = TcpStats::default();
        for subflow in &self.subflows {
            let stats = subflow.stats();
            sum.sent_pkts += stats.sent_pkts;
            sum.resent_pkts += stats.resent_pkts;
            sum.cuts += stats.cuts;
            sum.timeouts += stats.timeouts;
            sum.handshake_timeouts += stats.handshake_timeouts;
            if subflow.is_open() {
                sum.window_pkts += stats.window_pkts;
                sum.rtt = if sum.rtt.is_zero() { stats.rtt } else { sum.rtt.min(stats.rtt) };
            }
        }
        sum
    }

    /// Of each subflow.
    pub(super) fn subflow_stats(&self) -> impl Iterator<Item = TcpStats> + '_ {
        self.subflows.iter().map(Sender::stats)
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.subflows.iter().filter_map(Sender::poll_timeout).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        for number in 0..self.subflows.len() {
            if self.subflows[number].handle_timeout(now) && self.subflows.len() > 1 {
                self.supply.stuck(self.subflows[number].held());
            }
        }
    }

    pub(super) fn handle(&mut self, now: Time, segment: &Segment) {
        let number = usize::from(segment.subflow);
        if number >= self.subflows.len() {
            return;
        }
        self.supply.on_arrived(segment.data);
        self.gather();
        let place = self.sharing.iter().position(|&sharing| sharing == number);
        let coupled = place.map(|place| Coupled {
            growth: coupling::growth(self.config.control, &self.shares, place),
            left: coupling::left(self.config.control, &self.shares, place),
        });
        self.subflows[number].handle(now, segment, coupled);
        self.open_others(now);
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment>> {
        if let [only] = &mut self.subflows[..] {
            return only.poll_transmit(now, &mut self.supply, true);
        }
        // The shortest round trip first; a few subflows, so that looking for it each time is cheaper than keeping an order.
        let mut asked = 0u64;
        for _ in 0..self.subflows.len() {
            let open = self.subflows.iter().enumerate().filter(|(number, _)| asked & 1 << number == 0);
            let (number, _) = open.min_by_key(|(_, subflow)| subflow.rtt())?;
            asked |= 1 << number;
            let may_take = self.may_take(number);
            if let Some(transmit) = self.subflows[number].poll_transmit(now, &mut self.supply, may_take) {
                return Some(Transmit { way: self.way(number), ..transmit });
            }
        }
        None
    }

    /// Whether a subflow takes new packets: one that scatters does so only at the start of what is long.
    fn may_take(&self, number: usize) -> bool {
        match self.config.scatter {
            Some(scatter) if number == 0 => {
                self.supply.given() < scatter.pkts || self.subflows[1..].iter().all(|other| !other.is_open())
            }
            _ => true,
        }
    }

    fn way(&mut self, number: usize) -> u16 {
        match self.config.scatter {
            Some(_) if number == 0 => self.random.below(u64::from(self.ways)) as u16,
            _ => self.config.way(number as u16),
        }
    }

    /// The others join as soon as the first stands, or when enough has been scattered.
    fn open_others(&mut self, now: Time) {
        let Some((first, others)) = self.subflows.split_first_mut() else { return };
        let long = self.config.scatter.is_none_or(|scatter| self.supply.given() >= scatter.pkts && self.supply.has_more());
        if first.is_open() && long {
            for other in others {
                other.open_at(now);
            }
        }
    }

    fn gather(&mut self) {
        self.shares.clear();
        self.sharing.clear();
        if !self.config.control.is_coupled() {
            return;
        }
        for (number, subflow) in self.subflows.iter().enumerate() {
            if let Some(share) = subflow.share() {
                self.shares.push(share);
                self.sharing.push(number);
            }
        }
    }
}
