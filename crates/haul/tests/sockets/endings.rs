//! How connections end.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use haul::udp::Options;
use haul::{AcceptError, CloseReason, ConnectionError, StreamError};

use crate::relay::{Faults, Relay};
use crate::support::{eventually, pair, pair_with};

#[test]
fn the_reason_of_a_close_arrives() {
    let pair = pair();
    pair.near.close(42, "that is all");
    assert_eq!(pair.near.closed(), ConnectionError::ClosedHere);
    let expected = CloseReason::Peer { code: 42, reason: "that is all".into() };
    assert_eq!(pair.far.closed(), ConnectionError::Ended(expected));
    assert!(matches!(pair.far.open_bi(), Err(ConnectionError::Ended(_))));
}

#[test]
fn whoever_waits_is_woken_by_the_end() {
    let pair = pair();
    let (_send, mut receive) = pair.near.open_bi().expect("a stream");
    let blocks = pair.far.open_blocks().expect("a stream");
    blocks.send(vec![0; 100]).expect("sends");
    let received = pair.near.accept_blocks().expect("a stream");
    assert!(received.recv().expect("receives").is_some());
    let waiting = [
        thread::spawn(move || receive.read(&mut [0; 8]).is_err()),
        thread::spawn(move || received.recv().is_err()),
        thread::spawn({
            let near = pair.near.clone();
            move || near.accept_uni().is_err()
        }),
    ];
    pair.far.close(1, "enough");
    assert!(waiting.into_iter().all(|thread| thread.join().expect("no panic")));
}

#[test]
fn dropping_the_last_handle_closes() {
    let pair = pair();
    let (mut send, receive) = pair.near.open_bi().expect("a stream");
    drop(pair.near);
    send.write_all(b"the stream still holds it").expect("writes");
    let (_far_send, mut far_receive) = pair.far.accept_bi().expect("a stream");
    let mut start = [0; 3];
    far_receive.read_exact(&mut start).expect("reads");
    drop((send, receive));
    assert!(matches!(pair.far.closed(), ConnectionError::Ended(CloseReason::Peer { code: 0, .. })));
}

#[test]
fn a_peer_that_falls_silent_times_out() {
    let relay = Relay::start(Faults::default());
    let pair = relay.pair(|client, server| {
        client.transport.idle_timeout = Duration::from_millis(700);
        server.transport.keep_alive = None;
    });
    let near = &pair.near;
    let mut send = near.open_uni().expect("a stream");
    send.write_all(b"are you there?").expect("writes");
    send.finish().expect("finishes");
    send.wait_acknowledged().expect("arrives");
    drop(relay);
    assert!(matches!(near.closed(), ConnectionError::Ended(CloseReason::TimedOut(_))));
    let error = near.open_uni().expect_err("is over").to_string();
    assert!(error.contains("nothing heard"), "{error}");
}

#[test]
fn who_missed_the_end_hears_of_it_though_the_other_side_has_its_handle() {
    let relay = Relay::start(Faults::default());
    let pair = relay.pair(|client, _| client.transport.idle_timeout = Duration::from_secs(10));
    let (near, far) = (&pair.near, &pair.far);
    let mut send = near.open_uni().expect("a stream");
    send.write_all(b"still there?").expect("writes");
    send.finish().expect("finishes");
    send.wait_acknowledged().expect("arrives");
    relay.mute(true);
    far.close(1, "over");
    // For it says so for a while, to everyone who has not heard it.
    crate::support::pause(Duration::from_secs(2));
    relay.mute(false);
    let mut send = near.open_uni().expect("as far as is known here");
    send.write_all(b"and now?").expect("writes");
    let end = near.closed();
    assert!(matches!(end, ConnectionError::Ended(CloseReason::Reset | CloseReason::Peer { .. })), "{end:?}");
    assert_eq!(far.closed(), ConnectionError::ClosedHere);
}

#[test]
fn an_idle_connection_is_kept_alive() {
    let pair = pair_with("127.0.0.1:0", Options::default(), |client, server| {
        client.transport.idle_timeout = Duration::from_millis(500);
        server.transport.idle_timeout = Duration::from_millis(500);
        client.transport.keep_alive = Some(Duration::from_millis(100));
    });
    crate::support::pause(Duration::from_millis(1500));
    let mut send = pair.far.open_uni().expect("still there");
    send.write_all(b"hello").expect("writes");
    send.finish().expect("finishes");
    send.wait_acknowledged().expect("arrives");
    let mut heard = String::new();
    pair.near.accept_uni().expect("a stream").read_to_string(&mut heard).expect("reads");
    assert_eq!(heard, "hello");
}

#[test]
fn closing_an_endpoint_closes_its_connections_and_frees_those_who_accept() {
    let pair = pair();
    let acceptor = thread::spawn({
        let server = pair.server.clone();
        move || server.accept().map(drop)
    });
    pair.server.close();
    assert_eq!(acceptor.join().expect("no panic"), Err(AcceptError::Closed));
    assert!(matches!(pair.near.closed(), ConnectionError::Ended(CloseReason::Peer { .. })));
    assert_eq!(pair.far.closed(), ConnectionError::ClosedHere);
}

#[test]
fn unacknowledged_data_is_reported_as_such() {
    let relay = Relay::start(Faults::default());
    let pair = relay.pair(|client, _| client.transport.idle_timeout = Duration::from_millis(600));
    drop(relay);
    let blocks = pair.near.open_blocks().expect("a stream");
    blocks.send(vec![1; 1000]).expect("sends");
    assert!(matches!(blocks.finish(), Err(StreamError::Connection(ConnectionError::Ended(CloseReason::TimedOut(_))))));
}

#[test]
fn a_port_is_free_again_when_all_is_dropped() {
    let addr = {
        let pair = pair();
        pair.near.close(0, "");
        pair.server.local_addr()
    };
    eventually("the server's port is free", || std::net::UdpSocket::bind(addr).is_ok());
}
