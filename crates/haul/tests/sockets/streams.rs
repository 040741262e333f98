//! Ordered streams.

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use haul::udp::Options;
use haul::{Bytes, StreamError};

use crate::support::{bytes, eventually, pair, pair_with};

fn stream_error(error: std::io::Error) -> StreamError {
    *error.into_inner().expect("has a cause").downcast().expect("a stream's")
}

#[test]
fn bytes_go_both_ways_after_a_half_close() {
    let pair = pair();
    let (question, answer) = (bytes(1, 3_000_000), bytes(2, 2_000_000));
    let echo = thread::spawn({
        let (far, question, answer) = (pair.far.clone(), question.clone(), answer.clone());
        move || {
            let (mut send, mut receive) = far.accept_bi().expect("a stream");
            let mut heard = Vec::new();
            receive.read_to_end(&mut heard).expect("reads");
            assert!(heard == question);
            send.write_all(&answer).expect("writes");
            send.finish().expect("finishes");
            send.wait_acknowledged().expect("arrives");
        }
    });
    let (mut send, mut receive) = pair.near.open_bi().expect("a stream");
    send.write_all(&question).expect("writes");
    send.finish().expect("finishes");
    assert!(matches!(send.write(b"more").map_err(stream_error), Err(StreamError::Finished)));
    let mut heard = Vec::new();
    receive.read_to_end(&mut heard).expect("reads");
    assert!(heard == answer);
    echo.join().expect("no panic");
    assert_eq!(receive.read(&mut [0; 4]).expect("still the end"), 0);
}

#[test]
fn a_big_transfer_arrives_as_it_was() {
    let pair = pair();
    let data = bytes(3, 60_000_000);
    let reader = thread::spawn({
        let far = pair.far.clone();
        move || {
            let mut heard = Vec::new();
            far.accept_uni().expect("a stream").read_to_end(&mut heard).expect("reads");
            heard
        }
    });
    let mut send = pair.near.open_uni().expect("a stream");
    send.write_all(&data).expect("writes");
    send.finish().expect("finishes");
    send.wait_acknowledged().expect("arrives");
    assert!(reader.join().expect("no panic") == data);
    let (near, far) = (pair.near.stats(), pair.far.stats());
    assert!(near.acknowledged.0 >= data.len() as u64 && far.received_stream.0 == data.len() as u64, "{near:?} {far:?}");
    assert!(far.received_pkts <= near.sent_pkts);
    assert_eq!(near.buffered, Bytes::ZERO);
}

#[test]
fn thousands_of_streams() {
    const STREAMS: usize = 3000;
    let pair = pair();
    let opener = thread::spawn({
        let near = pair.near.clone();
        move || {
            for i in 0..STREAMS {
                let mut send = near.open_uni().expect("a stream");
                send.write_all(&bytes(i as u64, i % 2000)).expect("writes");
                send.finish().expect("finishes");
            }
        }
    });
    for i in 0..STREAMS {
        let mut heard = Vec::new();
        pair.far.accept_uni().expect("a stream").read_to_end(&mut heard).expect("reads");
        assert_eq!(heard, bytes(i as u64, i % 2000), "streams are accepted in order");
    }
    opener.join().expect("no panic");
}

#[test]
fn more_streams_than_allowed_wait_their_turn() {
    let pair = pair_with("127.0.0.1:0", Options::default(), |_, server| server.transport.max_streams = 4);
    let opener = thread::spawn({
        let near = pair.near.clone();
        move || {
            for _ in 0..40 {
                let mut send = near.open_uni().expect("a stream");
                send.write_all(b"x").expect("writes");
                send.finish().expect("finishes");
            }
        }
    });
    for _ in 0..40 {
        let mut heard = String::new();
        pair.far.accept_uni().expect("a stream").read_to_string(&mut heard).expect("reads");
        assert_eq!(heard, "x");
    }
    opener.join().expect("no panic");
}

#[test]
fn a_reset_reaches_the_reader() {
    let pair = pair();
    let mut send = pair.near.open_uni().expect("a stream");
    send.write_all(b"beginning").expect("writes");
    let mut receive = pair.far.accept_uni().expect("a stream");
    let mut start = [0; 9];
    receive.read_exact(&mut start).expect("reads");
    send.reset(9);
    let error = receive.read(&mut start).expect_err("was reset");
    assert_eq!(stream_error(error), StreamError::Reset { code: 9 });
}

#[test]
fn a_stream_dropped_unfinished_is_not_taken_for_whole() {
    let pair = pair();
    let mut send = pair.near.open_uni().expect("a stream");
    send.write_all(b"half of it").expect("writes");
    let mut receive = pair.far.accept_uni().expect("a stream");
    drop(send);
    let error = receive.read_to_end(&mut Vec::new()).expect_err("must not end well");
    assert_eq!(stream_error(error), StreamError::Reset { code: 0 });
}

#[test]
fn a_stop_reaches_the_writer() {
    let pair = pair();
    let mut send = pair.near.open_uni().expect("a stream");
    send.write_all(b"beginning").expect("writes");
    pair.far.accept_uni().expect("a stream").stop(5);
    let mut last = None;
    eventually("the writer hears of it", || {
        last = send.write(&[0; 1000]).err();
        last.is_some()
    });
    assert_eq!(stream_error(last.expect("an error")), StreamError::Stopped { code: 5 });
}

#[test]
fn a_reader_that_sleeps_bounds_the_writer() {
    const MEMORY: u64 = 2 << 20;
    let pair = pair_with("127.0.0.1:0", Options::default(), |client, server| {
        client.transport.memory = Bytes(MEMORY);
        server.transport.memory = Bytes(MEMORY);
    });
    let (count, counted) = std::sync::mpsc::channel();
    let writer = thread::spawn({
        let near = pair.near.clone();
        move || {
            let mut send = near.open_uni().expect("a stream");
            for i in 0..200u64 {
                send.write_all(&bytes(i, 100_000)).expect("writes");
                count.send(()).expect("counted");
            }
            send.finish().expect("finishes");
        }
    });
    let mut receive = pair.far.accept_uni().expect("a stream");
    let mut written = 0;
    while counted.recv_timeout(std::time::Duration::from_millis(300)).is_ok() {
        written += 1;
    }
    assert!(written * 100_000 <= 2 * MEMORY + 300_000, "{written} parts were taken");
    for i in 0..200 {
        let mut part = vec![0; 100_000];
        receive.read_exact(&mut part).expect("reads");
        assert!(part == bytes(i, 100_000), "part {i}");
    }
    writer.join().expect("no panic");
}

#[test]
fn the_async_twins_run_without_an_executor_of_ours() {
    let pair = pair();
    let data = bytes(4, 500_000);
    let writing = async {
        let mut send = pair.near.open_uni_async().await.expect("a stream");
        send.write_all_async(&data).await.expect("writes");
        send.finish().expect("finishes");
        send.wait_acknowledged_async().await.expect("arrives");
    };
    let reading = async {
        let mut receive = pair.far.accept_uni_async().await.expect("a stream");
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 10_000]);
        loop {
            match receive.read_async(&mut buffer).await.expect("reads") {
                0 => return heard,
                read => heard.extend_from_slice(&buffer[..read]),
            }
        }
    };
    assert!(run_both(writing, reading) == data);
}

/// Runs both futures on this thread until the second is done; the first must be done by then or soon after.
fn run_both<B>(a: impl Future<Output = ()>, b: impl Future<Output = B>) -> B {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_done, mut b_output) = (false, None);
    let mut both = pin!(poll_fn(move |cx| {
        a_done = a_done || a.as_mut().poll(cx).is_ready();
        if b_output.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(cx)
        {
            b_output = Some(output);
        }
        if a_done { b_output.take().map_or(Poll::Pending, Poll::Ready) } else { Poll::Pending }
    }));
    loop {
        if let Poll::Ready(output) = both.as_mut().poll(&mut cx) {
            return output;
        }
        thread::park();
    }
}
