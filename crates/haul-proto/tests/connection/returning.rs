//! Clients that begin without the round trip of a cookie: those that return (RFC 9000 8.1.3), and those that were invited.

use std::net::SocketAddr;
use std::time::Duration;

use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    Admission, ClientConfig, Connection, ConnectionId, Endpoint, EndpointConfig, Event, Handled, Origin, ServerConfig,
    TRAIN_BYTES,
};
use haul_units::Time;

const START: Time = Time::ZERO;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn server(lets_return: bool) -> Endpoint {
    let admission = Admission { lets_return, ..Admission::default() };
    let config = ServerConfig { admission, ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone) };
    Endpoint::new(EndpointConfig { seed: [7; 32], server: Some(config) }).unwrap()
}

fn client() -> Endpoint {
    Endpoint::new(EndpointConfig { seed: [8; 32], server: None }).unwrap()
}

/// What came of a connection that was made, and is over at both ends.
struct Meeting {
    cookies: usize,
    /// What the client sent first.
    hello: Vec<u8>,
}

fn meet(client: &mut Endpoint, server: &mut Endpoint, from: SocketAddr) -> Meeting {
    let to = address("10.0.0.2:2000");
    let (id, mut near) = client.connect(START, to, ClientConfig::new(PeerTrust::Anyone)).unwrap();
    let mut far: Option<(ConnectionId, Connection)> = None;
    let mut meeting = Meeting { cookies: 0, hello: Vec::new() };
    let (mut train, mut is_connected) = (vec![0; TRAIN_BYTES], false);
    for _ in 0..20 {
        while let Some(transmit) = near.poll_transmit(START, &mut train) {
            for datagram in train[..transmit.len].chunks_mut(transmit.segment) {
                if meeting.hello.is_empty() {
                    meeting.hello = datagram.to_vec();
                }
                let len = datagram.len();
                match server.handle(START, from, datagram) {
                    Handled::Respond(mut answer) => {
                        meeting.cookies += 1;
                        let len = answer.len();
                        near.handle_train(START, Origin::just_now(START, to), &mut answer, len);
                    }
                    Handled::New(id, connection) => far = Some((id, *connection)),
                    Handled::Connection(_) => {
                        let (_, far) = far.as_mut().expect("a connection of this meeting");
                        far.handle_train(START, Origin::just_now(START, from), datagram, len);
                    }
                    Handled::Ignore => {}
                }
            }
        }
        while let Some(transmit) = far.as_mut().and_then(|(_, far)| far.poll_transmit(START, &mut train)) {
            near.handle_train(START, Origin::just_now(START, to), &mut train[..transmit.len], transmit.segment);
        }
        while let Some(event) = near.poll_event() {
            if event == Event::Connected {
                is_connected = true;
                client.on_connected(id, near.met());
            }
        }
    }
    assert!(is_connected);
    client.forget(id);
    server.forget(far.expect("a connection").0);
    meeting
}

#[test]
fn who_returns_to_its_server_is_asked_for_no_cookie() {
    let (mut client, mut server, home) = (client(), server(true), address("192.0.2.1:4000"));
    assert!(meet(&mut client, &mut server, home).cookies > 0, "nothing is known of it");
    assert_eq!(meet(&mut client, &mut server, home).cookies, 0);
    assert_eq!(
        meet(&mut client, &mut server, address("192.0.2.1:4001")).cookies,
        0,
        "from another port, with the token of the second"
    );
    assert!(meet(&mut client, &mut server, address("192.0.2.2:4000")).cookies > 0, "from another host");
    assert_eq!(meet(&mut client, &mut server, address("192.0.2.2:4000")).cookies, 0);
}

#[test]
fn a_server_that_does_not_say_so_lets_nobody_return() {
    let (mut client, mut server, home) = (client(), server(false), address("192.0.2.1:4000"));
    for _ in 0..2 {
        assert!(meet(&mut client, &mut server, home).cookies > 0);
    }
}

/// An observer has seen the token pass, and sends the hello again: for the server's flight to go to the client, or to have the server work.
#[test]
fn a_hello_that_is_repeated_begins_nothing() {
    let (mut client, mut server, home) = (client(), server(true), address("192.0.2.1:4000"));
    meet(&mut client, &mut server, home);
    let meeting = meet(&mut client, &mut server, home);
    assert_eq!(meeting.cookies, 0);
    let mut later = meeting.hello;
    let found = server.handle(START, home, &mut later);
    assert!(matches!(found, Handled::Respond(ref answer) if answer.len() < later.len()), "{found:?}");
}

/// The first datagram of a client with this admission token, whose number for the attempt is another one each time.
fn invited_hello(client: &mut Endpoint, token: &[u8]) -> Vec<u8> {
    let config = ClientConfig { admission: Some(token.to_vec()), ..ClientConfig::new(PeerTrust::Anyone) };
    let (_, mut near) = client.connect(START, address("10.0.0.2:2000"), config).unwrap();
    let mut train = vec![0; TRAIN_BYTES];
    let transmit = near.poll_transmit(START, &mut train).expect("a hello");
    train[..transmit.segment.min(transmit.len)].to_vec()
}

/// An observer has seen the token pass, and says hellos of its own with it: from forged addresses, to have the server keep something of each and send its flight there.
#[test]
fn an_admission_token_begins_one_connection_and_that_is_a_stranger_s() {
    let (mut client, mut server, home) = (client(), server(false), address("192.0.2.1:4000"));
    let [token, other] = [(); 2].map(|()| server.admission_token(START));
    let hello = invited_hello(&mut client, &token);
    let begun = server.handle(START, home, &mut hello.clone());
    let Handled::New(id, _connection) = begun else { panic!("{begun:?}") };
    assert_eq!(server.strangers(), 1);
    let again = server.handle(START, home, &mut hello.clone());
    assert!(matches!(again, Handled::Connection(known) if known == id), "the client repeats itself: {again:?}");
    let forged = invited_hello(&mut client, &token);
    for (from, hello) in [("198.51.100.1:4000", &hello), ("198.51.100.1:4000", &forged), ("192.0.2.1:4000", &forged)] {
        let found = server.handle(START, address(from), &mut hello.clone());
        assert!(matches!(found, Handled::Respond(ref answer) if answer.len() < hello.len()), "{from}: {found:?}");
    }
    server.forget(id);
    let late = server.handle(START, home, &mut hello.clone());
    assert!(matches!(late, Handled::Respond(_)), "after its end too: {late:?}");
    let other = invited_hello(&mut client, &other);
    assert!(matches!(server.handle(START, home, &mut other.clone()), Handled::New(..)));
}

#[test]
fn after_a_day_a_token_is_as_none() {
    for (after, begins) in [(Duration::from_secs(86_399), true), (Duration::from_secs(86_401), false)] {
        let (mut client, mut server, home) = (client(), server(true), address("192.0.2.1:4000"));
        meet(&mut client, &mut server, home);
        let now = START + after;
        let (_, mut near) = client.connect(now, address("10.0.0.2:2000"), ClientConfig::new(PeerTrust::Anyone)).unwrap();
        let mut train = vec![0; TRAIN_BYTES];
        let transmit = near.poll_transmit(now, &mut train).expect("a hello");
        let found = server.handle(now, home, &mut train[..transmit.segment.min(transmit.len)]);
        assert_eq!(matches!(found, Handled::New(..)), begins, "{found:?}");
    }
}
