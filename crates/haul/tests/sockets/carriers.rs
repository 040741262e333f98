//! Connections that go by byte streams in the place of UDP, from the beginning or from the middle on.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use haul::carrier::{Carrier, Lane};
use haul::{Connection, Endpoint};

use crate::relay::{Faults, Relay};
use crate::support::{PATIENCE, Pair, accept, bytes, configs, pair};

/// A byte stream between two carriers; gives back a handle that cuts it.
fn join(near: &Carrier, far: &Carrier) -> UnixStream {
    let (one, other) = UnixStream::pair().expect("a pair");
    let cut = one.try_clone().expect("a handle");
    near.add(lane(one)).expect("taken");
    far.add(lane(other)).expect("taken");
    cut
}

fn lane(stream: UnixStream) -> Lane {
    let (read, write) = (stream.try_clone().expect("a handle"), stream.try_clone().expect("a handle"));
    Lane { read: Box::new(read), write: Box::new(write), finish: Box::new(move || drop(stream.shutdown(Shutdown::Write))) }
}

/// Sends so many blocks from one end, and half of them again the other way, with an ordered stream beside them.
fn exchange(near: &Connection, far: &Connection, blocks: usize) {
    let (sending, receiving) = (near.clone(), far.clone());
    let text = bytes(7, 3_000_000);
    thread::scope(|scope| {
        for (from, to, count) in [(near, far, blocks), (far, near, blocks / 2)] {
            scope.spawn(move || {
                let sender = from.open_blocks().expect("opens");
                for index in 0..count {
                    sender.send(bytes(index as u64, 400_000)).expect("sent");
                }
                sender.finish().expect("arrived");
            });
            scope.spawn(move || {
                let receiver = to.accept_blocks().expect("opened");
                let mut taken = 0;
                while let Some(block) = receiver.recv().expect("a block") {
                    assert!(*block == bytes(block.index(), 400_000)[..], "block {} is another one", block.index());
                    taken += 1;
                }
                assert_eq!(taken, count);
            });
        }
        scope.spawn(|| {
            let (mut send, _) = sending.open_bi().expect("opens");
            send.write_all(&text).expect("written");
            send.finish().expect("finished");
            send.wait_acknowledged().expect("acknowledged");
        });
        scope.spawn(|| {
            let (_, mut receive) = receiving.accept_bi().expect("opened");
            let mut got = Vec::new();
            receive.read_to_end(&mut got).expect("read");
            assert!(got == text, "{} bytes of {}", got.len(), text.len());
        });
    });
}

#[test]
fn a_connection_lives_on_byte_streams_alone() {
    let (client_config, server_config) = configs();
    let server = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), server_config).expect("binds");
    let client = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    let (at, near_carrier) = client.carry(Some("192.0.2.7:22".parse().expect("an address")));
    let (_, far_carrier) = server.carry(None);
    for _ in 0..3 {
        join(&near_carrier, &far_carrier);
    }
    let near = client.connect(at, client_config).expect("connects");
    let far = accept(&server);
    assert!(near.is_carried() && far.is_carried());
    assert_eq!(near.remote_addr(), "192.0.2.7:22".parse().expect("an address"), "where the peer is");
    exchange(&near, &far, 40);
    near.close(9, "enough");
    assert!(far.closed().to_string().contains("enough"));
    assert_eq!(near_carrier.ask(PATIENCE), Some(false), "nothing came over UDP");
}

#[test]
fn what_began_over_udp_goes_on_over_byte_streams_when_nothing_comes_back() {
    let relay = Relay::start(Faults::default());
    let Pair { server, client, near, far } = relay.pair(|_, _| ());
    assert!(!near.is_carried());
    let (at, near_carrier) = client.carry(None);
    let (_, far_carrier) = server.carry(None);
    join(&near_carrier, &far_carrier);
    assert_eq!(near_carrier.ask(PATIENCE), Some(true), "UDP has come there");
    let cut = thread::spawn(move || {
        thread::park_timeout(Duration::from_millis(100));
        // No datagram passes from now on.
        drop(relay);
    });
    let before = near_carrier.moved_bytes();
    thread::scope(|scope| {
        scope.spawn(|| exchange(&near, &far, 200));
        cut.join().expect("no panic");
        near.redirect(at);
    });
    assert!(near.is_carried() && far.is_carried(), "the server has followed");
    assert!(near_carrier.moved_bytes().0 > before.0 && near.end().is_none());
}

/// What a lane had is lost with it; the others go on.
#[test]
fn a_lane_that_dies_and_one_that_nobody_reads_cost_nothing_but_time() {
    let Pair { server, client, near, far } = pair();
    let ((at, near_carrier), (_, far_carrier)) = (client.carry(None), server.carry(None));
    let cut = join(&near_carrier, &far_carrier);
    join(&near_carrier, &far_carrier);
    let (unread, _held) = UnixStream::pair().expect("a pair");
    near_carrier.add(lane(unread)).expect("taken");
    near.redirect(at);
    thread::scope(|scope| {
        scope.spawn(|| exchange(&near, &far, 60));
        scope.spawn(|| {
            thread::park_timeout(Duration::from_millis(100));
            cut.shutdown(Shutdown::Both).expect("cut");
        });
    });
    assert!(near.end().is_none() && far.end().is_none());
}

#[test]
fn whoever_talks_nonsense_on_a_lane_disturbs_nobody() {
    let Pair { server, near, far, .. } = pair();
    let (_, carrier) = server.carry(None);
    let (mut stranger, end) = UnixStream::pair().expect("a pair");
    carrier.add(lane(end)).expect("taken");
    // Frames that are some, with datagrams that are none, and one that names the connection.
    for seed in 0..200 {
        let train = bytes(seed, 1200);
        stranger.write_all(&[4, 176, 4, 176]).expect("written");
        stranger.write_all(&train).expect("written");
    }
    stranger.write_all(&[0xff; 4]).expect("written");
    let mut rest = Vec::new();
    let _ = stranger.read_to_end(&mut rest);
    assert!(rest.len() < 200 * 1200, "answers are not longer than what they answer");
    exchange(&near, &far, 4);
    assert!(!far.is_carried());
}

/// Two datagrams of a byte from the server's port, to where the carrier comes from and to nobody else, however often: and a client calls nobody.
#[test]
fn who_wants_to_be_called_back_is_called_at_its_own_address() {
    let Pair { server, client, .. } = pair();
    let bound = |ip: [u8; 4]| {
        let socket = UdpSocket::bind((Ipv4Addr::from(ip), 0)).expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        socket
    };
    let caller = bound([127, 0, 0, 9]);
    let port = caller.local_addr().expect("its address").port();
    let others = UdpSocket::bind(("127.0.0.1", port)).expect("the same port elsewhere");
    others.set_nonblocking(true).expect("it does not wait");
    let ask = |endpoint: &Endpoint, peer: Option<SocketAddr>, times: usize| {
        let ((_, near), (_, far)) = (client.carry(None), endpoint.carry(peer));
        join(&near, &far);
        for _ in 0..times {
            near.call_back(port);
            assert!(near.ask(PATIENCE).is_some());
        }
    };
    let at = SocketAddr::from(([127, 0, 0, 9], 22));
    let heard = || {
        let mut word = [0; 64];
        caller.recv_from(&mut word).map(|(length, from)| (length, from.port())).ok()
    };
    ask(&server, Some(at), 1);
    for _ in 0..2 {
        assert_eq!(heard(), Some((1, server.local_addr().port())));
    }
    ask(&server, None, 1);
    ask(&client, Some(at), 1);
    assert_eq!(heard(), None);
    ask(&server, Some(at), 300);
    let calls = std::iter::from_fn(heard).count();
    assert!((2..=200).contains(&calls), "{calls} datagrams for 300 wishes");
    assert!(others.recv(&mut [0; 64]).is_err(), "nobody else gets anything");
}
