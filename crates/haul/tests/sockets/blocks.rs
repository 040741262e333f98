//! Streams of blocks.

use std::collections::{BTreeMap, VecDeque};
use std::thread;
use std::time::Duration;

use haul::udp::Options;
use haul::{BlockReceiver, Bytes, Endpoint, MAX_BLOCK, StreamError};

use crate::support::{Random, accept, bytes, configs, eventually, pair, pair_with};

fn drain(receiver: &BlockReceiver) -> BTreeMap<u64, Vec<u8>> {
    let mut blocks = BTreeMap::new();
    while let Some(block) = receiver.recv().expect("receives") {
        assert!(blocks.insert(block.index(), block.to_vec()).is_none(), "block {} came twice", block.index());
    }
    blocks
}

#[test]
fn blocks_of_all_sizes_arrive_as_they_were() {
    let pair = pair();
    let mut random = Random(11);
    let mut lens: Vec<usize> = (0..60).map(|_| 1 + random.below(MAX_BLOCK)).collect();
    lens.extend([1, 2, 1000, 1428, 1429, MAX_BLOCK - 1, MAX_BLOCK]);
    let sender = pair.near.open_blocks().expect("a stream");
    let sending = thread::spawn({
        let lens = lens.clone();
        move || {
            for (i, len) in lens.into_iter().enumerate() {
                let mut block = sender.buffer();
                assert!(block.is_empty());
                block.extend_from_slice(&bytes(i as u64, len));
                assert_eq!(sender.send(block).expect("sends"), i as u64);
            }
            sender.finish().expect("all arrive");
        }
    });
    let blocks = drain(&pair.far.accept_blocks().expect("a stream"));
    sending.join().expect("no panic");
    assert_eq!(blocks.len(), lens.len());
    for (i, len) in lens.into_iter().enumerate() {
        assert!(blocks[&(i as u64)] == bytes(i as u64, len), "block {i}");
    }
}

#[test]
fn several_threads_send_and_receive_on_one_stream() {
    let pair = pair();
    let sender = pair.near.open_blocks().expect("a stream");
    let senders: Vec<_> = (0..3u8)
        .map(|who| {
            let sender = sender.clone();
            thread::spawn(move || {
                for _ in 0..50 {
                    sender.send(vec![who; 50_000]).expect("sends");
                }
            })
        })
        .collect();
    let receiver = pair.far.accept_blocks().expect("a stream");
    let receivers: Vec<_> = (0..2)
        .map(|_| {
            let receiver = receiver.clone();
            thread::spawn(move || drain(&receiver).len())
        })
        .collect();
    for thread in senders {
        thread.join().expect("no panic");
    }
    sender.finish().expect("all arrive");
    let received: usize = receivers.into_iter().map(|thread| thread.join().expect("no panic")).sum();
    assert_eq!(received, 150);
}

#[test]
fn wrong_sizes_are_refused() {
    let pair = pair();
    let sender = pair.near.open_blocks().expect("a stream");
    for len in [0, MAX_BLOCK + 1] {
        assert_eq!(sender.send(vec![0; len]), Err(StreamError::BlockSize { len }));
    }
    assert_eq!(sender.send(vec![7]), Ok(0));
    sender.finish().expect("arrives");
    assert_eq!(drain(&pair.far.accept_blocks().expect("a stream")), BTreeMap::from([(0, vec![7])]));
    assert!(sender.send(vec![8]).is_err(), "finished");
}

#[test]
fn blocks_that_are_held_bound_the_sender() {
    const MEMORY: u64 = 8 << 20;
    const BLOCK: usize = 500_000;
    let pair = pair_with("127.0.0.1:0", Options::default(), |client, server| {
        client.transport.memory = Bytes(MEMORY);
        server.transport.memory = Bytes(MEMORY);
    });
    let sender = pair.near.open_blocks().expect("a stream");
    let (count, counted) = std::sync::mpsc::channel();
    let sending = thread::spawn(move || {
        for i in 0..100 {
            sender.send(vec![i; BLOCK]).expect("sends");
            count.send(()).expect("counted");
        }
        sender.finish().expect("all arrive");
    });
    let receiver = pair.far.accept_blocks().expect("a stream");
    let mut sent = 0;
    while counted.recv_timeout(Duration::from_millis(300)).is_ok() {
        sent += 1;
    }
    assert!(sent * BLOCK as u64 <= 2 * MEMORY + 2 * BLOCK as u64, "{sent} blocks were taken");
    // Some are held all the time; those given back make room for the rest.
    let mut held = VecDeque::new();
    let mut received = 0;
    while let Some(block) = receiver.recv().expect("receives") {
        received += 1;
        held.push_back(block);
        if held.len() > 8 {
            held.pop_front();
        }
    }
    assert_eq!(received, 100);
    sending.join().expect("no panic");
}

#[test]
fn a_sender_dropped_unfinished_is_an_error_for_the_receiver() {
    let pair = pair();
    let sender = pair.near.open_blocks().expect("a stream");
    sender.send(vec![1; 10_000]).expect("sends");
    let receiver = pair.far.accept_blocks().expect("a stream");
    assert_eq!(receiver.recv().expect("receives").map(|block| block.len()), Some(10_000));
    drop(sender);
    assert_eq!(receiver.recv().map(|block| block.is_some()), Err(StreamError::Reset { code: 0 }));
}

#[test]
fn a_receiver_dropped_stops_the_sender() {
    let pair = pair();
    let sender = pair.near.open_blocks().expect("a stream");
    sender.send(vec![1; 10_000]).expect("sends");
    drop(pair.far.accept_blocks().expect("a stream"));
    let mut last = Ok(0);
    eventually("the sender hears of it", || {
        last = sender.send(vec![2; 10_000]);
        last.is_err()
    });
    assert_eq!(last, Err(StreamError::Stopped { code: 0 }));
}

#[test]
fn a_receiver_that_goes_after_the_end_is_no_failure() {
    let pair = pair();
    let receiving = thread::spawn({
        let far = pair.far.clone();
        move || (0..300).for_each(|_| assert_eq!(drain(&far.accept_blocks().expect("a stream")).len(), 2))
    });
    for i in 0..300 {
        let sender = pair.near.open_blocks().expect("a stream");
        sender.send(vec![1; 20_000]).expect("sends");
        sender.send(vec![2; 3]).expect("sends");
        assert_eq!(sender.finish(), Ok(()), "stream {i}");
    }
    receiving.join().expect("no panic");
}

#[test]
fn without_offloads_the_same_blocks_arrive() {
    let options = Options { segment_offload: false, receive_offload: false };
    let pair = pair_with("127.0.0.1:0", options, |_, _| ());
    transfer(&pair.near, &pair.far, 20);
}

#[test]
fn ipv6_works_alike() {
    let pair = pair_with("[::1]:0", Options::default(), |_, _| ());
    assert!(pair.near.remote_addr().is_ipv6());
    transfer(&pair.near, &pair.far, 20);
    assert!(pair.near.stats().packet_size.0 > 1200, "the packet size was probed up");
}

/// Sends megabytes in blocks and checks every byte.
pub fn transfer(near: &haul::Connection, far: &haul::Connection, megabytes: u64) {
    let sender = near.open_blocks().expect("a stream");
    let sending = thread::spawn(move || {
        for i in 0..megabytes {
            sender.send(bytes(i, 1_000_000)).expect("sends");
        }
        sender.finish().expect("all arrive");
    });
    let receiver = far.accept_blocks().expect("a stream");
    let blocks = drain(&receiver);
    sending.join().expect("no panic");
    assert_eq!(blocks.len() as u64, megabytes);
    assert!(blocks.into_iter().all(|(index, block)| block == bytes(index, 1_000_000)));
}

#[test]
fn connections_of_one_endpoint_keep_their_blocks_apart() {
    // The streams have the same names on both connections, and several threads receive for each.
    let (mut config, server_config) = configs();
    config.transport.paths = 4;
    let loopback = |server| Endpoint::with_options("127.0.0.1:0".parse().expect("an address"), Options::default(), server);
    let client = loopback(None).expect("binds");
    let servers = [(); 2].map(|()| loopback(Some(server_config.clone())).expect("binds"));
    let ends = servers.each_ref().map(|server| {
        let near = client.connect(server.local_addr(), config.clone()).expect("connects");
        (near, accept(server))
    });
    thread::scope(|scope| {
        for (own, (near, far)) in ends.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..500u64 {
                    let sender = far.open_blocks().expect("opens");
                    let block = bytes(round * 2 + own as u64 + 1, 2000);
                    sender.send(block).expect("sends");
                    sender.finish().expect("arrives");
                }
            });
            scope.spawn(move || {
                for round in 0..500u64 {
                    let receiver = near.accept_blocks().expect("a stream");
                    let block = receiver.recv().expect("lives").expect("one block");
                    if *block != *bytes(round * 2 + own as u64 + 1, 2000) {
                        // Ends the other thread too.
                        near.close(1, "");
                        panic!("connection {own} has got the block of another");
                    }
                    drop(block);
                    assert!(receiver.recv().expect("lives").is_none());
                }
            });
        }
    });
}
