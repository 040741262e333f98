//! Through a network that loses, repeats, reorders, corrupts, and changes addresses; and beside senders of rubbish.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::blocks::transfer;
use crate::relay::{Faults, Relay};
use crate::support::{Pair, Random, eventually, pair};

#[test]
fn everything_arrives_through_every_fault() {
    for seed in 1..=3 {
        let relay = Relay::start(Faults { seed, lost: 30, duplicated: 20, delayed: 50, corrupted: 10 });
        let Pair { server: _server, near, far, .. } = relay.pair(|_, _| ());
        transfer(&near, &far, 8);
        transfer(&far, &near, 4);
        assert!(relay.harmed() > 100, "seed {seed}: {} datagrams harmed", relay.harmed());
        assert!(near.stats().retransmitted.0 > 0, "seed {seed}");
    }
}

#[test]
fn a_network_that_only_loses_a_fifth() {
    let relay = Relay::start(Faults { seed: 7, lost: 200, ..Faults::default() });
    let Pair { server: _server, near, far, .. } = relay.pair(|_, _| ());
    transfer(&near, &far, 5);
    let loss = near.stats().loss.as_f64();
    assert!((0.1..0.5).contains(&loss), "{loss}");
}

#[test]
fn a_changed_address_is_followed() {
    let relay = Relay::start(Faults::default());
    let Pair { server: _server, near, far, .. } = relay.pair(|_, _| ());
    transfer(&near, &far, 3);
    let before = far.remote_addr();
    assert_eq!(before, relay.outside_addr());
    let moving = thread::spawn({
        let (near, far) = (near.clone(), far.clone());
        move || transfer(&near, &far, 20)
    });
    relay.rebind();
    moving.join().expect("no panic");
    eventually("the server follows", || far.remote_addr() == relay.outside_addr());
    transfer(&far, &near, 3);
}

#[test]
fn rubbish_does_not_disturb() {
    let pair = pair();
    let stop = Arc::new(AtomicBool::new(false));
    let targets = [pair.server.local_addr(), pair.client.local_addr()];
    let throwing = thread::spawn({
        let stop = stop.clone();
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
            let mut random = Random(99);
            let mut thrown = 0u64;
            while !stop.load(Ordering::Relaxed) || thrown < 5000 {
                let len = match random.below(4) {
                    0 => random.below(40),
                    1 => 1200,
                    _ => random.below(1472),
                };
                let mut datagram: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                if let Some(first) = datagram.first_mut() {
                    *first = match random.below(4) {
                        0 => *first & 0x3f,
                        1 => 0x80 | *first,
                        2 => 0,
                        _ => *first,
                    };
                }
                let _ = socket.send_to(&datagram, targets[random.below(2)]);
                thrown += 1;
            }
            thrown
        }
    });
    transfer(&pair.near, &pair.far, 20);
    stop.store(true, Ordering::Relaxed);
    assert!(throwing.join().expect("no panic") >= 5000);
    transfer(&pair.far, &pair.near, 2);
    assert!(pair.server.accept_timeout(std::time::Duration::from_millis(20)).expect("listens").is_none());
}
