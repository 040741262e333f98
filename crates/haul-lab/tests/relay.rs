//! The relay between real sockets on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use haul_lab::{LinkOptions, Relay, now};
use haul_units::{BitRate, Ratio};

#[path = "../examples/relay.rs"]
mod example;

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

/// A server that sends everything back, on a thread that ends when nothing comes for a second.
fn echo() -> SocketAddr {
    let server = socket();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut room = [0; 2000];
        while let Ok((len, from)) = server.recv_from(&mut room) {
            server.send_to(&room[..len], from).unwrap();
        }
    });
    address
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    socket
}

fn relay(to: SocketAddr, link: &LinkOptions) -> Relay {
    Relay::start("127.0.0.1:0".parse().unwrap(), to, link).unwrap()
}

#[test]
fn datagrams_take_their_time_and_come_back_to_whom_they_belong() {
    let link = LinkOptions { rate: BitRate::gbps(1), rtt: Duration::from_millis(30), ..LinkOptions::default() };
    let relay = relay(echo(), &link);
    let clients = [socket(), socket()];
    for (n, client) in clients.iter().enumerate() {
        let start = now();
        client.send_to(&[n as u8; 1200], relay.local_addr()).unwrap();
        let mut room = [0; 2000];
        let (len, from) = client.recv_from(&mut room).unwrap();
        let took = now().since(start);
        assert_eq!((&room[..len], from), (&[n as u8; 1200][..], relay.local_addr()));
        assert!(took >= Duration::from_millis(30), "{took:?}");
    }
}

#[test]
fn some_are_lost_and_some_come_twice() {
    let (loss, duplicate) = (Ratio::percent(10.0), Ratio::percent(10.0));
    let link = LinkOptions { rate: BitRate::gbps(1), rtt: Duration::from_millis(2), loss, duplicate, ..LinkOptions::default() };
    let relay = relay(echo(), &link);
    let client = socket();
    let (mut answers, mut different) = (0u32, HashSet::new());
    for n in 0..2000u32 {
        client.send_to(&n.to_be_bytes(), relay.local_addr()).unwrap();
        if n % 50 == 49 {
            // What is under way has time to come, so that no socket's buffer has to hold more.
            client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let mut room = [0; 2000];
            while let Ok(len) = client.recv(&mut room) {
                answers += 1;
                different.insert(room[..len].to_vec());
            }
        }
    }
    let [there, back] = relay.stats();
    assert_eq!(there.link.sent_pkts, 2000);
    assert_eq!(u64::from(answers), back.link.delivered_pkts);
    assert!((150..250).contains(&there.link.lost_pkts), "{there:?}");
    assert!((140..250).contains(&there.link.duplicated_pkts), "{there:?}");
    assert!(different.len() < 1800 && answers as usize > different.len(), "{} of {answers}", different.len());
}
