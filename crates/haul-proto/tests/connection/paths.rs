//! Several paths for one connection, each over links of its own: they add up, they differ, they die and come back.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::{Connection, PATHS_MAX, PathStats, Scheduler, Standing, StreamKind, TransportConfig};
use haul_scenarios::{End, Way};
use haul_sim::{EndpointId, LinkId, LossModel, Network};
use haul_units::{BitRate, Bytes, Ratio, Time};

use crate::harness::{CLIENT, Path, SERVER, configs, ends, ms};

/// No path but the first is opened by itself.
const LATER: u8 = 0;

/// A connection whose paths have links of their own.
struct Lab {
    network: Network<End>,
    /// There and back, by path.
    links: Vec<[LinkId; 2]>,
}

impl Lab {
    /// A client that wants as many paths as there are in `paths`.
    fn new(paths: &[Path], transport: &TransportConfig) -> Self {
        let count = if transport.paths == LATER { 1 } else { paths.len() as u8 };
        let transport = TransportConfig { paths: count, max_packet: 1472, ..transport.clone() };
        let (client, server) = configs(&transport);
        let (mut client, mut server) = ends(paths[0].seed, client, server);
        let (client_address, server_address) = (client.address, server.address);
        for index in 1..paths.len() {
            let path = index as u8;
            let mut address = client_address;
            address.set_port(1000 + u16::from(path));
            let way = index as u16;
            client.ways.push(Way { path: Some(path), remote: server_address, address, way });
            server.ways.push(Way { path: None, remote: address, address: server_address, way });
        }
        let mut network = Network::new();
        network.add_endpoint(client);
        network.add_endpoint(server);
        let mut links = Vec::new();
        for (way, path) in (0..).zip(paths) {
            let pair = [network.add_link(path.link(0)), network.add_link(path.link(1))];
            network.route_way(CLIENT, SERVER, way, &pair[..1]);
            network.route_way(SERVER, CLIENT, way, &pair[1..]);
            links.push(pair);
        }
        Self { network, links }
    }

    fn end(&mut self, id: EndpointId) -> &mut End {
        self.network.endpoint_mut(id)
    }

    fn connection(&mut self, id: EndpointId) -> &mut Connection {
        self.end(id).connection()
    }

    fn paths(&mut self, id: EndpointId) -> Vec<PathStats> {
        self.connection(id).paths().collect()
    }

    fn set_loss(&mut self, path: usize, loss: LossModel) {
        let now = self.network.now();
        for link in self.links[path] {
            self.network.link_mut(link).set_loss(now, loss);
        }
    }

    fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&End) -> bool, of: EndpointId) -> bool {
        let deadline = self.network.now() + limit;
        self.network.run_until(deadline, |network| done(network.endpoint(of)))
    }

    fn connected(&mut self) -> Time {
        for end in [CLIENT, SERVER] {
            assert!(self.run_until(Duration::from_secs(60), |end| end.connected_at.is_some(), end), "no connection");
        }
        self.network.now()
    }

    /// Runs until `to` has `bytes` of a placed stream, each once and right; returns when.
    fn arrives(&mut self, to: EndpointId, bytes: u64, limit: Duration) -> Time {
        let done = self.run_until(
            limit,
            |end| end.placed.lock().unwrap().finished == Some(bytes) && end.placed.lock().unwrap().bytes == bytes,
            to,
        );
        let placed = self.end(to).placed.clone();
        assert_eq!(placed.lock().unwrap().wrong, 0, "wrong or repeated bytes");
        let (sender, closed) = (EndpointId(1 - to.0), self.end(CLIENT).closed.clone());
        assert!(done, "{:?} after {limit:?}: {:#?} {closed:?}", placed.lock().unwrap(), self.paths(sender));
        self.network.now()
    }

    /// Sends `bytes` from one end to the other and tells how long it took.
    fn transfers(&mut self, from: EndpointId, bytes: u64, limit: Duration) -> Duration {
        let start = self.connected();
        self.end(from).start_bulk(bytes, false);
        self.arrives(EndpointId(1 - from.0), bytes, limit) - start
    }
}

/// How long `bytes` take over all `paths` together.
fn ideal(paths: &[Path], bytes: u64) -> Duration {
    let rate: f64 = paths.iter().map(|path| 1.0 / path.ideal(1 << 20, 1472).as_secs_f64()).sum();
    Duration::from_secs_f64(bytes as f64 / f64::from(1 << 20) / rate)
}

fn fixed(rate: BitRate) -> TransportConfig {
    TransportConfig { controller: ControllerChoice::Fixed(rate), ..TransportConfig::default() }
}

#[test]
fn separate_paths_add_up_in_either_direction() {
    for (count, from) in [(2, CLIENT), (2, SERVER), (4, CLIENT)] {
        let path = Path::new(BitRate::mbps(200), ms(40));
        let paths = vec![path; count];
        let bytes = (40 << 20) * count as u64;
        let took = Lab::new(&paths, &TransportConfig::default()).transfers(from, bytes, Duration::from_secs(30));
        // The start takes its round trips, as on one path, and the paths one more to be proved; each that joins finds its rate by attempts.
        let bound = ideal(&paths, bytes).mul_f64(1.2) + path.rtt * 16;
        assert!(took <= bound, "{count} paths from {from:?}: {took:?}, bound {bound:?}");
    }
}

/// The last packets of one path are lost and nothing follows them: what the other one carried again has arrived before any timer.
#[test]
fn what_is_last_on_a_path_goes_by_the_other_one_too() {
    const BYTES: u64 = 20 << 20;
    let new = |scheduler| {
        let paths = [Path::new(BitRate::mbps(50), ms(100)), Path::new(BitRate::mbps(50), ms(100))];
        let mut lab = Lab::new(&paths, &TransportConfig { scheduler, ..fixed(BitRate::mbps(90)) });
        lab.connected();
        lab.end(CLIENT).start_bulk(BYTES, false);
        lab
    };
    // How long it takes as a whole, and when the last bytes leave; then the same again, where the second path loses what of them still waits at its link then.
    let whole = |scheduler| {
        let mut lab = new(scheduler);
        let (mut sent, mut last) = (0, Time::ZERO);
        while !lab.run_until(ms(1), |end| end.placed.lock().unwrap().bytes == BYTES, SERVER) {
            let now = sent_by_each(&mut lab).iter().sum();
            if now > sent + 1500 {
                last = lab.network.now();
            }
            sent = now;
        }
        assert!(sent_by_each(&mut lab).iter().all(|sent| *sent > BYTES / 8), "both carry data");
        (lab.network.now(), last)
    };
    let cut = |scheduler, last: Time| {
        let mut lab = new(scheduler);
        let until_then = last.since(lab.network.now()).saturating_sub(ms(1));
        lab.run_until(until_then, |_| false, SERVER);
        lab.set_loss(1, LossModel::All);
        lab.arrives(SERVER, BYTES, Duration::from_secs(60))
    };
    // The same up to the end, where one of them sends something twice.
    let (whole, last) = whole(Scheduler::ShortestRtt);
    let by_timer = cut(Scheduler::ShortestRtt, last);
    assert!(by_timer.since(whole) > ms(100), "{by_timer:?}, {whole:?} with nothing lost");
    let by_the_other = cut(Scheduler::Completion, last);
    assert!(by_the_other.since(whole) < ms(50), "{by_the_other:?}, {whole:?} with nothing lost");
}

/// Of what is short every byte goes by every path: the loss of all that one carries costs no timer.
#[test]
fn a_redundant_flow_waits_for_no_path() {
    const BYTES: u64 = 20_000;
    let took = |scheduler| {
        let paths = [Path::new(BitRate::mbps(50), ms(50)), Path::new(BitRate::mbps(50), ms(60))];
        let mut lab = Lab::new(&paths, &TransportConfig { scheduler, ..TransportConfig::default() });
        lab.connected();
        let is_proved = |lab: &mut Lab| lab.paths(CLIENT).iter().all(|path| path.usable) && lab.paths(CLIENT).len() == 2;
        while !is_proved(&mut lab) {
            lab.run_until(ms(10), |_| false, SERVER);
        }
        lab.set_loss(0, LossModel::All);
        let start = lab.network.now();
        lab.end(CLIENT).start_bulk(BYTES, false);
        assert!(lab.run_until(Duration::from_secs(10), |end| end.placed.lock().unwrap().bytes == BYTES, SERVER));
        lab.network.now().since(start)
    };
    let (redundant, waited) = (took(Scheduler::Redundant), took(Scheduler::ShortestRtt));
    assert!(redundant < ms(120) && waited > redundant * 2, "{redundant:?} and {waited:?}");
}

fn sent_by_each(lab: &mut Lab) -> Vec<u64> {
    lab.paths(CLIENT).iter().map(|path| path.sent.as_u64()).collect()
}

#[test]
fn paths_may_differ_in_rate_round_trip_and_loss() {
    let paths = [
        Path::new(BitRate::mbps(100), ms(20)),
        Path { seed: 2, ..Path::new(BitRate::mbps(300), ms(120)).loss(0.01) },
        Path { seed: 3, reorder: 0.01, ..Path::new(BitRate::mbps(200), ms(60)).loss(0.002) },
    ];
    let bytes = 150 << 20;
    let took = Lab::new(&paths, &TransportConfig::default()).transfers(CLIENT, bytes, Duration::from_secs(60));
    let bound = ideal(&paths, bytes).mul_f64(1.25) + ms(120) * 14;
    assert!(took <= bound, "{took:?}, bound {bound:?}");
}

#[test]
fn an_ordered_stream_runs_over_all_paths() {
    let paths = [Path::new(BitRate::mbps(200), ms(20)), Path { seed: 2, ..Path::new(BitRate::mbps(200), ms(80)).loss(0.005) }];
    let mut lab = Lab::new(&paths, &TransportConfig::default());
    let start = lab.connected();
    let bytes = 60 << 20;
    lab.end(CLIENT).start_bulk(bytes, true);
    let done = lab.run_until(Duration::from_secs(30), |end| end.read.iter().any(|&(_, at, ended)| at == bytes && ended), SERVER);
    let took = lab.network.now() - start;
    assert!(done && lab.end(SERVER).wrong == 0, "{:?}", lab.paths(CLIENT));
    assert!(took <= ideal(&paths, bytes).mul_f64(1.25) + ms(80) * 14, "{took:?}");
}

#[test]
fn a_path_that_dies_gives_its_bytes_to_the_other_and_may_come_back() {
    let path = Path::new(BitRate::mbps(200), ms(40));
    for dies in [0, 1] {
        let mut lab = Lab::new(&[path, path], &fixed(BitRate::mbps(360)));
        let start = lab.connected();
        let bytes = 100 << 20;
        lab.end(CLIENT).start_bulk(bytes, false);
        lab.network.run(start + Duration::from_secs(1));
        lab.set_loss(dies, LossModel::Random(Ratio::ONE));
        lab.network.run(start + Duration::from_secs(2));
        let paths = lab.paths(CLIENT);
        assert_eq!(paths.iter().map(|path| path.usable).collect::<Vec<_>>(), [dies != 0, dies != 1], "{paths:?}");
        // Everything that was on its way arrives by the other path; what it takes alone is 200 Mbit/s, and it is told to send faster: the
        // rate that the user has fixed is the connection's.
        lab.arrives(SERVER, bytes, Duration::from_secs(8));
        lab.set_loss(dies, LossModel::None);
        let back = lab.network.now() + Duration::from_secs(3);
        lab.network.run(back);
        assert!(lab.paths(CLIENT).iter().all(|path| path.usable), "{:?}", lab.paths(CLIENT));
        let before = lab.paths(CLIENT)[dies].acknowledged;
        lab.end(CLIENT).start_bulk(20 << 20, true);
        lab.network.run(back + Duration::from_secs(2));
        let carried = lab.paths(CLIENT)[dies].acknowledged - before;
        assert!(carried.as_u64() > 5 << 20, "path {dies} carries again: {carried}");
    }
}

/// Each message that leaves on a dead path would put off the moment at which it is found to be dead.
#[test]
fn a_path_that_dies_under_small_messages_is_found_dead() {
    let paths = [Path::new(BitRate::mbps(100), ms(40)), Path::new(BitRate::mbps(100), ms(60))];
    let transport = TransportConfig { scheduler: Scheduler::ShortestRtt, ..TransportConfig::default() };
    let mut lab = Lab::new(&paths, &transport);
    let start = lab.connected();
    let id = lab.connection(CLIENT).open(StreamKind::Unidirectional).unwrap();
    let (mut written, mut now) = (0, start);
    for turn in 0..150 {
        if turn == 75 {
            lab.set_loss(0, LossModel::All);
        }
        lab.connection(CLIENT).write(id, &[0; 100]).unwrap();
        written += 100;
        now += ms(20);
        lab.network.run(now);
    }
    let arrived: u64 = lab.end(SERVER).read.iter().map(|read| read.1).sum();
    assert!(arrived + 1000 > written, "{arrived} of {written} after a second and a half: {:#?}", lab.paths(CLIENT));
}

#[test]
fn a_close_arrives_though_the_first_path_is_broken() {
    let path = Path::new(BitRate::mbps(200), ms(40));
    let mut lab = Lab::new(&[path, path], &fixed(BitRate::mbps(100)));
    let start = lab.connected();
    lab.network.run(start + ms(200));
    assert!(lab.paths(CLIENT)[1].usable, "{:?}", lab.paths(CLIENT));
    lab.set_loss(0, LossModel::Random(Ratio::ONE));
    let now = lab.network.now();
    lab.connection(CLIENT).close(now, 7, b"enough");
    lab.network.run(now + ms(100));
    assert!(lab.connection(SERVER).is_closed());
}

#[test]
fn a_port_that_nothing_passes_is_left_alone() {
    let path = Path::new(BitRate::mbps(200), ms(40));
    let mut lab = Lab::new(&[path, path], &fixed(BitRate::mbps(180)));
    lab.set_loss(1, LossModel::Random(Ratio::ONE));
    let bytes = 40 << 20;
    let took = lab.transfers(CLIENT, bytes, Duration::from_secs(10));
    assert!(took <= path.ideal(bytes, 1472).mul_f64(1.2) + path.rtt * 4, "{took:?}: as with one path");
    let blocked = lab.paths(CLIENT)[1];
    assert!(!blocked.usable && blocked.acknowledged.as_u64() == 0, "{blocked:?}");
    assert!(blocked.sent.as_u64() < 1200 * 6, "a few challenges, nothing else: {blocked:?}");
    assert_eq!(lab.paths(SERVER).len(), 1);
    // The firewall opens: the path is proved by a later challenge.
    lab.set_loss(1, LossModel::None);
    let opened = lab.network.now();
    lab.network.run(opened + Duration::from_secs(31));
    assert!(lab.paths(CLIENT)[1].usable && lab.paths(SERVER)[1].usable);
}

#[test]
fn rates_that_the_user_sets_are_the_connections() {
    let path = Path::new(BitRate::mbps(500), ms(20));
    let limit = BitRate::mbps(100);
    let limited = TransportConfig { rate_limit: Some(limit), ..TransportConfig::default() };
    for transport in [fixed(limit), limited] {
        let mut lab = Lab::new(&[path; 4], &transport);
        let start = lab.connected();
        lab.end(CLIENT).start_bulk(1 << 30, false);
        lab.network.run(start + Duration::from_secs(1));
        let before: u64 = lab.paths(CLIENT).iter().map(|path| path.acknowledged.as_u64()).sum();
        lab.network.run(start + Duration::from_secs(5));
        let paths = lab.paths(CLIENT);
        let sum: u64 = paths.iter().map(|path| path.acknowledged.as_u64()).sum();
        let rate = (sum - before) as f64 * 8.0 / 4.0 / limit.as_bps() as f64;
        assert!((0.9..1.02).contains(&rate), "{rate} of the limit: {paths:?}");
        let take_part = paths.iter().filter(|path| path.acknowledged.as_u64() > sum / 8).count();
        // Under a limit further paths join one after the other: there is no queue that would tell what they share.
        assert!(take_part == 4 || transport.rate_limit.is_some() && take_part > 1, "{paths:?}");
    }
}

#[test]
fn no_more_paths_than_both_sides_want() {
    let path = Path::new(BitRate::mbps(100), ms(10));
    let mut lab = Lab::new(&[path; 20], &TransportConfig::default());
    let start = lab.connected();
    lab.network.run(start + Duration::from_secs(2));
    for end in [CLIENT, SERVER] {
        assert_eq!(lab.paths(end).len(), usize::from(PATHS_MAX));
        assert!(lab.paths(end).iter().all(|path| path.usable));
    }
}

fn acknowledged(lab: &mut Lab, end: EndpointId) -> Vec<u64> {
    lab.paths(end).iter().map(|path| path.acknowledged.as_u64()).collect()
}

fn received(lab: &mut Lab, end: EndpointId) -> Vec<u64> {
    lab.paths(end).iter().map(|path| path.received.as_u64()).collect()
}

#[test]
fn a_backup_carries_data_only_while_nothing_else_works() {
    let path = Path::new(BitRate::mbps(100), ms(40));
    for from in [CLIENT, SERVER] {
        let mut lab = Lab::new(&[path, path], &fixed(BitRate::mbps(160)));
        let start = lab.connected();
        lab.connection(CLIENT).set_standing(start, 1, Standing::Backup, None);
        let bytes = 30 << 20;
        lab.end(from).start_bulk(bytes, false);
        lab.network.run(start + Duration::from_secs(1));
        assert!(lab.paths(CLIENT)[1].usable && lab.paths(SERVER)[1].usable);
        assert!(acknowledged(&mut lab, from)[1] < 10_000, "{from:?}: {:?}", lab.paths(from));
        lab.set_loss(0, LossModel::Random(Ratio::ONE));
        lab.network.run(start + Duration::from_secs(2));
        let meanwhile = acknowledged(&mut lab, from)[1];
        assert!(meanwhile > 5 << 20, "{from:?}: {:?}", lab.paths(from));
        lab.set_loss(0, LossModel::None);
        lab.arrives(EndpointId(1 - from.0), bytes, Duration::from_secs(8));
        let [first, spare] = acknowledged(&mut lab, from)[..] else { panic!("two paths") };
        assert!(first + spare > bytes && spare < meanwhile + (12 << 20), "{from:?}: {first} {spare}");
    }
}

#[test]
fn what_a_client_gives_up_goes_to_the_others_at_once_and_is_used_again_when_it_answers() {
    let path = Path::new(BitRate::mbps(100), ms(80));
    for (from, away) in [(CLIENT, 0), (CLIENT, 1), (SERVER, 0), (SERVER, 1)] {
        let mut lab = Lab::new(&[path, path], &fixed(BitRate::mbps(180)));
        let start = lab.connected();
        let bytes = 40 << 20;
        lab.end(from).start_bulk(bytes, false);
        let mut now = start + ms(600);
        lab.network.run(now);
        for turn in 0..4 {
            lab.set_loss(away.into(), LossModel::Random(Ratio::ONE));
            lab.connection(CLIENT).set_standing(now, away, Standing::Away, None);
            let sent = lab.paths(CLIENT)[usize::from(away)].sent;
            let before = received(&mut lab, EndpointId(1 - from.0))[1 - usize::from(away)];
            // A round trip, in which the server hears of it, and one in which what was lost is sent again.
            now += ms(200);
            lab.network.run(now);
            assert_eq!(lab.paths(CLIENT)[usize::from(away)].sent, sent, "nothing leaves there");
            assert_eq!(lab.paths(SERVER)[usize::from(away)].standing, Standing::Away);
            let meanwhile = received(&mut lab, EndpointId(1 - from.0))[1 - usize::from(away)] - before;
            assert!(meanwhile > 1 << 20, "{from:?}, turn {turn}: the other goes on: {meanwhile}");
            lab.set_loss(away.into(), LossModel::None);
            lab.connection(CLIENT).set_standing(now, away, Standing::Available, None);
            now += ms(300);
            lab.network.run(now);
            assert!(
                lab.paths(CLIENT)[usize::from(away)].usable && lab.paths(SERVER)[usize::from(away)].usable,
                "{from:?}, turn {turn}"
            );
        }
        lab.arrives(EndpointId(1 - from.0), bytes, Duration::from_secs(20));
    }
}

/// A link of two is dead ten times during a transfer, in turns, each time without a word: the longest time in which nothing arrives.
#[test]
fn ten_pulled_cables_stop_nothing_for_long() {
    let path = Path::new(BitRate::mbps(100), ms(50));
    for (from, is_ordered) in [(CLIENT, false), (CLIENT, true), (SERVER, false)] {
        let mut lab = Lab::new(&[path, path], &TransportConfig::default());
        let start = lab.connected();
        lab.end(from).start_bulk(250 << 20, is_ordered);
        let to = EndpointId(1 - from.0);
        let arrived = |lab: &mut Lab| {
            let end = lab.end(to);
            if is_ordered { end.read.iter().map(|read| read.1).sum() } else { end.placed.lock().unwrap().bytes }
        };
        let (mut last, mut moved_at, mut longest) = (0, start, Duration::ZERO);
        let mut now = start;
        // Plugged in for 600 ms, dead for 400, from the second second on.
        while now < start + Duration::from_secs(12) {
            now += ms(5);
            lab.network.run(now);
            let into = (now - start).as_millis() as u64;
            if into >= 2000 && into.is_multiple_of(1000) {
                lab.set_loss((into / 1000) as usize % 2, LossModel::All);
            } else if into % 1000 == 400 {
                (0..2).for_each(|path| lab.set_loss(path, LossModel::None));
            }
            let bytes: u64 = arrived(&mut lab);
            if bytes > last {
                (last, moved_at) = (bytes, now);
            }
            longest = longest.max(now - moved_at);
        }
        println!("from {from:?}, ordered {is_ordered}: longest pause {longest:?}, {last} bytes");
        assert!(longest < ms(300), "from {from:?}, ordered {is_ordered}: nothing for {longest:?}");
        assert!(last > 60 << 20 && lab.end(to).wrong == 0, "{last} bytes");
        assert_eq!(lab.end(to).placed.lock().unwrap().wrong, 0);
    }
}

#[test]
fn a_metered_path_stops_at_its_bytes_and_the_connection_lives() {
    let path = Path::new(BitRate::mbps(100), ms(40));
    let limit = 6 << 20;
    for from in [CLIENT, SERVER] {
        let mut lab = Lab::new(&[path, path], &fixed(BitRate::mbps(160)));
        let start = lab.connected();
        lab.connection(CLIENT).set_standing(start, 1, Standing::Backup, Some(Bytes(limit)));
        lab.network.run(start + ms(200));
        lab.set_loss(0, LossModel::Random(Ratio::ONE));
        let bytes = 30 << 20;
        lab.end(from).start_bulk(bytes, false);
        lab.network.run(start + Duration::from_secs(12));
        let metered = lab.paths(CLIENT)[1];
        let sent = metered.sent.as_u64() + lab.paths(SERVER)[1].sent.as_u64();
        assert!((limit * 9 / 10..=limit).contains(&sent), "{from:?}: {sent} of {limit}: {metered:?}");
        // What is left waits for the other one.
        lab.set_loss(0, LossModel::None);
        lab.arrives(EndpointId(1 - from.0), bytes, Duration::from_secs(10));
        let sent = lab.paths(CLIENT)[1].sent.as_u64() + lab.paths(SERVER)[1].sent.as_u64();
        assert!(sent <= limit, "{from:?}: {sent} of {limit}");
    }
}

#[test]
fn a_path_opened_later_carries_data_too() {
    let path = Path::new(BitRate::mbps(100), ms(40));
    let mut lab = Lab::new(&[path; 3], &TransportConfig { paths: LATER, ..fixed(BitRate::mbps(180)) });
    let start = lab.connected();
    assert_eq!(lab.paths(CLIENT).len(), 1);
    lab.network.run(start + ms(500));
    let now = lab.network.now();
    assert_eq!(lab.connection(CLIENT).open_path(now, "10.0.0.2:2000".parse().unwrap()), Some(1));
    assert_eq!(lab.connection(SERVER).open_path(now, "10.0.0.2:2000".parse().unwrap()), None, "a client's business");
    lab.end(CLIENT).start_bulk(20 << 20, false);
    lab.arrives(SERVER, 20 << 20, Duration::from_secs(5));
    assert!(acknowledged(&mut lab, CLIENT)[1] > 5 << 20, "{:?}", lab.paths(CLIENT));
}

/// What arrives of a flow without end over all of these paths, in parts of what they carry together, between two moments of it.
fn part_of_ideal(paths: &[Path], is_ordered: bool, between: [u64; 2], whole: &[Path]) -> f64 {
    let mut lab = Lab::new(paths, &TransportConfig::default());
    let start = lab.connected();
    lab.end(CLIENT).start_bulk(1 << 30, is_ordered);
    let mut arrived = [0; 2];
    for (arrived, second) in arrived.iter_mut().zip(between) {
        lab.network.run(start + Duration::from_secs(second));
        let end = lab.end(SERVER);
        *arrived = if is_ordered { end.read.iter().map(|read| read.1).sum() } else { end.placed.lock().unwrap().bytes };
    }
    assert_eq!(lab.end(SERVER).wrong, 0);
    let bytes = arrived[1] - arrived[0];
    ideal(whole, bytes).as_secs_f64() / (between[1] - between[0]) as f64
}

#[test]
fn a_near_and_a_far_link_add_up() {
    for (is_ordered, mbps, least) in [(false, 20, 0.95), (true, 4, 0.9)] {
        let path = Path::new(BitRate::mbps(mbps), ms(20));
        let paths = [path, Path { seed: 2, rtt: ms(200), ..path }];
        let part = part_of_ideal(&paths, is_ordered, [15, 25], &paths);
        assert!(part > least, "ordered: {is_ordered}: {part:.3} of the sum");
    }
}

/// 12 Mbit/s, and 1 Mbit/s with a queue of a second.
#[test]
fn a_slow_link_with_a_long_queue_lowers_nothing() {
    let paths = [Path::new(BitRate::mbps(12), ms(20)), Path { seed: 2, queue_bdp: 25.0, ..Path::new(BitRate::mbps(1), ms(40)) }];
    for is_ordered in [false, true] {
        let part = part_of_ideal(&paths, is_ordered, [5, 15], &paths[..1]);
        assert!(part >= 1.0, "ordered: {is_ordered}: {part:.3} of the fast one alone");
    }
}
