//! Futures that are dropped before they are ready: what they were to send is sent whole or not at all, what they were to take is still there.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use haul::udp::Options;
use haul::{BlockData, BlockReceiver, Bytes, RecvStream, StreamError};

use crate::support::{Pair, bytes, eventually, pair_with};

const MEMORY: u64 = 1 << 20;
const BLOCK: usize = 100_000;

/// A connection that holds a few blocks, so that a sender soon has to wait.
fn tight_pair() -> Pair {
    pair_with("127.0.0.1:0", Options::default(), |client, server| {
        client.transport.memory = Bytes(MEMORY);
        server.transport.memory = Bytes(MEMORY);
    })
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn drain(receiver: &BlockReceiver) -> BTreeMap<u64, Vec<u8>> {
    let mut blocks = BTreeMap::new();
    while let Some(block) = receiver.recv().expect("receives") {
        blocks.insert(block.index(), block.to_vec());
    }
    blocks
}

/// Block `i` is polled `i % 5` times and then given up, dropped or taken back in turn; first while nobody reads, then while somebody does.
#[test]
fn a_block_is_sent_whole_or_not_at_all_wherever_its_future_is_dropped() {
    let pair = tight_pair();
    let sender = pair.near.open_blocks().expect("a stream");
    let mut expected = BTreeMap::new();
    let (mut dropped, mut taken_back) = (0, 0);
    let mut attempt = |i: u64, expected: &mut BTreeMap<u64, Vec<u8>>| {
        let mut sending = sender.send_async(bytes(i, BLOCK));
        for polls in 1..=i % 5 {
            if let Poll::Ready(index) = poll_once(&mut sending) {
                expected.insert(index.expect("sends"), bytes(i, BLOCK));
                assert!(sending.take_block().is_none(), "block {i} is the connection's after {polls} polls");
                return;
            }
        }
        if i.is_multiple_of(2) {
            drop(sending);
            dropped += 1;
        } else {
            let block = sending.take_block().expect("not sent");
            assert!(*block == bytes(i, BLOCK)[..], "block {i} comes back as it was");
            taken_back += 1;
        }
    };
    // Without a reader no more than a few fit, so that most of these wait in vain.
    (0..100).for_each(|i| attempt(i, &mut expected));
    assert!(expected.len() as u64 * BLOCK as u64 <= 2 * MEMORY + 2 * BLOCK as u64, "{} blocks were taken", expected.len());
    let receiver = pair.far.accept_blocks().expect("a stream");
    let receiving = thread::spawn(move || drain(&receiver));
    for i in 100..400 {
        attempt(i, &mut expected);
        if i % 10 == 0 {
            // Room is made by and by.
            expected.insert(sender.send(bytes(i + 1000, BLOCK)).expect("sends"), bytes(i + 1000, BLOCK));
        }
    }
    sender.finish().expect("all arrive");
    let arrived = receiving.join().expect("no panic");
    assert!(arrived.keys().copied().eq(0..expected.len() as u64), "no index is used up in vain");
    assert!(arrived == expected, "what arrives is what was said to be sent");
    assert!(dropped >= 40 && taken_back >= 40, "{dropped} dropped, {taken_back} taken back");
}

#[test]
fn a_block_that_cannot_be_sent_stays_with_its_owner() {
    let pair = tight_pair();
    let sender = pair.near.open_blocks().expect("a stream");
    let mut empty = sender.send_async(Vec::new());
    assert_eq!(poll_once(&mut empty), Poll::Ready(Err(StreamError::BlockSize { len: 0 })));
    sender.send(bytes(1, BLOCK)).expect("sends");
    pair.far.accept_blocks().expect("a stream");
    // The receiver is gone: the stream is stopped, and a block for it comes back.
    let mut last = None;
    eventually("the stream is stopped", || {
        let mut sending = sender.send_async(bytes(2, BLOCK));
        match poll_once(&mut sending) {
            Poll::Ready(Err(error)) => {
                last = Some((error, sending.take_block()));
                true
            }
            _ => false,
        }
    });
    let (error, block) = last.expect("an error");
    assert_eq!(error, StreamError::Stopped { code: 0 });
    assert!(block.as_deref() == Some(&bytes(2, BLOCK)[..]));
    let mut block = block;
    assert!(matches!(
        sender.poll_send(&Context::from_waker(Waker::noop()), &mut block),
        Poll::Ready(Err(StreamError::Stopped { code: 0 }))
    ));
    assert!(block.is_some_and(|block| matches!(block, BlockData::Owned(_))));
}

#[test]
fn receivers_that_give_up_take_nothing() {
    let pair = tight_pair();
    let sender = pair.near.open_blocks().expect("a stream");
    let sending = thread::spawn(move || {
        (0..60).for_each(|i| assert_eq!(sender.send(bytes(i, BLOCK)), Ok(i)));
        sender.finish().expect("all arrive");
    });
    let receiver = pair.far.accept_blocks().expect("a stream");
    let mut arrived = BTreeMap::new();
    loop {
        // One that is never polled, then one that is polled once: either it has a block or it has taken none.
        drop(receiver.recv_async());
        match poll_once(&mut pin!(receiver.recv_async())) {
            Poll::Ready(Ok(Some(block))) => drop(arrived.insert(block.index(), block.to_vec())),
            Poll::Ready(end) => break assert!(end.expect("no error").is_none()),
            Poll::Pending => thread::yield_now(),
        }
    }
    sending.join().expect("no panic");
    assert!(arrived == (0..60).map(|i| (i, bytes(i, BLOCK))).collect());
}

#[test]
fn ordered_bytes_are_neither_lost_nor_repeated_by_dropped_futures() {
    // More than fits on both sides together.
    const TOTAL: usize = 5 * MEMORY as usize;
    let pair = tight_pair();
    let mut send = pair.near.open_uni().expect("a stream");
    let data = bytes(5, TOTAL);
    let waits = Arc::new(AtomicBool::new(false));
    let writing = thread::spawn({
        let (data, waits) = (data.clone(), waits.clone());
        move || {
            let mut written = 0;
            while written < TOTAL {
                let end = TOTAL.min(written + 50_000);
                match poll_once(&mut pin!(send.write_async(&data[written..end]))) {
                    Poll::Ready(more) => written += more.expect("writes"),
                    Poll::Pending => {
                        waits.store(true, Ordering::Relaxed);
                        thread::yield_now();
                    }
                }
            }
            send.finish().expect("finishes");
            send.wait_acknowledged().expect("all arrives");
        }
    });
    eventually("the writer has to wait", || waits.load(Ordering::Relaxed));
    let mut receive = pair.far.accept_uni().expect("a stream");
    let arrived = read_in_pieces(&mut receive);
    assert!(arrived == data);
    writing.join().expect("no panic");
}

fn read_in_pieces(receive: &mut RecvStream) -> Vec<u8> {
    let (mut arrived, mut piece) = (Vec::new(), vec![0; 30_000]);
    loop {
        let read = poll_once(&mut pin!(receive.read_async(&mut piece)));
        match read {
            Poll::Ready(Ok(0)) => return arrived,
            Poll::Ready(len) => arrived.extend_from_slice(&piece[..len.expect("reads")]),
            Poll::Pending => thread::yield_now(),
        }
    }
}
