//! Trains over loopback: these tests cross real sockets.

use std::net::{IpAddr, SocketAddr};

use super::*;

fn pair(addr: &str, options: Options) -> (Socket, Socket) {
    let bind = || Socket::bind(addr.parse().expect("an address"), options).expect("loopback");
    (bind(), bind())
}

/// Sends `count` datagrams of `segment_bytes` and a last one of `tail_bytes`; returns the datagrams received, and in how many trains.
fn exchange(from: &Socket, to: &Socket, count: usize, segment_bytes: usize, tail_bytes: usize) -> (Vec<Vec<u8>>, usize) {
    let train: Vec<u8> = (0..count * segment_bytes + tail_bytes).map(|i| (i / segment_bytes) as u8).collect();
    let target = SocketAddr::new(
        if to.local_addr().ip().is_unspecified() { "127.0.0.1".parse().expect("an address") } else { to.local_addr().ip() },
        to.local_addr().port(),
    );
    let outgoing = Outgoing { to: target, from: None, ecn: 2, train: &train, segment_bytes };
    assert!(matches!(from.send(&outgoing), Ok(Sent::Taken)));
    let expected = count + usize::from(tail_bytes > 0);
    let mut datagrams = Vec::new();
    let mut trains = 0;
    let mut batch = Batch::new(4);
    while datagrams.len() < expected {
        to.receive(&mut batch).expect("receives");
        for received in batch.trains() {
            assert_eq!(received.from.port(), from.local_addr().port());
            assert!(received.from.is_ipv4() || !target.is_ipv4(), "IPv4 peers show as IPv4");
            #[cfg(target_os = "linux")]
            assert_eq!((received.ecn, received.to), (2, Some(target.ip())));
            trains += 1;
            datagrams.extend(received.train.chunks(received.segment_bytes).map(<[u8]>::to_vec));
        }
    }
    let sent: Vec<Vec<u8>> = train.chunks(segment_bytes).map(<[u8]>::to_vec).collect();
    assert_eq!(datagrams, sent);
    (datagrams, trains)
}

#[test]
fn a_full_train_arrives_whole() {
    let (a, b) = pair("127.0.0.1:0", Options::default());
    let (_, trains) = exchange(&a, &b, 44, 1472, 0);
    assert!(!a.segment_offload() || trains == 1, "{trains} trains");
    exchange(&a, &b, 3, 1200, 77);
    exchange(&a, &b, 1, 9, 0);
}

/// What the socket says of a train that was there for 20 ms before anybody took it.
#[cfg(target_os = "linux")]
fn waited(addr: &str) -> std::time::Duration {
    let (a, b) = pair(addr, Options::default());
    let train = [1u8; 300];
    let outgoing = Outgoing { to: b.local_addr(), from: None, ecn: 0, train: &train, segment_bytes: 100 };
    assert!(matches!(a.send(&outgoing), Ok(Sent::Taken)));
    std::thread::park_timeout(std::time::Duration::from_millis(20));
    let mut batch = Batch::new(4);
    b.receive(&mut batch).expect("receives");
    batch.trains().next().expect("a train").waited
}

#[cfg(target_os = "linux")]
#[test]
fn a_train_tells_how_long_it_has_waited() {
    for addr in ["127.0.0.1:0", "[::1]:0"] {
        // The kernel begins to note times a moment after the first socket has asked for them.
        let longest = (0..100).map(|_| waited(addr)).find(|waited| waited.as_millis() >= 19);
        assert!(longest.is_some(), "{addr}");
    }
}

#[test]
fn ipv6_works_alike() {
    let (a, b) = pair("[::1]:0", Options::default());
    exchange(&a, &b, 40, 1452, 100);
}

#[test]
fn a_dual_socket_serves_ipv4() {
    let a = Socket::bind("127.0.0.1:0".parse().expect("an address"), Options::default()).expect("loopback");
    let b = Socket::bind("[::]:0".parse().expect("an address"), Options::default()).expect("dual");
    exchange(&a, &b, 10, 1200, 0);
    // And back, from the address that was asked for.
    let train = [7u8; 100];
    let from = b.answer_from(Some("127.0.0.1".parse().expect("an address")));
    assert!(from.is_some());
    let outgoing = Outgoing { to: a.local_addr(), from, ecn: 1, train: &train, segment_bytes: 50 };
    assert!(matches!(b.send(&outgoing), Ok(Sent::Taken)));
    let mut batch = Batch::new(1);
    a.receive(&mut batch).expect("receives");
    let received = batch.trains().next().expect("one");
    assert_eq!(received.from.ip(), "127.0.0.1".parse::<IpAddr>().expect("an address"));
}

#[test]
fn without_offload_the_same_datagrams_arrive() {
    let (a, b) = pair("127.0.0.1:0", Options { segment_offload: false, receive_offload: false });
    let (datagrams, trains) = exchange(&a, &b, 130, 400, 13);
    assert_eq!(datagrams.len(), trains, "one datagram each");
}

#[cfg(target_os = "linux")]
#[test]
fn beyond_the_mtu_is_too_big_and_keeps_the_offload() {
    let (a, b) = pair("127.0.0.1:0", Options::default());
    let train = vec![0u8; 66_000];
    let single = Outgoing { to: b.local_addr(), from: None, ecn: 0, train: &train, segment_bytes: 66_000 };
    assert!(matches!(a.send(&single), Ok(Sent::TooBig)));
    assert!(a.segment_offload());
}

#[test]
fn nobody_there_is_no_error_of_the_socket() {
    let (a, b) = pair("127.0.0.1:0", Options::default());
    let gone = b.local_addr();
    drop(b);
    for _ in 0..3 {
        let outgoing = Outgoing { to: gone, from: None, ecn: 0, train: &[1, 2, 3], segment_bytes: 3 };
        assert!(matches!(a.send(&outgoing), Ok(Sent::Taken | Sent::Lost(_))));
    }
}

#[test]
fn stop_ends_a_blocked_receive() {
    let (a, _b) = pair("127.0.0.1:0", Options::default());
    let a = std::sync::Arc::new(a);
    let receiver = std::thread::spawn({
        let a = a.clone();
        move || a.receive(&mut Batch::new(2)).expect("no error")
    });
    a.stop();
    assert_eq!(receiver.join().expect("ends"), 0);
    assert_eq!(a.receive(&mut Batch::new(2)).expect("no error"), 0);
}

#[test]
fn a_connected_socket_hears_its_peer_alone() {
    let options = Options::default();
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let (peer, stranger) = pair(loopback, options);
        let socket = Socket::connect(peer.local_addr(), options).expect("connects");
        exchange(&socket, &peer, 40, 1200, 9);
        // From the peer, and back to it, without being asked for a way.
        exchange(&peer, &socket, 40, 1200, 9);
        let to = socket.local_addr();
        let train = [1; 9];
        for (from, text) in [(&stranger, 3), (&peer, 5)] {
            let outgoing = Outgoing { to, from: None, ecn: 0, train: &train, segment_bytes: text };
            assert!(matches!(from.send(&outgoing), Ok(Sent::Taken)));
        }
        let mut batch = Batch::new(4);
        socket.receive(&mut batch).expect("receives");
        assert!(batch.trains().all(|received| received.from == peer.local_addr()), "{loopback}");
    }
}

#[test]
fn trying_to_receive_takes_one_train_or_none() {
    let (a, b) = pair("127.0.0.1:0", Options::default());
    let mut room = vec![0; SLOT_BYTES];
    assert!(b.try_receive(&mut room).expect("no error").is_none());
    let train: Vec<u8> = (0..=255).cycle().take(3 * 1000 + 1).collect();
    assert!(matches!(
        a.send(&Outgoing { to: b.local_addr(), from: None, ecn: 1, train: &train, segment_bytes: 1000 }),
        Ok(Sent::Taken)
    ));
    let mut arrived = Vec::new();
    while arrived.len() < train.len() {
        // Loopback delivers before the call that sends returns.
        let received = b.try_receive(&mut room).expect("no error").expect("a train");
        assert_eq!((received.from, received.train.len().min(1000)), (a.local_addr(), received.segment_bytes));
        arrived.extend_from_slice(received.train);
    }
    assert_eq!(arrived, train);
    assert!(b.try_receive(&mut room).expect("no error").is_none());
}

#[test]
fn an_empty_datagram_is_passed_on_and_what_does_not_fit_is_gone() {
    let (a, b) = pair("127.0.0.1:0", Options::default());
    let send = |train: &[u8]| {
        let outgoing = Outgoing { to: b.local_addr(), from: None, ecn: 0, train, segment_bytes: train.len() };
        assert!(matches!(a.send(&outgoing), Ok(Sent::Taken)), "{} bytes", train.len());
    };
    send(&[]);
    send(&[1; 30]);
    send(&[2; 20]);
    let mut room = [0; 20];
    let received = b.try_receive(&mut room).expect("no error").expect("a datagram");
    assert_eq!((received.train.len(), received.segment_bytes), (0, 1));
    assert!(b.try_receive(&mut room).expect("no error").is_none(), "truncated");
    assert_eq!(b.try_receive(&mut room).expect("no error").expect("a datagram").train, [2; 20]);
}

#[cfg(target_os = "linux")]
#[test]
fn more_datagrams_than_a_train_may_have_arrive_all_the_same() {
    let (a, b) = pair("127.0.0.1:0", Options::default());
    let (datagrams, _) = exchange(&a, &b, MAX_TRAIN_SEGMENTS + 6, 100, 1);
    assert_eq!((datagrams.len(), a.segment_offload()), (71, true));
}
