use std::io::Read as _;

use haul::carrier::tcp::Welcome as _;
use haul::{ClientConfig, Identity, PeerTrust, ServerConfig};

use super::*;

const LONG: Duration = Duration::from_secs(10);

fn clients() -> Clients {
    let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
    let endpoint = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
    Clients { endpoint, over: Cancel::new(), present: Arc::new(Mutex::new(Present::new())) }
}

fn name(number: usize) -> tcp::Name {
    (number as u128).to_be_bytes()
}

/// Strangers who want carriers of these names, each from another address of a network.
fn crowd(clients: &Clients, names: std::ops::Range<usize>, network: &str) {
    for n in names {
        let from = SocketAddr::new(format!("{network}.{}", n % 256).parse().unwrap(), 1000);
        assert!(clients.knows(&name(n), from), "number {n} of {network} is turned away");
    }
}

#[test]
fn strangers_of_one_network_push_out_one_another() {
    let clients = clients();
    crowd(&clients, 0..1, "198.51.100");
    crowd(&clients, 1..1001, "192.0.2");
    let present = clients.lock();
    let is_there = |n| present.by_name.contains_key(&name(n));
    assert!(is_there(0), "who came before them is gone");
    assert_eq!((is_there(1000 - MAX_STRANGERS_OF_SOURCE), is_there(1001 - MAX_STRANGERS_OF_SOURCE)), (false, true));
    assert_eq!((present.by_name.len(), present.strangers.len()), (1 + MAX_STRANGERS_OF_SOURCE, 1 + MAX_STRANGERS_OF_SOURCE));
}

#[test]
fn strangers_of_many_networks_are_bounded_together() {
    let clients = clients();
    for n in 0..10 {
        crowd(&clients, n * 100..(n + 1) * 100, &format!("10.0.{n}"));
    }
    let present = clients.lock();
    assert_eq!((present.by_name.len(), present.strangers.len()), (MAX_STRANGERS, MAX_STRANGERS));
    assert!(present.by_name.contains_key(&name(999)), "who came last is not there");
}

#[test]
fn a_stranger_has_one_lane_and_loses_it_with_its_place() {
    let clients = clients();
    let from = "192.0.2.1:1000".parse().unwrap();
    let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let welcome = clients.clone();
    thread::spawn(move || tcp::accept(&listener, welcome));
    let lane = tcp::connect(address, None, &name(0), LONG).unwrap();
    assert!(!clients.knows(&name(0), from), "a second lane");
    let mut read = lane.read;
    // From its own network.
    crowd(&clients, 1..1 + MAX_STRANGERS_OF_SOURCE, "127.0.0");
    assert!(!clients.lock().by_name.contains_key(&name(0)));
    // A lane's reader looks up now and then.
    assert!((0..5).any(|_| matches!(read.read(&mut [0]), Ok(0))), "its connection is still open");
}

#[test]
fn who_has_become_a_client_gives_way_to_nobody() {
    let clients = clients();
    let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let welcome = clients.clone();
    thread::spawn(move || tcp::accept(&listener, welcome));
    let here = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (at, carrier) = here.carry(Some(address));
    carrier.add(tcp::connect(address, None, &name(0), LONG).unwrap()).unwrap();
    let near = here.connect(at, ClientConfig::new(PeerTrust::Anyone)).unwrap();
    let far = clients.endpoint.accept().unwrap();
    // Nobody has looked at it since, and it is the oldest of a network that comes in numbers.
    crowd(&clients, 1..1001, "127.0.0");
    let present = clients.lock();
    let client = present.by_name.get(&name(0)).expect("the client is there");
    assert!(client.is_known && client.cut.is_none() && client.carrier.lanes() == 1);
    assert_eq!((present.by_name.len(), present.strangers.len()), (1 + MAX_STRANGERS_OF_SOURCE, MAX_STRANGERS_OF_SOURCE));
    assert!(near.end().is_none() && far.end().is_none(), "its connection has ended");
}
