//! A fleet's plan over the transport itself, in virtual time: `fleet SERVERS [FILES] [SEED] [dynamic|round-robin] [verbose]`.
//!
//! As the experiment on real sockets: five lines as fast as the client's link and eight of a tenth of it, 150 ms, files of 12.5 MB, each with its own; members come up one after the other.

use std::collections::VecDeque;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_plan::{Catalogue, FileId, Order, PieceId, Plan, Policy, ServerId, ServerProfile, Settings};
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{ClientConfig, ServerConfig, StreamId, StreamKind, TransportConfig};
use haul_scenarios::{Content, Datagram, End};
use haul_sim::{Delivered, Endpoint, EndpointId, LinkConfig, Network, Transmit};
use haul_units::{BitRate, Bytes, Time};

const FILE: u64 = 12_500_000;
const RTT: Duration = Duration::from_millis(150);
const BLOCK: u64 = 1 << 20;
const WIRE: f64 = 1472.0 / 1428.0;

struct Told {
    piece: PieceId,
    next: u64,
    end: u64,
}

struct Member {
    end: End,
    starts: Option<Time>,
    config: Option<Box<ClientConfig>>,
    stream: Option<StreamId>,
    offset: u64,
    queue: VecDeque<Told>,
    is_dead: bool,
    /// What was given to the transport, in order.
    given: VecDeque<(PieceId, u64, u64)>,
}

impl Endpoint for Member {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, from: EndpointId, delivered: Delivered<Datagram>) {
        self.end.handle(now, from, delivered);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Datagram>> {
        if self.is_dead {
            return None;
        }
        if let (Some(at), true) = (self.starts, self.config.is_some()) {
            if at <= now {
                let server = std::net::SocketAddr::from(([10, 1, 0, 1], 7000));
                self.end.connect(now, server, *self.config.take().expect("checked"));
            }
        }
        if self.end.connected_at.is_some() && self.starts.is_some() {
            self.feed();
        }
        let transmit = self.end.poll_transmit(now);
        self.end.events.clear();
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.is_dead {
            return None;
        }
        self.config.as_ref().and(self.starts).or_else(|| self.end.poll_timeout())
    }

    fn ecn_capable(packet: &Datagram) -> bool {
        End::ecn_capable(packet)
    }
}

impl Member {
    fn feed(&mut self) {
        let Some(connection) = self.end.connection.as_mut() else { return };
        if self.stream.is_none() {
            self.stream = connection.open(StreamKind::Placed).ok();
        }
        let Some(stream) = self.stream else { return };
        while let Some(told) = self.queue.front_mut() {
            if told.next >= told.end {
                self.queue.pop_front();
                continue;
            }
            if connection.buffered() >= connection.send_budget() {
                return;
            }
            let len = (told.end - told.next).min(BLOCK);
            if connection.write_block(stream, self.offset, vec![0; len as usize]).is_err() {
                return;
            }
            self.given.push_back((told.piece, told.next, told.next + len));
            told.next += len;
            self.offset += len;
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, otherwise: &str| args.get(at).cloned().unwrap_or_else(|| otherwise.to_owned());
    let servers: usize = arg(0, "13").parse().expect("a number");
    let files: usize = arg(1, "12").parse().expect("a number");
    let seed: u64 = arg(2, "1").parse().expect("a number");
    let policy = if arg(3, "dynamic") == "dynamic" { Policy::Dynamic } else { Policy::RoundRobin };
    let verbose = arg(4, "") == "verbose";
    let rate: u64 = arg(5, "1000").parse().expect("a number");
    let client = BitRate::mbps(rate);
    let choice: ControllerChoice = arg(6, "fair").parse().expect("a mode");

    // Each file is held by a second server too; the first is killed after so many seconds.
    let twice = std::env::var_os("TWICE").is_some();
    let kill: Option<f64> = std::env::var("KILL").ok().and_then(|at| at.parse().ok());
    let mut gone: Option<Time> = None;
    let mut files_of: Vec<Vec<FileId>> = vec![Vec::new(); servers];
    let watched: Option<usize> = std::env::var("WATCH").ok().and_then(|at| at.parse().ok());
    let identity = Identity::generate();
    let mut network: Network<Member> = Network::new();
    let half = RTT / 2;
    let queue = Bytes((client.as_bps() as f64 / 8.0 * RTT.as_secs_f64()) as u64);
    let down = network.add_link(LinkConfig { rate: client, delay: half, queue, seed, ..LinkConfig::default() });
    let up = network.add_link(LinkConfig { rate: client, delay: half, queue, seed: seed + 1, ..LinkConfig::default() });
    let key = identity.to_pkcs8().expect("ours").to_vec();
    let (mut catalogue, mut ids, mut starts) = (Catalogue::new(), Vec::new(), Vec::new());
    for server in 0..servers {
        let line = if server < 5 { client } else { client.scaled(0.1) };
        let identity = Identity::from_pkcs8(&key).expect("made");
        let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
        let transport = TransportConfig { max_packet: 1472, controller: choice, ..TransportConfig::default() };
        let config = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let client_config = ClientConfig { transport, connect_timeout: Duration::from_secs(60), ..ClientConfig::new(trust) };
        let (a, b) = (EndpointId(server * 2), EndpointId(server * 2 + 1));
        let seeds = |side: u8| {
            let mut bytes = [side; 32];
            bytes[..8].copy_from_slice(&(seed * 1000 + server as u64).to_le_bytes());
            bytes
        };
        // Sessions come up within 1.4 s, in an order of chance.
        let spread = (seed * 7919 + server as u64 * 104_729) % 1000;
        let start = Time::ZERO + Duration::from_micros(spread * 1400 * servers as u64 / 13);
        let member = |end, starts, config| Member { end, starts, config, stream: None, offset: 0, queue: VecDeque::new(), is_dead: false, given: VecDeque::new() };
        let address = |side: u8| std::net::SocketAddr::from(([10, side, 0, server as u8 + 1], 7000));
        let sender = member(End::client(seeds(1), address(2), b, Content::Zeros), Some(start), Some(Box::new(client_config)));
        let receiver = member(End::server(seeds(2), std::net::SocketAddr::from(([10, 1, 0, 1], 7000)), a, Content::Zeros, config), None, None);
        network.add_endpoint(sender);
        network.add_endpoint(receiver);
        let lq = Bytes((line.as_bps() as f64 / 8.0 * RTT.as_secs_f64()) as u64);
        let out = network.add_link(LinkConfig { rate: line, delay: Duration::ZERO, queue: lq, ..LinkConfig::default() });
        let back = network.add_link(LinkConfig { rate: line, delay: Duration::ZERO, queue: lq, ..LinkConfig::default() });
        network.route(a, b, &[out, down]);
        network.route(b, a, &[up, back]);
        ids.push(catalogue.add_server());
        starts.push(start);
    }
    let mut plan = Plan::new(catalogue, Settings { policy, ..Settings::default() });
    let total = FILE * (files * servers) as u64;
    let tick = Duration::from_millis(10);
    let mut is_up = vec![false; servers];
    let mut arrived = vec![0u64; servers];
    let mut told_of = vec![0u64; servers];
    let mut counted = vec![0u64; servers];
    let mut coming: Vec<VecDeque<(Time, Order)>> = (0..servers).map(|_| VecDeque::new()).collect();
    let mut last_second = vec![0u64; servers];
    let mut marks: Vec<String> = vec![String::new(); servers];
    let mut now = Time::ZERO;
    let (mut first_order, mut steady, mut at_80) = (None, None, None);
    let mut window: VecDeque<u64> = VecDeque::new();
    let mut tick_number = 0u64;
    while !plan.is_done() || is_up.iter().any(|up| !up) {
        now = now + tick;
        tick_number += 1;
        assert!(now < Time::ZERO + Duration::from_secs(600), "it does not end");
        network.run(now);
        if let (Some(kill), None) = (kill, gone) {
            if now.as_secs_f64() >= kill {
                gone = Some(now);
                network.endpoint_mut(EndpointId(0)).is_dead = true;
            }
        }
        if gone.is_some_and(|at| now == at + Duration::from_millis(1200)) {
            plan.handle_down(ids[0], now);
        }
        for at in 0..servers {
            if !is_up[at] && network.endpoint(EndpointId(at * 2)).end.connected_at.is_some() {
                is_up[at] = true;
                if twice {
                    let others = [(at + servers - 5) % servers];
                    for other in others {
                        if files_of[other].is_empty() {
                            files_of[other] = (0..files).map(|_| plan.handle_found(Bytes(FILE), &[ids[at]]).expect("fits")).collect();
                        } else {
                            files_of[other].iter().for_each(|file| plan.handle_holder(*file, ids[at]));
                        }
                    }
                }
                if files_of[at].is_empty() {
                    files_of[at] = (0..files).map(|_| plan.handle_found(Bytes(FILE), &[ids[at]]).expect("fits")).collect();
                } else {
                    files_of[at].iter().for_each(|file| plan.handle_holder(*file, ids[at]));
                }
                plan.handle_up(ids[at], ServerProfile::at(RTT), now);
            }
            arrived[at] = network.endpoint(EndpointId(at * 2 + 1)).end.arrived();
            let sender = network.endpoint_mut(EndpointId(at * 2));
            while let Some((piece, start, end)) = sender.given.front().copied() {
                if told_of[at] + (end - start) > arrived[at] {
                    break;
                }
                sender.given.pop_front();
                told_of[at] += end - start;
                plan.handle_arrived(piece, start..end, now);
            }
        }
        if tick_number % 10 == 0 {
            for at in (0..servers).filter(|at| is_up[*at]) {
                plan.handle_received(ids[at], Bytes(arrived[at] - counted[at]), tick * 10);
                counted[at] = arrived[at];
                if let Some(stats) = network.endpoint(EndpointId(at * 2 + 1)).end.connection.as_ref().and_then(|c| c.stats(now)) {
                    if !stats.rtt.is_zero() {
                        plan.handle_rtt(ids[at], stats.rtt);
                    }
                }
            }
        }
        while let Some(order) = plan.poll_order(now) {
            first_order.get_or_insert(now);
            let to: ServerId = match &order {
                Order::Send { server, .. } | Order::Shorten { server, .. } | Order::Limit { server, .. } | Order::Room { server, .. } => *server,
            };
            coming[to.index()].push_back((now + half, order));
        }
        while plan.poll_event().is_some() {}
        for at in 0..servers {
            while coming[at].front().is_some_and(|(then, _)| *then <= now) {
                let (_, order) = coming[at].pop_front().expect("there");
                let member = network.endpoint_mut(EndpointId(at * 2));
                match order {
                    Order::Send { piece, range, .. } => member.queue.push_back(Told { piece, next: range.start, end: range.end }),
                    Order::Shorten { piece, end, .. } => {
                        for told in member.queue.iter_mut().filter(|told| told.piece == piece) {
                            told.end = told.end.min(end.max(told.next));
                        }
                    }
                    Order::Limit { limit, .. } => {
                        marks[at] = limit.map_or_else(String::new, |limit| format!("<{}", limit.as_bps() / 1_000_000));
                        if let Some(connection) = member.end.connection.as_mut() {
                            connection.set_rate_limit(limit.map(|limit| limit.scaled(WIRE)));
                        }
                    }
                    Order::Room { rate, .. } => {
                        marks[at] = format!("^{}", rate.as_bps() / 1_000_000);
                        if let Some(connection) = member.end.connection.as_mut() {
                            connection.take_room(now, rate.scaled(WIRE));
                        }
                    }
                }
            }
        }
        let sum: u64 = arrived.iter().sum();
        window.push_back(sum);
        if window.len() > 51 {
            window.pop_front();
        }
        let half_s = (sum - window[0]) as f64 * 8.0 / 0.5;
        if at_80.is_none() && half_s > client.as_bps() as f64 * 0.8 / WIRE {
            at_80 = Some(now);
        }
        if steady.is_none() && first_order.is_some_and(|first| now >= first + RTT * 10) {
            steady = Some((now, sum));
        }
        if let Some(at) = watched.filter(|_| tick_number % 5 == 0) {
            if let Some(stats) = network.endpoint(EndpointId(at * 2)).end.connection.as_ref().and_then(|c| c.stats(now)) {
                let mbps = |rate: BitRate| rate.as_bps() / 1_000_000;
                if let Some(stats) = network.endpoint(EndpointId(at * 2 + 1)).end.connection.as_ref().and_then(|c| c.stats(now)) {
                    print!("rcv rtt {} min {} queue {} ", stats.rtt.as_millis(), stats.min_rtt.as_millis(), stats.queue_delay.as_millis());
                }
                println!(
                    "   {:6.2} {} {} pace {} arrives {} rtt {} min {} queue {} buffered {} inflight {} window {} loss {:.2} lost {}",
                    now.as_secs_f64(), stats.controller.phase, marks[at], mbps(stats.pacing_rate), mbps(stats.delivery_rate), stats.rtt.as_millis(), stats.min_rtt.as_millis(),
                    stats.queue_delay.as_millis(), stats.buffered, stats.in_flight, stats.window, stats.loss.as_f64() * 100.0, stats.lost_pkts
                );
            }
        }
        if verbose && tick_number % 50 == 0 {
            let queued = network.link_mut(down).queue_delay(now);
            let rates: Vec<String> = (0..servers)
                .map(|at| format!("{:4.0}{:<5}", (arrived[at] - last_second[at]) as f64 * 16e-6, std::mem::take(&mut marks[at])))
                .collect();
            let all: u64 = arrived.iter().zip(&last_second).map(|(a, b)| a - b).sum();
            let dropped = network.link(down).stats().dropped_pkts;
            println!("{:5.1} {:5.0} q {:3} ms drop {dropped} | {}", now.as_secs_f64(), all as f64 * 16e-6, queued.as_millis(), rates.join(" "));
            last_second.clone_from(&arrived);
        }
    }
    let first = first_order.expect("orders");
    let (from, before) = steady.unwrap_or((now, total));
    let wire = |bytes: u64, time: Duration| bytes as f64 * 8e-6 * (1500.0 / 1428.0) / time.as_secs_f64();
    println!(
        "{servers} servers seed {seed}: {:.2} s after the first order, link after 10 RTT {:.0} of {rate} Mbit/s, whole {:.0}; 80 % after {:.2} s; dropped {}",
        (now - first).as_secs_f64(),
        wire(total - before, now - from),
        wire(total, now - first),
        at_80.map_or(f64::NAN, |at| (at - first).as_secs_f64()),
        network.link(down).stats().dropped_pkts,
    );
}
