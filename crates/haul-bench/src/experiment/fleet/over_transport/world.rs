//! Servers with lines of their own, the client's link behind them all, and what the plan says on its way.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use haul_plan::{Catalogue, FileId, Order, Plan, ServerId, ServerProfile};
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{ClientConfig, ServerConfig, TransportConfig};
use haul_scenarios::{Content, End};
use haul_sim::{EndpointId, LinkConfig, LinkId, Network};
use haul_units::{BitRate, Bytes, Time};

use super::job::{COUNTED, FILE, Job, TICK, Word};
use super::member::{Member, Told};
use crate::experiment::fleet::paper::{FAST, RTT, line};

pub struct World {
    job: Job,
    network: Network<Member>,
    /// The client's link, towards it.
    link: LinkId,
    ids: Vec<ServerId>,
    files: Vec<Vec<FileId>>,
    is_up: Vec<bool>,
    /// Bytes of which the plan has been told, as pieces and as rates.
    told_bytes: Vec<u64>,
    counted: Vec<u64>,
    /// Orders on their way.
    coming: Vec<VecDeque<(Time, Order)>>,
    words: Vec<Option<Word>>,
    /// When the plan hears of the one that says nothing more.
    noticed: Option<Time>,
}

impl World {
    /// And the catalogue of its servers, in which is no file yet.
    pub fn new(job: &Job) -> (Self, Catalogue) {
        let mut network = Network::new();
        let queue = product(job.client);
        let shared = LinkConfig { rate: job.client, delay: RTT / 2, queue, seed: job.seed, ..LinkConfig::default() };
        let (link, back) = (network.add_link(shared), network.add_link(shared));
        let (catalogue, ids) = servers(job.servers);
        let key = Identity::generate().to_pkcs8().expect("it is ours").to_vec();
        for at in 0..job.servers {
            let line = line(at, job.client);
            let access = LinkConfig { rate: line, delay: Duration::ZERO, queue: product(line), ..LinkConfig::default() };
            let (out, into) = (network.add_link(access), network.add_link(access));
            let (from, to) = connection(job, at, &key);
            network.add_endpoint(from);
            network.add_endpoint(to);
            network.route(sender(at), receiver(at), &[out, link]);
            network.route(receiver(at), sender(at), &[back, into]);
        }
        let world = Self {
            network,
            link,
            ids,
            files: vec![Vec::new(); job.servers],
            is_up: vec![false; job.servers],
            told_bytes: vec![0; job.servers],
            counted: vec![0; job.servers],
            coming: (0..job.servers).map(|_| VecDeque::new()).collect(),
            words: vec![None; job.servers],
            noticed: None,
            job: job.clone(),
        };
        (world, catalogue)
    }

    /// Packets go on until `now`; the plan hears who has come, who has gone, and what has arrived.
    pub fn run(&mut self, now: Time, plan: &mut Plan) {
        self.network.run(now);
        if let Some(then) = self.job.killed.filter(|then| self.noticed.is_none() && now >= Time::ZERO + *then) {
            self.network.endpoint_mut(sender(0)).is_dead = true;
            self.noticed = Some(Time::ZERO + then + NOTICED);
        }
        if self.noticed.is_some_and(|then| (then..then + TICK).contains(&now)) {
            plan.handle_down(self.ids[0], now);
        }
        for at in 0..self.job.servers {
            if !self.is_up[at] && self.network.endpoint(sender(at)).end.connected_at.is_some() {
                self.is_up[at] = true;
                come_up(plan, &self.job, &mut self.files, &self.ids, at, now);
            }
            let arrived = self.network.endpoint(receiver(at)).end.arrived();
            let given = &mut self.network.endpoint_mut(sender(at)).given;
            while let Some(block) = given.front().filter(|block| self.told_bytes[at] + block.len() <= arrived) {
                self.told_bytes[at] += block.len();
                plan.handle_arrived(block.piece, block.next..block.end, now);
                given.pop_front();
            }
        }
    }

    /// What a client looks at now and then: rates and round trips.
    pub fn count(&mut self, plan: &mut Plan) {
        for (at, come) in self.come().into_iter().enumerate().filter(|(at, _)| self.is_up[*at]) {
            plan.handle_received(self.ids[at], Bytes(come - self.counted[at]), TICK * COUNTED as u32);
            self.counted[at] = come;
            let connection = self.network.endpoint(receiver(at)).end.connection.as_ref();
            let rtt = connection.and_then(|connection| connection.stats(self.network.now())).map(|stats| stats.rtt);
            if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
                plan.handle_rtt(self.ids[at], rtt);
            }
        }
    }

    /// Sends what the plan says, and does what has reached the servers; whether the plan said anything.
    pub fn follow(&mut self, now: Time, plan: &mut Plan) -> bool {
        let mut has_said = false;
        while let Some(order) = plan.poll_order(now) {
            has_said = true;
            let (Order::Send { server, .. }
            | Order::Shorten { server, .. }
            | Order::Limit { server, .. }
            | Order::Room { server, .. }) = &order;
            self.coming[server.index()].push_back((now + RTT / 2, order));
        }
        while plan.poll_event().is_some() {}
        for at in 0..self.job.servers {
            while self.coming[at].front().is_some_and(|(then, _)| *then <= now) {
                let Some((_, order)) = self.coming[at].pop_front() else { break };
                self.obey(now, at, order);
            }
        }
        has_said
    }

    fn obey(&mut self, now: Time, at: usize, order: Order) {
        let member = self.network.endpoint_mut(sender(at));
        match order {
            Order::Send { piece, range, .. } => {
                member.orders.push_back(Told { piece, next: range.start, end: range.end });
            }
            Order::Shorten { piece, end, .. } => {
                for told in member.orders.iter_mut().filter(|told| told.piece == piece) {
                    told.end = told.end.min(end.max(told.next));
                }
            }
            Order::Limit { limit, .. } => {
                self.words[at] = Some(Word::Limit(limit));
                if let Some(connection) = &mut member.end.connection {
                    connection.set_rate_limit(limit.map(|limit| limit.scaled(WIRE)));
                }
            }
            Order::Room { rate, .. } => {
                self.words[at] = Some(Word::Room(rate));
                if let Some(connection) = &mut member.end.connection {
                    connection.take_room(now, rate.scaled(WIRE));
                }
            }
        }
    }

    /// Bytes that have come of each, counted once.
    pub fn come(&self) -> Vec<u64> {
        (0..self.job.servers).map(|at| self.network.endpoint(receiver(at)).end.arrived()).collect()
    }

    /// What each was told since this was asked.
    pub fn told(&mut self) -> Vec<Option<Word>> {
        self.words.iter_mut().map(Option::take).collect()
    }

    pub fn is_up(&self) -> bool {
        self.is_up.iter().all(|is_up| *is_up)
    }

    pub fn queue(&mut self, now: Time) -> Duration {
        self.network.link_mut(self.link).queue_delay(now)
    }

    pub fn dropped_pkts(&self) -> u64 {
        self.network.link(self.link).stats().dropped_pkts
    }
}

/// A member has connected: the plan hears what it has.
fn come_up(plan: &mut Plan, job: &Job, files: &mut [Vec<FileId>], ids: &[ServerId], at: usize, now: Time) {
    // Its own, and those of whom it has the second copies.
    let other = (at + job.servers - FAST % job.servers) % job.servers;
    for of in [Some(at), job.twice.then_some(other)].into_iter().flatten() {
        if files[of].is_empty() {
            files[of] = (0..job.files).filter_map(|_| plan.handle_found(FILE, &[ids[at]]).ok()).collect();
        } else {
            files[of].iter().for_each(|file| plan.handle_holder(*file, ids[at]));
        }
    }
    plan.handle_up(ids[at], ServerProfile::at(RTT), now);
}

const fn sender(at: usize) -> EndpointId {
    EndpointId(at * 2)
}

const fn receiver(at: usize) -> EndpointId {
    EndpointId(at * 2 + 1)
}

fn servers(number: usize) -> (Catalogue, Vec<ServerId>) {
    let mut catalogue = Catalogue::new();
    let ids = (0..number).map(|_| catalogue.add_server()).collect();
    (catalogue, ids)
}

/// The two ends of a member's connection.
fn connection(job: &Job, at: usize, key: &[u8]) -> (Member, Member) {
    let identity = Identity::from_pkcs8(key).expect("just made");
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let transport = TransportConfig { max_packet: 1472, controller: job.controller, ..TransportConfig::default() };
    let server = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let client = ClientConfig { transport, connect_timeout: Duration::from_secs(60), ..ClientConfig::new(trust) };
    let seed = |side: u8| {
        let mut seed = [side; 32];
        seed[..8].copy_from_slice(&(job.seed * 1000 + at as u64).to_le_bytes());
        seed
    };
    let here = SocketAddr::from(([10, 1, 0, 1], 7000));
    let there = SocketAddr::from(([10, 2, 0, at as u8 + 1], 7000));
    // Logins end in an order of chance.
    let part = (job.seed * 7919 + at as u64 * 104_729) % 1000;
    let start = Time::ZERO + LOGIN * job.servers as u32 * part as u32 / 1000;
    (
        Member::sender(End::client(seed(1), there, receiver(at), Content::Zeros), (start, here, Box::new(client))),
        Member::receiver(End::server(seed(2), here, sender(at), Content::Zeros, server)),
    )
}

/// A product of bandwidth and round-trip time.
fn product(rate: BitRate) -> Bytes {
    Bytes((rate.bytes_per_second() as f64 * RTT.as_secs_f64()) as u64)
}

/// What each login adds to the time until the last has ended: on real sockets thirteen end within 1.4 s.
const LOGIN: Duration = Duration::from_millis(108);
/// Twice the three round trips and 0.1 s after which a member that is silent while others are heard is in doubt.
const NOTICED: Duration = Duration::from_millis(1100);
/// Packets of the transport beside their content.
const WIRE: f64 = 1472.0 / 1428.0;
