//! A server that can be reached at several addresses: paths go to the one that answers them, and nobody is asked for long who does not.

use std::net::SocketAddr;
use std::time::Duration;

use haul_proto::{PathStats, TransportConfig};
use haul_scenarios::{End, Way};
use haul_sim::{EndpointId, LossModel, Network};
use haul_units::{BitRate, Bytes, Ratio, Time};

use crate::harness::{CLIENT, Path, SERVER, configs, connected, ends, ms};

/// Where the client reaches the server first, and where it is too.
const FIRST: &str = "10.0.0.2:2000";
const SECOND: &str = "10.0.1.2:2000";

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Two links that have nothing to do with each other, the server with an address on each. The client's second path leaves by the second link, where nobody is at the first address.
fn disjoint(is_told: bool) -> (Network<End>, Time) {
    let via = if is_told { vec!["all".parse().unwrap()] } else { Vec::new() };
    let (client, server) = configs(&TransportConfig { via, max_packet: 1472, ..TransportConfig::default() });
    let (mut client, mut server) = ends(1, client, server);
    let near = at("10.0.1.1:1001");
    let way = |remote, way| Way { path: Some(1), remote, address: near, way };
    client.ways = vec![way(at(SECOND), 1), way(at(FIRST), 2)];
    client.ways.extend((3..100).map(|last| way(SocketAddr::from(([10, 0, 2, last], 2000)), 2)));
    server.ways = vec![Way { path: None, remote: near, address: at(SECOND), way: 1 }];
    let mut network = Network::new();
    network.add_endpoint(client);
    network.add_endpoint(server);
    for way in 0..3 {
        let path = Path { seed: u64::from(way) + 1, ..Path::new(BitRate::mbps(100), ms(40)) };
        let links = [network.add_link(path.link(0)), network.add_link(path.link(1))];
        network.route_way(CLIENT, SERVER, way, &links[..1]);
        network.route_way(SERVER, CLIENT, way, &links[1..]);
        if way == 2 {
            for link in links {
                network.link_mut(link).set_loss(Time::ZERO, LossModel::Random(Ratio::ONE));
            }
        }
    }
    let start = connected(&mut network);
    (network, start)
}

fn paths(network: &mut Network<End>, of: EndpointId) -> Vec<PathStats> {
    network.endpoint_mut(of).connection().paths().collect()
}

fn announce(network: &mut Network<End>, addresses: &[SocketAddr]) {
    network.endpoint_mut(SERVER).connection().announce(addresses);
}

#[test]
fn a_path_leads_to_the_address_that_answers_it() {
    for is_told_first in [true, false] {
        let (mut network, start) = disjoint(true);
        if is_told_first {
            announce(&mut network, &[at(FIRST), at(SECOND)]);
        }
        network.run(start + ms(200));
        assert_eq!(network.endpoint_mut(CLIENT).connection().open_path(start + ms(200), at(FIRST)), Some(1));
        if !is_told_first {
            network.run(start + Duration::from_secs(2));
            assert!(!paths(&mut network, CLIENT)[1].usable, "nobody is there");
            announce(&mut network, &[at(SECOND)]);
        }
        // A path that carries nothing yet is asked a second after it has been opened.
        let told = network.now();
        network.run(told + ms(1500));
        let proved = paths(&mut network, CLIENT);
        assert!(proved[1].usable && proved[1].remote == at(SECOND) && proved[0].remote == at(FIRST), "{proved:?}");
        let start = network.now();
        network.endpoint_mut(CLIENT).start_bulk(20 << 20, false);
        let done = network.run_until(start + Duration::from_secs(20), |network| {
            network.endpoint(SERVER).placed.lock().unwrap().finished == Some(20 << 20)
        });
        let carried = paths(&mut network, CLIENT);
        assert!(done && carried.iter().all(|path| path.acknowledged > Bytes::mib(5)), "{carried:?}");
    }
}

/// A server that means harm names others' addresses, and this machine's own.
#[test]
fn who_does_not_answer_gets_three_challenges_and_no_more() {
    let (mut network, start) = disjoint(true);
    let others = (3..100).map(|last| SocketAddr::from(([10, 0, 2, last], 2000)));
    let own = ["127.0.0.1:2000", "[::1]:2000", "10.0.2.3:22", "255.255.255.255:2000", "224.0.0.1:2000"].map(at);
    announce(&mut network, &own.into_iter().chain(others).collect::<Vec<_>>());
    network.run(start + ms(200));
    let client = network.endpoint_mut(CLIENT).connection();
    let believed = client.server_addresses();
    assert!(believed.len() == 9 && believed[1..].iter().all(|address| address.ip() != at(FIRST).ip()), "{believed:?}");
    assert!(own.iter().all(|address| !believed.contains(address)), "{believed:?}");
    client.open_path(start + ms(200), at(FIRST));
    network.run(start + Duration::from_secs(30));
    let sent = paths(&mut network, CLIENT)[1].sent.as_u64();
    assert!(
        (8 * 3 * 1200..(8 * 3 + 12) * 1200).contains(&sent),
        "{sent} bytes: three times to each, and a few times more to the first"
    );
    // Naming them again, or others, changes nothing; the first one is asked on, ever more seldom.
    announce(&mut network, &(50..90).map(|last| SocketAddr::from(([10, 0, 2, last], 2000))).collect::<Vec<_>>());
    network.run(start + Duration::from_secs(90));
    let more = paths(&mut network, CLIENT)[1].sent.as_u64() - sent;
    assert!(more <= 3 * 1200, "{more} bytes more");
}

#[test]
fn who_does_not_ask_is_told_nothing() {
    let (mut network, start) = disjoint(false);
    assert!(!network.endpoint_mut(SERVER).connection().takes_addresses());
    announce(&mut network, &[at(SECOND)]);
    network.run(start + ms(500));
    assert_eq!(network.endpoint_mut(CLIENT).connection().server_addresses(), [at(FIRST)]);
}
