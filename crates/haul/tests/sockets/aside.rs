//! Datagrams beside the connections.

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use haul::Endpoint;

use crate::support::{PATIENCE, bytes, pair};

const MARK: [u8; 8] = *b"mark of ";

fn marked(len: usize) -> Vec<u8> {
    let mut datagram = bytes(3, len);
    datagram[..8].copy_from_slice(&MARK);
    datagram
}

#[test]
fn what_has_the_mark_is_for_who_wants_it_and_leaves_from_the_same_port() {
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    let other = UdpSocket::bind("127.0.0.1:0").expect("binds");
    other.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let (port, at) = (endpoint.local_addr(), other.local_addr().expect("an address"));
    let aside = endpoint.aside(MARK);
    assert!(aside.send(at, b"where am I"));
    let mut answer = [0; 100];
    assert_eq!(other.recv_from(&mut answer).expect("a datagram"), (10, port));
    other.send_to(b"another", port).expect("sends");
    other.send_to(&marked(2000), port).expect("sends");
    other.send_to(&marked(64), port).expect("sends");
    assert_eq!(aside.receive(PATIENCE), Some((at, marked(64))), "no other, and none that is too long");
    let later = endpoint.aside(*b"another ");
    other.send_to(&marked(64), port).expect("sends");
    assert_eq!(aside.receive(PATIENCE), None, "somebody else wants another mark");
    drop(endpoint);
    assert!((0..1000).any(|_| {
        thread::park_timeout(Duration::from_millis(5));
        !later.send(at, b"x")
    }));
}

/// The kernel may make a train of a connection's packets and of what comes behind them from the same port.
#[test]
fn a_connection_goes_on_beside_it() {
    let pair = pair();
    let there = pair.server.local_addr();
    let (here, wanted) = (pair.client.aside(MARK), pair.server.aside(MARK));
    let blocks = pair.near.open_blocks().expect("a stream");
    let sending = thread::spawn(move || {
        for _ in 0..200 {
            blocks.send(bytes(7, 300_000)).expect("sends");
        }
        blocks.finish().expect("finishes");
    });
    let saying = thread::spawn(move || {
        for _ in 0..50 {
            assert!(here.send(there, &marked(64)));
            thread::park_timeout(Duration::from_millis(2));
        }
    });
    let received = pair.far.accept_blocks().expect("a stream");
    let mut count = 0;
    while let Some(block) = received.recv().expect("receives") {
        assert_eq!(&block[..], &bytes(7, 300_000)[..]);
        count += 1;
    }
    sending.join().expect("no panic");
    saying.join().expect("no panic");
    assert_eq!(count, 200);
    let heard = std::iter::from_fn(|| wanted.receive(Duration::from_millis(200))).count();
    assert!((45..=50).contains(&heard), "{heard}");
}
