//! The life of a connection besides bulk: addresses, outages, resets, ends.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::identity::Identity;
use haul_proto::{
    CloseReason, Connection, Endpoint, EndpointConfig, Event, ResetKey, ServerConfig, Side, StreamId, StreamKind, TransportConfig,
};
use haul_scenarios::{End, Way};
use haul_sim::{LossModel, Network};
use haul_units::{BitRate, Bytes, Ratio, Time};

use crate::harness::{CLIENT, Path, SERVER, configs, connected, ms, pair, pair_of, upload};

const RATE: BitRate = BitRate::mbps(200);

fn path() -> Path {
    Path::new(RATE, ms(50))
}

fn transport() -> TransportConfig {
    TransportConfig { controller: ControllerChoice::Fixed(RATE.scaled(0.9)), max_packet: 1472, ..TransportConfig::default() }
}

#[test]
fn the_handshake_takes_two_round_trips_with_the_cookie() {
    let mut network = pair(path(), &transport());
    let at = connected(&mut network);
    assert!(at.as_nanos() < 140_000_000, "{at}");
}

/// Each side is slow: from its first datagram with a cookie to its last the client takes 12 s.
#[test]
fn a_server_has_the_patience_with_a_handshake_that_it_has_with_strangers() {
    let at_last = |deadline: Option<Duration>| {
        let (client, mut server) = configs(&transport());
        server.admission.deadline = deadline.unwrap_or(server.admission.deadline);
        let mut network = pair_of(Path::new(RATE, Duration::from_secs(12)), client, server);
        network.run_until(Time::ZERO + Duration::from_secs(60), |network| network.endpoint(SERVER).connected_at.is_some())
    };
    assert!(at_last(Some(Duration::from_secs(30))));
    assert!(!at_last(None), "10 s is all that a stranger has by default");
}

#[test]
fn a_changed_address_is_followed() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    network.endpoint_mut(SERVER).start_bulk(10 << 20, false);
    network.run(start + ms(300));
    let new = "10.9.9.9:999".parse().unwrap();
    network.endpoint_mut(CLIENT).address = new;
    // The client only receives: its acknowledgements show the new address.
    let done = network
        .run_until(start + Duration::from_secs(20), |network| network.endpoint(CLIENT).placed.lock().unwrap().bytes == 10 << 20);
    assert!(done);
    assert_eq!(network.endpoint_mut(SERVER).connection().remote(), new);
}

/// As a laptop that goes from one network to another: what is on its way to the old address is lost, and so is all that is sent there.
#[test]
fn a_client_whose_address_is_gone_makes_itself_heard() {
    for (from, to) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        let mut network = pair(path(), &transport());
        let start = connected(&mut network);
        network.endpoint_mut(from).start_bulk(100 << 20, false);
        network.run(start + ms(300));
        let links = [haul_sim::LinkId(0), haul_sim::LinkId(1)];
        let old = std::mem::replace(&mut network.endpoint_mut(CLIENT).address, "10.9.9.9:999".parse().unwrap());
        // Nobody is there.
        let address = network.endpoint(SERVER).address;
        network.endpoint_mut(SERVER).ways.push(Way { path: None, remote: old, address, way: 1 });
        for link in links {
            network.link_mut(link).set_loss(start + ms(300), LossModel::Random(Ratio::ONE));
        }
        network.run(start + ms(400));
        for link in links {
            network.link_mut(link).set_loss(start + ms(400), LossModel::None);
        }
        let arrived = network.endpoint(to).placed.lock().unwrap().bytes;
        network.run(start + ms(2300));
        let more = network.endpoint(to).placed.lock().unwrap().bytes - arrived;
        assert!(more > 5 << 20, "{from:?}: {more} bytes in the two seconds after");
        assert!(network.endpoint(SERVER).connection.as_ref().unwrap().remote() != old);
    }
}

/// A start at the new address has no round-trip time of a handshake's.
#[test]
fn the_rate_is_found_again_at_another_address() {
    let modes = [ControllerChoice::Fair, ControllerChoice::Quickstart, ControllerChoice::Modest, ControllerChoice::Aggressive];
    let paths = [(50, 100), (500, 100), (500, 180)];
    for (controller, (mbps, new_rtt)) in modes.iter().flat_map(|mode| paths.map(|path| (*mode, path))) {
        let rate = BitRate::mbps(mbps);
        let mut network = pair(Path::new(rate, ms(100)), &TransportConfig { controller, ..transport() });
        let start = connected(&mut network);
        network.endpoint_mut(SERVER).start_bulk(10 << 30, false);
        network.run(start + ms(150));
        network.endpoint_mut(CLIENT).address = "10.9.9.9:999".parse().unwrap();
        for link in [haul_sim::LinkId(0), haul_sim::LinkId(1)] {
            network.link_mut(link).set_delay(start + ms(150), ms(new_rtt / 2));
        }
        network.run(start + ms(2500));
        let before = network.endpoint(CLIENT).placed.lock().unwrap().bytes;
        network.run(start + ms(3500));
        let more = network.endpoint(CLIENT).placed.lock().unwrap().bytes - before;
        let part = more as f64 / rate.bytes_in(Duration::from_secs(1)).as_u64() as f64;
        assert!(part > 0.8, "{controller} at {rate}, {new_rtt} ms: {part:.3} of it in the fourth second");
    }
}

/// All that is in flight to an address that is gone is lost. That is no congestion where the client is now.
#[test]
fn losses_at_an_old_address_end_no_start_at_the_new_one() {
    for controller in [ControllerChoice::Reno, ControllerChoice::Cubic, ControllerChoice::Bbr] {
        let mut network = pair(path(), &TransportConfig { controller, ..transport() });
        let start = connected(&mut network);
        network.endpoint_mut(SERVER).start_bulk(1 << 30, false);
        network.run(start + Duration::from_secs(3));
        let new = "10.9.9.9:999".parse().unwrap();
        let old = std::mem::replace(&mut network.endpoint_mut(CLIENT).address, new);
        let address = network.endpoint(SERVER).address;
        network.endpoint_mut(SERVER).ways.push(Way { path: None, remote: old, address, way: 1 });
        let remote = |network: &Network<End>| network.endpoint(SERVER).connection.as_ref().map(Connection::remote);
        assert!(network.run_until(start + Duration::from_secs(5), |network| remote(network) == Some(new)));
        let mut most = Bytes::ZERO;
        loop {
            let now = network.now() + ms(1);
            network.run(now);
            let stats = network.endpoint_mut(SERVER).connection().stats(now).unwrap();
            if !stats.controller.is_starting {
                break;
            }
            most = most.max(stats.window);
        }
        assert!(most > RATE.bytes_in(ms(40)), "{controller}: the search has ended at {most}");
    }
}

/// As behind a NAT that gives another address each second; what is sent to an old one goes nowhere.
#[test]
fn an_address_that_changes_each_second_costs_little() {
    for (from, to) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        let mut network = pair(path(), &transport());
        let start = connected(&mut network);
        network.endpoint_mut(from).start_bulk(1 << 30, false);
        let mut arrived = Vec::new();
        for second in 1..=21 {
            network.run(start + Duration::from_secs(second));
            let new = format!("10.9.9.{second}:{}", 900 + second).parse().unwrap();
            let old = std::mem::replace(&mut network.endpoint_mut(CLIENT).address, new);
            let address = network.endpoint(SERVER).address;
            network.endpoint_mut(SERVER).ways.push(Way { path: None, remote: old, address, way: 1 });
            arrived.push(network.endpoint(to).placed.lock().unwrap().bytes);
        }
        let carried: Vec<u64> = arrived.windows(2).map(|two| two[1] - two[0]).collect();
        // What 180 Mbit/s carry in a second, without headers, less a sixth for two round trips of each: the old address is known to be wrong, the new one proved.
        assert!(carried.iter().all(|&bytes| bytes > 17_800_000), "from {from:?}: {carried:?}");
        assert_eq!(network.endpoint(to).placed.lock().unwrap().wrong, 0);
    }
}

/// Data that ends makes a client ask once whether all is well, and no more.
#[test]
fn a_client_at_rest_is_silent() {
    let transport = TransportConfig { keep_alive: None, ..transport() };
    let mut network = pair(path(), &transport);
    let start = connected(&mut network);
    network.endpoint_mut(SERVER).start_bulk(1 << 20, false);
    network.run(start + Duration::from_secs(3));
    let sent = |network: &mut Network<End>| {
        [CLIENT, SERVER].map(|end| network.endpoint_mut(end).connection().stats(start).unwrap().sent_pkts)
    };
    let before = sent(&mut network);
    network.run(start + Duration::from_secs(60));
    assert_eq!(sent(&mut network), before);
}

#[test]
fn a_client_stays_with_the_address_that_it_has_chosen() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    let chosen = network.endpoint(SERVER).address;
    network.endpoint_mut(CLIENT).start_bulk(10 << 20, false);
    network.run(start + ms(200));
    // Somebody on the way, or the server itself, would have the client send its data elsewhere.
    network.endpoint_mut(SERVER).address = "192.0.2.66:66".parse().unwrap();
    network.run(start + ms(400));
    assert_eq!(network.endpoint_mut(CLIENT).connection().remote(), chosen);
    let done = network.run_until(start + Duration::from_secs(20), |network| {
        network.endpoint(SERVER).placed.lock().unwrap().finished == Some(10 << 20)
    });
    assert!(done, "what the server says is heard all the same");
    assert_eq!(network.endpoint_mut(CLIENT).connection().remote(), chosen);
}

#[test]
fn an_outage_is_survived() {
    for outage_s in [2, 60, 85] {
        let mut network = pair(path(), &transport());
        let start = connected(&mut network);
        network.endpoint_mut(CLIENT).start_bulk(20 << 20, false);
        network.run(start + ms(400));
        let (there, back) = (haul_sim::LinkId(0), haul_sim::LinkId(1));
        for link in [there, back] {
            let now = network.now();
            network.link_mut(link).set_loss(now, LossModel::Random(Ratio::ONE));
        }
        let restored = network.now() + Duration::from_secs(outage_s);
        network.run(restored);
        for link in [there, back] {
            network.link_mut(link).set_loss(restored, LossModel::None);
        }
        let done = network.run_until(restored + Duration::from_secs(6), |network| {
            network.endpoint(SERVER).placed.lock().unwrap().finished == Some(20 << 20)
        });
        assert!(done, "outage of {outage_s} s: {:?}", network.endpoint(CLIENT).closed);
        assert_eq!(network.endpoint(SERVER).placed.lock().unwrap().wrong, 0);
    }
}

/// Both links lose everything from now on, or nothing.
fn set_silence(network: &mut Network<End>, silent: bool) {
    let now = network.now();
    for link in [haul_sim::LinkId(0), haul_sim::LinkId(1)] {
        network.link_mut(link).set_loss(now, if silent { LossModel::Random(Ratio::ONE) } else { LossModel::None });
    }
}

#[test]
fn a_silent_peer_costs_at_most_100_packets_a_minute() {
    let fixed = ControllerChoice::Fixed(RATE.scaled(0.9));
    for (controller, rtt) in
        [(fixed, 1), (ControllerChoice::Fair, 1), (ControllerChoice::Fair, 50), (fixed, 600), (ControllerChoice::Cubic, 50)]
    {
        let transport = TransportConfig { controller, max_packet: 1472, ..TransportConfig::default() };
        let mut network = pair(Path::new(RATE, ms(rtt)), &transport);
        let start = connected(&mut network);
        network.endpoint_mut(CLIENT).start_bulk(1 << 30, false);
        // Something to say in every stream, on both sides.
        for end in [CLIENT, SERVER] {
            let connection = network.endpoint_mut(end).connection();
            for _ in 0..2000 {
                let id = connection.open(StreamKind::Unidirectional).unwrap();
                connection.write(id, &[0; 10]).unwrap();
            }
        }
        network.run(start + ms(rtt * 4 + 400));
        set_silence(&mut network, true);
        for end in [CLIENT, SERVER] {
            let connection = network.endpoint_mut(end).connection();
            for stream in 0..2000 {
                let id =
                    StreamId::new(if end == CLIENT { Side::Server } else { Side::Client }, StreamKind::Unidirectional, stream);
                connection.stop(id, 1);
            }
        }
        // What was on its way, and what the window still lets go.
        let silent = network.now() + ms(rtt * 2 + 100);
        network.run(silent);
        let count =
            |network: &Network<End>| [CLIENT, SERVER].map(|end| (network.endpoint(end).packets, network.endpoint(end).wakes));
        let before = count(&network);
        network.run(silent + Duration::from_secs(60));
        let after = count(&network);
        for (before, after) in before.into_iter().zip(after) {
            let (packets, wakes) = (after.0 - before.0, after.1 - before.1);
            assert!(packets <= 100 && wakes <= 300, "{controller:?}, {rtt} ms: {packets} packets, {wakes} times awake");
        }
        // It is heard again: within the two seconds of the longest wait, and what waited goes on at once.
        set_silence(&mut network, false);
        let back = network.now();
        let had = network.endpoint(SERVER).placed.lock().unwrap().bytes;
        let done = network.run_until(back + Duration::from_secs(3) + ms(rtt * 6), |network| {
            network.endpoint(SERVER).placed.lock().unwrap().bytes > had + (1 << 20)
        });
        assert!(done, "{controller:?}, {rtt} ms: {:?}", network.endpoint_mut(CLIENT).connection().stats(back));
    }
}

#[test]
fn a_probe_asks_even_if_all_that_is_in_flight_has_arrived_otherwise() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    network.run(start + ms(500));
    let (there, back) = (haul_sim::LinkId(1), haul_sim::LinkId(0));
    // A server's, for a client that hears nothing asks in other ways too. The answer to two packets is late: a probe has repeated both meanwhile, and is lost.
    let (sent, answered) = (network.now(), network.now() + ms(300));
    network.link_mut(back).set_delay(sent, ms(275));
    let writes = |network: &mut Network<End>, length| {
        let server = network.endpoint_mut(SERVER).connection();
        let id = server.open(StreamKind::Unidirectional).unwrap();
        server.write(id, &vec![0; length]).unwrap();
        id
    };
    let first = writes(&mut network, 2000);
    network.run(sent + ms(40));
    network.link_mut(there).set_loss(sent + ms(40), LossModel::Random(Ratio::ONE));
    network.run(answered + ms(20));
    let server = network.endpoint_mut(SERVER).connection();
    assert_eq!(server.unacknowledged(first), Some(1), "all but its end, which nobody has written");
    let stats = server.stats(answered).unwrap();
    assert!(stats.probe_timeouts > 0 && stats.in_flight > Bytes(2000), "{stats:?}");
    // One more packet is lost; from then on nothing is.
    let second = writes(&mut network, 10);
    network.run(answered + ms(30));
    let healed = network.now();
    network.link_mut(there).set_loss(healed, LossModel::None);
    network.link_mut(back).set_delay(healed, ms(25));
    let has_arrived = |network: &mut Network<End>| network.endpoint(CLIENT).read.iter().any(|&(id, ..)| id == second);
    // The probe, its answer, and the packet again; after one more probe in vain everything would count as lost, 520 ms later.
    let arrived = network.run_until(healed + ms(500), has_arrived);
    assert!(arrived, "{:?}", network.endpoint_mut(SERVER).connection().stats(healed));
}

#[test]
fn silence_ends_a_connection() {
    let mut network = pair(path(), &TransportConfig { idle_timeout: Duration::from_secs(10), ..transport() });
    let start = connected(&mut network);
    network.run(start + Duration::from_secs(25));
    assert_eq!(network.endpoint(CLIENT).closed, None, "keep-alives hold it open");
    let now = network.now();
    network.link_mut(haul_sim::LinkId(0)).set_loss(now, LossModel::Random(Ratio::ONE));
    network.run(now + Duration::from_secs(30));
    assert_eq!(network.endpoint(SERVER).closed, Some(CloseReason::TimedOut(Duration::from_secs(10))));
}

#[test]
fn a_close_tells_code_and_reason() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    network.endpoint_mut(CLIENT).connection().close(start, 7, b"done here");
    network.run(start + Duration::from_secs(5));
    assert_eq!(network.endpoint(CLIENT).closed, Some(CloseReason::Local));
    assert_eq!(network.endpoint(SERVER).closed, Some(CloseReason::Peer { code: 7, reason: "done here".into() }));
    assert!(
        network.endpoint(SERVER).events.contains(&Event::Drained) && network.endpoint(CLIENT).events.contains(&Event::Drained)
    );
}

#[test]
fn a_peer_that_restarted_says_so() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    let server = network.endpoint_mut(SERVER);
    let id = server.id.take().unwrap();
    server.connection = None;
    server.endpoint.forget(id);
    network.endpoint_mut(CLIENT).start_bulk(1 << 20, false);
    network.run(start + Duration::from_secs(2));
    assert_eq!(network.endpoint(CLIENT).closed, Some(CloseReason::Reset));
}

#[test]
fn a_server_that_was_killed_and_started_again_with_its_key_says_so_within_a_round_trip() {
    let identity = Identity::generate();
    let key = |purpose| ResetKey::of_identity(&identity, purpose);
    for (again, believed) in [(key("serve 1"), true), (key("serve 2"), false), (None, false)] {
        let (client, server) = configs(&transport());
        let config = ServerConfig { reset_key: key("serve 1"), ..server };
        let mut network = pair_of(path(), client, config.clone());
        let start = connected(&mut network);
        let server = network.endpoint_mut(SERVER);
        (server.id, server.connection) = (None, None);
        // Another process: nothing of the first one's is left, its random seed neither.
        let config = ServerConfig { reset_key: again, ..config };
        server.endpoint = Endpoint::new(EndpointConfig { seed: [99; 32], server: Some(config) }).unwrap();
        network.endpoint_mut(CLIENT).start_bulk(1 << 20, false);
        network.run(start + path().rtt + ms(10));
        assert_eq!(network.endpoint(CLIENT).closed, believed.then_some(CloseReason::Reset));
    }
}

/// Probes that nobody answers are two seconds apart in the end.
#[test]
fn a_server_that_was_away_for_long_and_has_its_key_says_so_within_two_seconds_and_a_round_trip() {
    let reset_key = ResetKey::of_identity(&Identity::generate(), "serve");
    for (from, away_s) in [(CLIENT, 1), (CLIENT, 10), (CLIENT, 60), (SERVER, 1), (SERVER, 10), (SERVER, 60)] {
        let (client, server) = configs(&transport());
        let config = ServerConfig { reset_key: reset_key.clone(), ..server };
        let mut network = pair_of(path(), client, config.clone());
        let start = connected(&mut network);
        network.endpoint_mut(from).start_bulk(1 << 30, false);
        network.run(start + ms(400));
        set_silence(&mut network, true);
        let server = network.endpoint_mut(SERVER);
        (server.id, server.connection) = (None, None);
        let back = network.now() + Duration::from_secs(away_s);
        network.run(back);
        assert_eq!(network.endpoint(CLIENT).closed, None);
        // Another process, with the key of the first.
        let config = EndpointConfig { seed: [99; 32], server: Some(config) };
        network.endpoint_mut(SERVER).endpoint = Endpoint::new(config).unwrap();
        set_silence(&mut network, false);
        network.run_until(back + Duration::from_secs(60), |network| network.endpoint(CLIENT).closed.is_some());
        assert_eq!(network.endpoint(CLIENT).closed, Some(CloseReason::Reset));
        let took = network.now() - back;
        assert!(took <= Duration::from_secs(2) + path().rtt + ms(10), "{from:?} sent, {away_s} s away: {took:?}");
    }
}

#[test]
fn streams_stop_reset_and_half_close() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    let client = network.endpoint_mut(CLIENT).connection();
    let (reset, half) = (client.open(StreamKind::Unidirectional).unwrap(), client.open(StreamKind::Bidirectional).unwrap());
    client.write(reset, &[0; 5000]).unwrap();
    client.write(half, &[]).unwrap();
    client.finish(half).unwrap();
    network.run(start + ms(200));
    network.endpoint_mut(CLIENT).connection().reset(reset, 42);
    network.run(start + ms(400));
    let server = network.endpoint(SERVER);
    assert!(server.read.iter().any(|&(id, at, ended)| id == half && at == 0 && ended));
    assert!(server.read.iter().any(|&(id, _, ended)| id == reset && !ended));
    assert!(server.events.contains(&Event::Opened(StreamKind::Unidirectional)));
    // The other way of the half-closed stream still works.
    let mut word = [0; 16];
    let server = network.endpoint_mut(SERVER).connection();
    server.write(half, b"\x00\x01\x02").unwrap();
    server.finish(half).unwrap();
    network.run(start + ms(600));
    let client = network.endpoint_mut(CLIENT).connection();
    assert_eq!(client.read(half, &mut word), Ok(3));
    assert_eq!(client.read(half, &mut word), Ok(0));
    assert_eq!(client.unacknowledged(half), None);
}

#[test]
fn stop_reaches_the_sender() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    let stream = network.endpoint_mut(CLIENT).start_bulk(100 << 20, true);
    network.run(start + ms(200));
    network.endpoint_mut(SERVER).connection().stop(stream, 9);
    network.run(start + ms(400));
    assert!(network.endpoint(CLIENT).events.contains(&Event::Stopped(stream, 9)));
    // What was dropped costs no credit: another transfer goes through whole.
    upload(&mut network, 30 << 20, Duration::from_secs(10));
}

#[test]
fn thousands_of_streams() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    let client = network.endpoint_mut(CLIENT).connection();
    for _ in 0..3000 {
        let id = client.open(StreamKind::Unidirectional).unwrap();
        client.write(id, &[0, 1, 2, 3]).unwrap();
        client.finish(id).unwrap();
    }
    network.run(start + Duration::from_secs(3));
    let server = network.endpoint(SERVER);
    assert_eq!(server.read.iter().filter(|&&(_, at, ended)| at == 4 && ended).count(), 3000);
    assert_eq!(server.wrong, 0);
    let now = network.now();
    assert_eq!(network.endpoint_mut(SERVER).connection().stats(now).unwrap().streams, 0, "read to the end and gone");
}

#[test]
fn a_reset_that_nobody_reads_leaves_no_stream() {
    let mut network = pair(path(), &transport());
    let start = connected(&mut network);
    let client = network.endpoint_mut(CLIENT).connection();
    let id = client.open(StreamKind::Bidirectional).unwrap();
    client.write(id, &[0]).unwrap();
    client.finish(id).unwrap();
    network.run(start + ms(200));
    let server = network.endpoint_mut(SERVER).connection();
    server.write(id, &[0, 1, 2]).unwrap();
    server.reset(id, 7);
    network.run(start + ms(400));
    network.endpoint_mut(CLIENT).connection().stop(id, 0);
    network.run(start + ms(600));
    for end in [CLIENT, SERVER] {
        let now = network.now();
        assert_eq!(network.endpoint_mut(end).connection().stats(now).unwrap().streams, 0);
    }
}

#[test]
fn readers_that_stand_still_hold_up_nobody_else() {
    const STILL: usize = 20;
    let window = 4 << 20;
    let mut network = pair(path(), &TransportConfig { stream_window: Bytes(window), ..transport() });
    let start = connected(&mut network);
    let client = network.endpoint_mut(CLIENT).connection();
    let open = |client: &mut Connection| {
        let id = client.open(StreamKind::Bidirectional).unwrap();
        client.write(id, &[0]).unwrap();
        id
    };
    let still: Vec<_> = (0..STILL).map(|_| open(client)).collect();
    network.run(start + ms(200));
    // More than the connection's window in all: nobody reads it.
    let (part, mut written) = (vec![0; 1 << 20], [0; STILL]);
    for _ in 0..60 {
        let server = network.endpoint_mut(SERVER).connection();
        for (&id, written) in still.iter().zip(&mut written) {
            while let Ok(more) = server.write(id, &part) {
                *written += more as u64;
            }
        }
        let next = network.now() + ms(100);
        network.run(next);
    }
    assert_eq!(written, [window; STILL], "each writer fills its stream's window, and waits then");
    let living = open(network.endpoint_mut(CLIENT).connection());
    let now = network.now();
    network.run(now + ms(100));
    assert_eq!(network.endpoint_mut(SERVER).connection().write(living, &[0, 1, 2]), Ok(3));
    network.run(now + ms(200));
    assert_eq!(network.endpoint_mut(CLIENT).connection().read(living, &mut [0; 16]), Ok(3));
}

/// Writes as much as there is room for.
fn fill(connection: &mut Connection, id: StreamId) -> u64 {
    let part = vec![0; 1 << 20];
    std::iter::from_fn(|| connection.write(id, &part).ok()).map(|written| written as u64).sum()
}

#[test]
fn a_stream_that_begins_to_carry_much_has_room_a_round_trip_later() {
    const WINDOW: u64 = 1 << 20;
    let mut network = pair(path(), &TransportConfig { stream_window: Bytes(WINDOW), ..transport() });
    let start = connected(&mut network);
    let client = network.endpoint_mut(CLIENT).connection();
    let ids = [(); 2].map(|()| {
        let id = client.open(StreamKind::Bidirectional).unwrap();
        client.write(id, &[0]).unwrap();
        id
    });
    network.run(start + ms(200));
    let server = network.endpoint_mut(SERVER).connection();
    for id in ids {
        assert_eq!(server.write(id, &vec![0; 100_000]), Ok(100_000));
    }
    network.run(start + ms(400));
    // One is read beyond a chunk, the other has the size of an answer.
    let client = network.endpoint_mut(CLIENT).connection();
    assert_eq!(client.read(ids[0], &mut vec![0; 70_000]), Ok(70_000));
    assert_eq!(client.read(ids[1], &mut vec![0; 60_000]), Ok(60_000));
    network.run(start + ms(600));
    let server = network.endpoint_mut(SERVER).connection();
    let room = |server: &mut Connection, id| fill(server, id) + 100_000;
    assert_eq!(room(server, ids[1]), WINDOW);
    assert!(room(server, ids[0]) > 4 * WINDOW);
}
