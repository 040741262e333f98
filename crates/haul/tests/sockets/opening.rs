//! Connections whose handshake was carried over another channel.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use haul::udp::Options;
use haul::{AcceptError, ClientConfig, ConnectError, Connection, Endpoint, Identity, Opening, PeerTrust, ServerConfig};

use crate::relay::{Faults, Relay};
use crate::support::{accept, bytes, configs};

fn bound(addr: &str, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::with_options(addr.parse().expect("an address"), Options::default(), server).expect("binds")
}

fn answered(server: &Endpoint, config: ClientConfig) -> Opening {
    let mut opening = Opening::new(config).expect("a sound configuration");
    let answer = server.answer(&opening.bytes(), None).expect("an opening");
    opening.on_answer(&answer, Some(Duration::from_millis(1))).expect("an answer");
    opening
}

/// Both ends, after a word each way.
fn talk(client: &Endpoint, addrs: &[SocketAddr], opening: Opening, server: &Endpoint) -> (Connection, Connection) {
    let near = client.connect_opened(addrs, opening).expect("connects");
    let (mut send, mut receive) = near.open_bi().expect("a stream");
    send.write_all(b"hello").expect("room");
    send.finish().expect("an end");
    let far = accept(server);
    let (mut back, mut question) = far.accept_bi().expect("a stream");
    let mut asked = String::new();
    question.read_to_string(&mut asked).expect("bytes");
    back.write_all(asked.to_uppercase().as_bytes()).expect("room");
    back.finish().expect("an end");
    let mut answer = String::new();
    receive.read_to_string(&mut answer).expect("bytes");
    assert_eq!(answer, "HELLO");
    (near, far)
}

fn silent() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let addr = socket.local_addr().expect("bound");
    (socket, addr)
}

#[test]
fn both_sides_know_each_other() {
    let me = Identity::generate();
    let (config, server_config) = configs();
    let config = ClientConfig { identity: Some(me.clone()), protocols: vec![b"talk".to_vec()], ..config };
    let trust = PeerTrust::Pinned(vec![me.public_key().fingerprint()]);
    let server = bound("127.0.0.1:0", Some(ServerConfig { trust, protocols: vec![b"talk".to_vec()], ..server_config }));
    let client = bound("127.0.0.1:0", None);
    let opening = answered(&server, config);
    let (near, far) = talk(&client, &[server.local_addr()], opening, &server);
    assert_eq!(far.peer_key().as_ref(), Some(me.public_key()));
    assert_eq!((near.protocol(), far.protocol()), (Some(b"talk".to_vec()), Some(b"talk".to_vec())));
    assert_eq!((near.remote_addr(), far.remote_addr()), (server.local_addr(), client.local_addr()));
    near.close(3, "seen enough");
    assert!(far.closed().to_string().contains("seen enough"));
}

#[test]
fn the_address_that_answers_is_taken() {
    let (config, server_config) = configs();
    let server = bound("127.0.0.1:0", Some(server_config));
    let (_silent, deaf) = silent();
    // One socket for both families.
    let deaf_too = SocketAddr::new("::1".parse().expect("an address"), deaf.port());
    let client = Endpoint::bind("[::]:0".parse().expect("an address")).unwrap_or_else(|_| bound("127.0.0.1:0", None));
    let (near, _far) = talk(&client, &[deaf, deaf_too, server.local_addr()], answered(&server, config), &server);
    assert_eq!(near.remote_addr(), server.local_addr());
}

#[test]
fn a_network_that_misbehaves_is_survived() {
    let (config, server_config) = configs();
    let server = bound("127.0.0.1:0", Some(server_config));
    let relay = Relay::start(Faults { seed: 5, lost: 100, duplicated: 100, delayed: 100, corrupted: 100 });
    relay.forward_to(server.local_addr());
    let client = bound("127.0.0.1:0", None);
    let (near, far) = talk(&client, &[relay.addr()], answered(&server, config), &server);
    assert_eq!((near.remote_addr(), far.remote_addr()), (relay.addr(), relay.outside_addr()));
    let sent = bytes(9, 300_000);
    let mut send = near.open_uni().expect("a stream");
    let mut receive = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            send.write_all(&sent).expect("room");
            send.finish().expect("an end");
        });
        let mut receive = far.accept_uni().expect("a stream");
        let mut arrived = Vec::new();
        receive.read_to_end(&mut arrived).expect("bytes");
        assert!(arrived == sent);
        writing.join().expect("no panic");
        receive
    });
    assert_eq!(receive.read(&mut [0]).expect("the end"), 0);
    assert!(relay.harmed() > 0);
}

#[test]
fn a_silent_server_ends_the_connection() {
    let (config, server_config) = configs();
    let server = bound("127.0.0.1:0", Some(server_config));
    let (_silent, deaf) = silent();
    let opening = answered(&server, ClientConfig { connect_timeout: Duration::from_millis(400), ..config });
    let near = bound("127.0.0.1:0", None).connect_opened(&[deaf], opening).expect("connects");
    assert_eq!(near.end(), None);
    assert!(near.closed().is_unanswered());
    assert!(near.end().is_some_and(|end| end.is_unanswered()));
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let (config, server_config) = configs();
    let opening = Opening::new(config.clone()).expect("a sound configuration").bytes();
    assert_eq!(bound("127.0.0.1:0", None).answer(&opening, None), Err(AcceptError::NotListening));
    let server = bound("127.0.0.1:0", Some(server_config));
    assert!(matches!(server.answer(&opening[..100], None), Err(AcceptError::Opening(_))));
    assert!(matches!(server.answer(b"nonsense", None), Err(AcceptError::Opening(_))));
    let mut other = Opening::new(config.clone()).expect("a sound configuration");
    assert!(other.on_answer(&server.answer(&opening, None).expect("an opening"), None).is_err(), "the answer to another opening");
    let nowhere = bound("127.0.0.1:0", None).connect_opened(&[], answered(&server, config));
    assert!(matches!(nowhere, Err(ConnectError::Config(_))));
}
