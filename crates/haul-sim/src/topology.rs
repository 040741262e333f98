//! Shapes of networks, and the ways through them.
//!
//! A [`Topology`] is data; [`Topology::build`] makes its links. Switches queue at their outputs: each is a set of links that leave it.
//! Hosts are places; several endpoints may stand in one, and share its links.
//!
//! ```text
//! dumbbell      0 --\            /-- n         parking lot   0 ==> 1 ==> 2 ==> ..
//!               1 ---=== path ==---- n+1       star          hosts around one switch
//!               .. -/            \-- ..        fat tree      k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches
//! parallel      a dumbbell with several paths between its sides
//! ```
//!
//! Where there are several equal paths, [`Ways`] says which of them a flow takes.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Ratio, Time};

use crate::ways::Ways;
use crate::{Change, Discipline, Endpoint, EndpointId, LinkConfig, LinkId, LossModel, Network, Reorder, Rng, TokenBucket};

/// Both directions between two places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Serialisation rate.
    pub rate: BitRate,
    /// Propagation delay, there and back.
    pub rtt: Duration,
    /// Queue at each end.
    pub queue: Queue,
    /// Part of the packets lost, each way.
    pub loss: f64,
    /// Mean length of a burst of losses in packets; below one: each on its own.
    pub burst_pkts: f64,
    /// Delay on top, wandering.
    pub jitter: Duration,
    /// Part of the packets that come an eighth of the round-trip time late.
    pub reorder: f64,
    /// Part that comes twice.
    pub duplicate: f64,
    /// Part that arrives changed.
    pub corrupt: f64,
    /// Marks what finds more than so many products of bandwidth and delay in the queue.
    pub mark_bdp: Option<f64>,
    /// What the queue does before it is full.
    pub discipline: Discipline,
    /// On the way there.
    pub policer: Option<TokenBucket>,
    /// The way back, where it is not like the way there.
    pub back: Option<Back>,
    /// Changes of the way there, since the start.
    pub changes: &'static [(Duration, Change)],
}

/// What is different on a path's way back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Back {
    /// Serialisation rate.
    pub rate: BitRate,
    /// Part of the packets lost.
    pub loss: f64,
}

/// How long a queue is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// In products of rate and round-trip time, but at least 30 kB.
    Bdp(f64),
    /// As it is.
    Bytes(Bytes),
}

impl Path {
    /// A clean path with a queue of one product of bandwidth and delay.
    pub const fn new(rate: BitRate, rtt: Duration) -> Self {
        Self {
            rate,
            rtt,
            queue: Queue::Bdp(1.0),
            loss: 0.0,
            burst_pkts: 0.0,
            jitter: Duration::ZERO,
            reorder: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            mark_bdp: None,
            discipline: Discipline::TailDrop,
            policer: None,
            back: None,
            changes: &[],
        }
    }

    /// With loss.
    pub const fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// With another queue.
    pub const fn queue(self, queue: Queue) -> Self {
        Self { queue, ..self }
    }

    /// With another discipline.
    pub const fn discipline(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }

    /// The bandwidth-delay product.
    pub fn bdp(&self) -> Bytes {
        self.rate.bytes_in(self.rtt)
    }

    /// The way there.
    pub fn there(&self, seed: u64) -> LinkConfig {
        let queue = match self.queue {
            Queue::Bdp(part) => self.part_of_bdp(part).max(Bytes(30_000)),
            Queue::Bytes(bytes) => bytes,
        };
        let ratio = Ratio::new(self.loss);
        let loss = match self.loss {
            loss if loss <= 0.0 => LossModel::None,
            _ if self.burst_pkts >= 1.0 => LossModel::Bursts { ratio, mean_pkts: self.burst_pkts },
            _ => LossModel::Random(ratio),
        };
        LinkConfig {
            rate: self.rate,
            delay: self.rtt / 2,
            jitter: self.jitter,
            queue,
            loss,
            reorder: Reorder { ratio: Ratio::new(self.reorder), extra: self.rtt / 8 },
            duplicate: Ratio::new(self.duplicate),
            corrupt: Ratio::new(self.corrupt),
            ecn_threshold: self.mark_bdp.map(|part| self.part_of_bdp(part)),
            discipline: self.discipline,
            policer: self.policer,
            shaper: None,
            seed,
        }
    }

    /// The way back: the same, without a policer, unless [`Self::back`] says otherwise.
    pub fn way_back(&self, seed: u64) -> LinkConfig {
        let path = self.back.map_or(*self, |Back { rate, loss }| Self { rate, loss, ..*self });
        LinkConfig { policer: None, ..path.there(seed) }
    }

    fn part_of_bdp(&self, part: f64) -> Bytes {
        Bytes((self.bdp().0 as f64 * part) as u64)
    }
}

/// The shape of a network.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "data of a scenario: a few of them exist")]
pub enum Topology {
    /// Hosts `0..pairs` on the left, `pairs..2 * pairs` on the right, one path between. Their own links are not felt.
    Dumbbell {
        /// Hosts on each side.
        pairs: usize,
        /// What they share.
        path: Path,
    },
    /// Hosts `0..pairs` on the left, `pairs..2 * pairs` on the right, and these paths between the sides.
    Parallel {
        /// Hosts on each side.
        pairs: usize,
        /// What they share.
        paths: &'static [Path],
    },
    /// Hosts `0..=segments` in a row, a path between neighbours.
    ParkingLot {
        /// Paths in a row.
        segments: usize,
        /// Each of them.
        path: Path,
    },
    /// Hosts around one switch: for N servers and a client, `hosts` is N + 1 and the client any of them.
    Star {
        /// How many.
        hosts: usize,
        /// Between a host and the switch.
        path: Path,
    },
    /// A fat tree of switches with `k` ports, `k` even and at least 2: k^3/4 hosts, or a multiple of that. Flows choose among equal paths by a hash.
    /// Source: Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture" (2008).
    FatTree {
        /// Ports of a switch.
        k: usize,
        /// Hosts for each port that an edge switch has upwards; 1 where there is as much room upwards.
        crowding: usize,
        /// Between a host and its edge switch.
        host: Path,
        /// Between edge and aggregation.
        aggregation: Path,
        /// Between aggregation and core.
        core: Path,
    },
}

/// The links of a topology in a network.
#[derive(Debug, Clone)]
pub struct Fabric {
    topology: Topology,
    /// Layer by layer: pairs of links, away from the first host or upwards first.
    links: Vec<(LinkId, LinkId)>,
}

impl Topology {
    /// How many places there are.
    pub fn hosts(&self) -> usize {
        match *self {
            Self::Dumbbell { pairs, .. } | Self::Parallel { pairs, .. } => pairs * 2,
            Self::ParkingLot { segments, .. } => segments + 1,
            Self::Star { hosts, .. } => hosts,
            Self::FatTree { k, crowding, .. } => k * k * k / 4 * crowding,
        }
    }

    /// Makes the links. Their chance comes from the seed.
    pub fn build<E: Endpoint>(&self, network: &mut Network<E>, seed: u64) -> Fabric {
        let mut seeds = Rng::new(seed);
        let mut links = Vec::new();
        let mut add = |count: usize, path: &Path| {
            for _ in 0..count {
                let (there, back) = (path.there(seeds.next_u64()), path.way_back(seeds.next_u64()));
                let pair = (network.add_link(there), network.add_link(back));
                network.schedule(pair.0, path.changes.iter().map(|&(at, change)| (Time::ZERO + at, change)));
                links.push(pair);
            }
        };
        match self {
            Self::Dumbbell { path, .. } => add(1, path),
            Self::Parallel { paths, .. } => paths.iter().for_each(|path| add(1, path)),
            Self::ParkingLot { segments, path } => add(*segments, path),
            Self::Star { hosts, path } => add(*hosts, path),
            Self::FatTree { k, host, aggregation, core, .. } => {
                let switch_links = k * (k / 2) * (k / 2);
                add(self.hosts(), host);
                add(switch_links, aggregation);
                add(switch_links, core);
            }
        }
        Fabric { topology: *self, links }
    }
}

impl Fabric {
    /// What was built.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// All links, there and back in turn.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.links.iter().flat_map(|&(there, back)| [there, back])
    }

    /// The links that flows from one host to another share first: those of the path they have in common, or into the receiver.
    pub fn bottleneck(&self, to: usize) -> LinkId {
        match self.topology {
            Topology::Dumbbell { pairs, .. } | Topology::Parallel { pairs, .. } if to < pairs => self.links[0].1,
            Topology::Dumbbell { .. } | Topology::Parallel { .. } => self.links[0].0,
            Topology::ParkingLot { segments, .. } => self.links[to.clamp(1, segments) - 1].0,
            Topology::Star { .. } | Topology::FatTree { .. } => self.links[to].1,
        }
    }

    /// The links between aggregation and core switches of a fat tree, there and back; none elsewhere.
    pub fn core(&self) -> impl Iterator<Item = LinkId> + '_ {
        let first = match self.topology {
            // As they are built: hosts, aggregation, core.
            Topology::FatTree { k, .. } => self.topology.hosts() + k * (k / 2) * (k / 2),
            _ => self.links.len(),
        };
        self.links[first..].iter().flat_map(|&(there, back)| [there, back])
    }

    /// How many paths of this topology differ between two hosts.
    pub fn choices(&self, from: usize, to: usize) -> usize {
        match self.topology {
            Topology::Parallel { paths, .. } => paths.len(),
            Topology::FatTree { k, crowding, .. } => {
                let half = k / 2;
                let edge = half * crowding;
                match (from / edge == to / edge, from / edge / half == to / edge / half) {
                    (true, _) => 1,
                    (false, true) => half,
                    (false, false) => half * half,
                }
            }
            _ => 1,
        }
    }

    /// The links from one host to another, by that one of the [`Self::choices`]. Empty within a host, and between hosts of one side of a
    /// dumbbell: what is sent there arrives at once.
    pub fn path(&self, from: usize, to: usize, choice: usize) -> Vec<LinkId> {
        let up = |index: usize| self.links[index].0;
        let down = |index: usize| self.links[index].1;
        let choice = choice % self.choices(from, to).max(1);
        match self.topology {
            Topology::Dumbbell { pairs, .. } | Topology::Parallel { pairs, .. } => match (from < pairs, to < pairs) {
                (true, false) => vec![up(choice)],
                (false, true) => vec![down(choice)],
                _ => Vec::new(),
            },
            Topology::ParkingLot { .. } if from <= to => (from..to).map(up).collect(),
            Topology::ParkingLot { .. } => (to..from).rev().map(down).collect(),
            _ if from == to => Vec::new(),
            Topology::Star { .. } => vec![up(from), down(to)],
            Topology::FatTree { k, crowding, .. } => self.through_tree(k, crowding, from, to, choice),
        }
    }

    /// Up to the aggregation switch and the core switch of a choice, and down again.
    fn through_tree(&self, k: usize, crowding: usize, from: usize, to: usize, choice: usize) -> Vec<LinkId> {
        let half = k / 2;
        let (edge_from, edge_to) = (from / (half * crowding), to / (half * crowding));
        let (pod_from, pod_to) = (edge_from / half, edge_to / half);
        // Neighbouring choices differ in the first switch on the way, so that few ways share as little as they can.
        let (agg, core) = (choice % half, choice / half);
        let hosts = self.topology.hosts();
        let aggregation = |edge: usize| hosts + edge * half + agg;
        let top = |pod: usize| hosts + k * half * half + (pod * half + agg) * half + core;
        let mut path = vec![self.links[from].0];
        if edge_from != edge_to {
            path.push(self.links[aggregation(edge_from)].0);
            if pod_from != pod_to {
                path.extend([self.links[top(pod_from)].0, self.links[top(pod_to)].1]);
            }
            path.push(self.links[aggregation(edge_to)].1);
        }
        path.push(self.links[to].1);
        path
    }

    /// Routes between two endpoints in two hosts, both ways and by as many ways as the flow with this number has. `extra_rtt`: by links of
    /// their own, farther away.
    pub fn connect<E: Endpoint>(
        &self,
        network: &mut Network<E>,
        ends: [(usize, EndpointId); 2],
        flow: u64,
        ways: Ways,
        extra_rtt: Duration,
    ) {
        let choices = self.choices(ends[0].0, ends[1].0);
        for [(from, sender), (to, receiver)] in [ends, [ends[1], ends[0]]] {
            let own = (!extra_rtt.is_zero())
                .then(|| network.add_link(LinkConfig { rate: BitRate::MAX, delay: extra_rtt / 2, ..LinkConfig::default() }));
            for way in 0..ways.count() {
                let path = self.path(from, to, ways.choice(flow, way, choices));
                let path: Vec<LinkId> = own.into_iter().chain(path).collect();
                network.route_way(sender, receiver, way, &path);
            }
        }
    }
}
