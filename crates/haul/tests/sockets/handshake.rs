//! Who may talk to whom, and what a refusal looks like.

use std::net::UdpSocket;
use std::time::Duration;

use haul::udp::Options;
use haul::{AcceptError, BindError, ClientConfig, ConnectError, Endpoint, Identity, PeerTrust};

use crate::support::{accept, configs, pair, pair_with};

fn loopback(server: Option<haul::ServerConfig>) -> Endpoint {
    Endpoint::with_options("127.0.0.1:0".parse().expect("an address"), Options::default(), server).expect("binds")
}

#[test]
fn both_sides_know_each_other() {
    let me = Identity::generate();
    let pinned = PeerTrust::Pinned(vec![me.public_key().fingerprint()]);
    let (my_key, mut its_key) = (me.public_key().clone(), None);
    let pair = pair_with("127.0.0.1:0", Options::default(), |client, server| {
        client.identity = Some(me);
        client.protocols = vec![b"new".to_vec(), b"old".to_vec()];
        server.trust = pinned;
        server.protocols = vec![b"old".to_vec()];
        its_key = Some(server.identity.public_key().clone());
    });
    assert_eq!(pair.far.peer_key(), Some(my_key));
    assert_eq!(pair.near.peer_key(), its_key);
    assert_eq!(pair.near.protocol().as_deref(), Some(&b"old"[..]));
    assert_eq!(pair.far.protocol().as_deref(), Some(&b"old"[..]));
    assert_eq!(pair.near.remote_addr(), pair.server.local_addr());
    assert_eq!(pair.far.remote_addr(), pair.client.local_addr());
}

#[test]
fn a_server_with_another_key_is_not_trusted() {
    let (_, server_config) = configs();
    let right = server_config.identity.public_key().fingerprint();
    let server = loopback(Some(server_config));
    let wrong = PeerTrust::Pinned(vec![Identity::generate().public_key().fingerprint()]);
    match loopback(None).connect(server.local_addr(), ClientConfig::new(wrong)) {
        Err(ConnectError::PeerNotTrusted { fingerprint, .. }) => assert_eq!(fingerprint, right),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_without_the_key_asked_for_is_refused() {
    let (client_config, mut server_config) = configs();
    server_config.trust = PeerTrust::Pinned(vec![Identity::generate().public_key().fingerprint()]);
    let server = loopback(Some(server_config));
    for identity in [None, Some(Identity::generate())] {
        let config = ClientConfig { identity, connect_timeout: Duration::from_secs(2), ..client_config.clone() };
        // The client may be through with the handshake before the server has seen its key.
        match loopback(None).connect(server.local_addr(), config) {
            Err(ConnectError::Failed { .. }) => {}
            Ok(connection) => drop(connection.closed()),
            other => panic!("{other:?}"),
        }
    }
    assert!(server.accept_timeout(Duration::from_millis(50)).expect("listens").is_none());
}

#[test]
fn silence_times_out_and_says_so() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let closed = {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        socket.local_addr().expect("bound")
    };
    let (config, _) = configs();
    let config = ClientConfig { connect_timeout: Duration::from_millis(400), ..config };
    for addr in [silent.local_addr().expect("bound"), closed] {
        match loopback(None).connect(addr, config.clone()) {
            Err(ConnectError::TimedOut { addr: told, waited }) => {
                assert_eq!(told, addr);
                assert!(waited >= Duration::from_millis(400) && waited < Duration::from_secs(5), "{waited:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_endpoint_that_only_connects_answers_nobody() {
    let server = loopback(None);
    assert_eq!(server.accept().expect_err("does not listen"), AcceptError::NotListening);
    let (config, _) = configs();
    let config = ClientConfig { connect_timeout: Duration::from_millis(300), ..config };
    assert!(matches!(loopback(None).connect(server.local_addr(), config), Err(ConnectError::TimedOut { .. })));
}

#[test]
fn nonsense_addresses_are_refused_at_once() {
    let (config, _) = configs();
    for addr in ["127.0.0.1:0", "0.0.0.0:4433"] {
        let result = loopback(None).connect(addr.parse().expect("an address"), config.clone());
        assert!(matches!(result, Err(ConnectError::InvalidAddress { .. })));
    }
}

#[test]
fn an_admission_token_admits() {
    let (mut config, server_config) = configs();
    let server = loopback(Some(server_config));
    config.admission = Some(server.admission_token());
    let near = loopback(None).connect(server.local_addr(), config).expect("connects");
    let far = accept(&server);
    near.close(3, "seen enough");
    assert!(far.closed().to_string().contains("seen enough"));
}

#[test]
fn one_socket_connects_and_accepts() {
    let (to_first, first_config) = configs();
    let (to_second, second_config) = configs();
    let (first, second) = (loopback(Some(first_config)), loopback(Some(second_config)));
    let there = first.connect(second.local_addr(), to_second).expect("connects");
    let back = second.connect(first.local_addr(), to_first).expect("connects");
    assert_eq!(accept(&second).remote_addr(), first.local_addr());
    assert_eq!(accept(&first).remote_addr(), second.local_addr());
    assert_eq!((there.remote_addr(), back.remote_addr()), (second.local_addr(), first.local_addr()));
}

#[test]
fn a_range_of_ports_is_kept_to() {
    let ip = "127.0.0.1".parse().expect("an address");
    let taken = loopback(None);
    let port = taken.local_addr().port();
    match Endpoint::bind_in(ip, port..=port) {
        Err(BindError::NoFreePort { first, last, .. }) => assert_eq!((first, last), (port, port)),
        other => panic!("{other:?}"),
    }
    let found = Endpoint::bind_in(ip, port..=port.saturating_add(200)).expect("one of them is free");
    assert!(found.local_addr().port() > port);
}

#[test]
fn many_clients_at_once() {
    let (config, server_config) = configs();
    let server = loopback(Some(server_config));
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let (config, to) = (config.clone(), server.local_addr());
            std::thread::spawn(move || loopback(None).connect(to, config).expect("connects"))
        })
        .collect();
    let accepted: Vec<_> = (0..20).map(|_| accept(&server)).collect();
    let connected: Vec<_> = clients.into_iter().map(|client| client.join().expect("no panic")).collect();
    let mut addrs: Vec<_> = accepted.iter().map(haul::Connection::remote_addr).collect();
    addrs.sort_unstable();
    addrs.dedup();
    assert_eq!((addrs.len(), connected.len()), (20, 20));
}

#[test]
fn stats_make_sense_from_the_start() {
    let stats = pair().near.stats();
    assert!(stats.rtt > Duration::ZERO && stats.rtt < Duration::from_secs(2), "{stats:?}");
    assert!(stats.packet_size.0 >= 1200);
    assert_eq!(stats.lost_pkts, 0);
}
