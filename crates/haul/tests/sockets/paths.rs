//! Several paths for one connection on real sockets, each with a port of its own.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul::udp::Options;
use haul::{BitRate, ClientConfig, ConnectError, Connection, ControllerChoice, Endpoint, PATHS_MAX};

use crate::blocks::transfer;
use crate::relay::socket;
use crate::support::{PATIENCE, Pair, accept, configs, eventually, pair, pair_with};

fn usable(end: &Connection) -> usize {
    end.paths().iter().filter(|path| path.usable).count()
}

fn with_paths(paths: u8) -> Pair {
    let pair = pair_with("127.0.0.1:0", Options::default(), |client, _| client.transport.paths = paths);
    eventually("paths", || [&pair.near, &pair.far].iter().all(|end| usable(end) == usize::from(paths)));
    pair
}

#[test]
fn everything_arrives_over_several_ports_and_each_carries_a_part() {
    for paths in [2, 4] {
        let pair = with_paths(paths);
        // A rate that is fixed is shared by all paths, whatever they share.
        for end in [&pair.near, &pair.far] {
            end.set_controller(ControllerChoice::Fixed(BitRate::mbps(60)));
        }
        transfer(&pair.near, &pair.far, 8);
        transfer(&pair.far, &pair.near, 8);
        let mut ports: Vec<u16> = pair.far.paths().iter().map(|path| path.remote.port()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), usize::from(paths), "the client's ports as the server sees them");
        assert!(pair.near.paths().iter().all(|path| path.remote == pair.server.local_addr()), "the server has one port");
        for (name, end) in [("client", &pair.near), ("server", &pair.far)] {
            for path in end.paths() {
                assert!(path.acknowledged.0 > 100_000 && path.received.0 > 100_000, "{name}, {paths} paths: {path:?}");
            }
        }
    }
}

#[test]
fn both_directions_at_once_as_fast_as_they_can() {
    let pair = with_paths(4);
    thread::scope(|scope| {
        scope.spawn(|| transfer(&pair.near, &pair.far, 40));
        scope.spawn(|| transfer(&pair.far, &pair.near, 40));
    });
}

#[test]
fn one_path_is_the_default_and_as_many_as_there_may_be_the_most() {
    let default = pair();
    transfer(&default.near, &default.far, 2);
    assert_eq!((default.near.paths().len(), default.far.paths().len()), (1, 1));
    let most = with_paths(PATHS_MAX);
    transfer(&most.near, &most.far, 2);
    for paths in [0, PATHS_MAX + 1, u8::MAX] {
        let (mut config, _) = configs();
        config.transport.paths = paths;
        let refused = most.client.connect(most.server.local_addr(), config).expect_err("no such number of paths");
        assert!(matches!(refused, ConnectError::Paths { asked } if asked == paths), "{refused}");
        assert!(refused.to_string().contains("1 to 8"), "{refused}");
    }
}

#[test]
fn a_port_that_the_network_stops_to_pass_gives_its_bytes_to_the_others() {
    let network = Ports::start();
    let (mut client_config, server_config) = configs();
    client_config.transport.paths = 3;
    let server = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), server_config).expect("binds");
    network.forward_to(server.local_addr());
    let client = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    let near = client.connect(network.addr(), client_config).expect("connects");
    let far = accept(&server);
    eventually("three paths", || usable(&near) == 3 && usable(&far) == 3);
    let transfers = |blocked: Option<SocketAddr>| {
        thread::scope(|scope| {
            let up = scope.spawn(|| transfer(&near, &far, 30));
            let down = scope.spawn(|| transfer(&far, &near, 30));
            network.block(blocked);
            for moving in [up, down] {
                moving.join().expect("no panic");
            }
        });
    };
    // Also that of the handshake, on which frames of the connection leave.
    for index in [1, 0] {
        transfers(Some(far.paths()[index].remote));
        eventually("its silence is noticed", || {
            transfer(&near, &far, 1);
            transfer(&far, &near, 1);
            !near.paths()[index].usable && !far.paths()[index].usable
        });
        network.block(None);
        eventually("it is used again", || usable(&near) == 3 && usable(&far) == 3);
    }
    transfers(None);
}

#[test]
fn connections_begin_on_the_endpoints_own_port_only() {
    let (mut client_config, server_config) = configs();
    let (stranger_config, listening_too) = configs();
    client_config.transport.paths = 2;
    let bind = |config| Endpoint::listen("127.0.0.1:0".parse().expect("an address"), config).expect("binds");
    let (server, client) = (bind(server_config), bind(listening_too));
    let near = client.connect(server.local_addr(), client_config).expect("connects");
    let far = accept(&server);
    eventually("two paths", || usable(&far) == 2);
    let [own, further] = [0, 1].map(|index: usize| far.paths()[index].remote);
    assert_eq!(own, client.local_addr());
    let stranger = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    let hasty = ClientConfig { connect_timeout: Duration::from_millis(300), ..stranger_config.clone() };
    let refused = stranger.connect(further, hasty).expect_err("nobody accepts there");
    assert!(matches!(refused, ConnectError::TimedOut { .. }), "{refused}");
    let welcome = stranger.connect(own, stranger_config).expect("connects");
    transfer(&welcome, &client.accept_timeout(PATIENCE).expect("listens").expect("in time"), 1);
    transfer(&near, &far, 1);
}

#[test]
fn the_ports_of_further_paths_are_given_back_with_the_connection() {
    let Pair { client, near, far, server: _server } = with_paths(4);
    let further: Vec<SocketAddr> = far.paths().iter().skip(1).map(|path| path.remote).collect();
    assert!(further.iter().all(|port| UdpSocket::bind(port).is_err()), "in use");
    drop(near);
    far.closed();
    eventually("the ports are free", || further.iter().all(|port| UdpSocket::bind(port).is_ok()));
    // The endpoint itself goes on.
    let (config, server_config) = configs();
    let other = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), server_config).expect("binds");
    let near = client.connect(other.local_addr(), config).expect("connects");
    transfer(&near, &accept(&other), 1);
}

/// A network that sends each of a client's ports through a port of its own, and can stop to pass one.
struct Ports {
    shared: Arc<Passing>,
    thread: Option<JoinHandle<()>>,
}

struct Passing {
    inside: UdpSocket,
    server: Mutex<Option<SocketAddr>>,
    /// What the server sees of it: nothing from there or to there is passed.
    blocked: Mutex<Option<SocketAddr>>,
    stop: AtomicBool,
}

impl Ports {
    fn start() -> Self {
        let shared = Arc::new(Passing {
            inside: socket(),
            server: Mutex::default(),
            blocked: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let thread = thread::spawn({
            let shared = shared.clone();
            move || shared.outward()
        });
        Self { shared, thread: Some(thread) }
    }

    fn addr(&self) -> SocketAddr {
        self.shared.inside.local_addr().expect("bound")
    }

    fn forward_to(&self, server: SocketAddr) {
        *self.shared.server.lock().expect("no panic") = Some(server);
    }

    /// Passes nothing for this port, as the server sees it, and everything for the others.
    fn block(&self, port: Option<SocketAddr>) {
        *self.shared.blocked.lock().expect("no panic") = port;
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

impl Passing {
    fn passes(&self, port: &UdpSocket) -> bool {
        *self.blocked.lock().expect("no panic") != port.local_addr().ok()
    }

    /// From the client's ports, each of which gets a thread for the way back.
    fn outward(self: &Arc<Self>) {
        let mut outside: HashMap<SocketAddr, (Arc<UdpSocket>, JoinHandle<()>)> = HashMap::new();
        let mut buffer = vec![0; 65_536];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((len, client)) = self.inside.recv_from(&mut buffer) else { continue };
            let (port, _) = outside.entry(client).or_insert_with(|| {
                let (shared, port) = (self.clone(), Arc::new(socket()));
                (port.clone(), thread::spawn(move || shared.inward(&port, client)))
            });
            if let Some(server) = *self.server.lock().expect("no panic")
                && self.passes(port)
            {
                let _ = port.send_to(&buffer[..len], server);
            }
        }
        for (_, thread) in outside.into_values() {
            thread.join().expect("no panic");
        }
    }

    fn inward(&self, port: &UdpSocket, client: SocketAddr) {
        let mut buffer = vec![0; 65_536];
        while !self.stop.load(Ordering::Relaxed) {
            if let Ok((len, _)) = port.recv_from(&mut buffer)
                && self.passes(port)
            {
                let _ = self.inside.send_to(&buffer[..len], client);
            }
        }
    }
}
