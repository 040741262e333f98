use bytes::Bytes;

use super::*;
use crate::streams::Side;
use crate::streams::chunks::{ORDERED_CHUNK, RELEASED_MAX};

fn ordered() -> SendHalf {
    SendHalf::new(StreamId::new(Side::Client, StreamKind::Bidirectional, 0), 1 << 30)
}

fn placed() -> SendHalf {
    SendHalf::new(StreamId::new(Side::Client, StreamKind::Placed, 0), 1 << 30)
}

fn sent(stream: &mut SendHalf, room: usize) -> Option<(u64, usize, bool, bool)> {
    stream.next_run(room, usize::MAX, false).map(|run| (run.offset, run.bytes.len(), run.fin, run.end))
}

#[test]
fn the_end_goes_with_the_last_byte_or_alone() {
    let mut stream = ordered();
    stream.write(&[1; 1000], &mut Vec::new());
    stream.finish();
    assert_eq!(sent(&mut stream, 600), Some((0, 600, false, false)));
    assert_eq!(sent(&mut stream, 600), Some((600, 400, true, false)));
    assert_eq!(sent(&mut stream, 600), None);
    let mut stream = ordered();
    stream.write(&[1; 10], &mut Vec::new());
    assert_eq!(sent(&mut stream, 600), Some((0, 10, false, false)));
    stream.finish();
    assert!(!stream.has_fresh() && stream.wants_bare_fin());
    assert_eq!(sent(&mut stream, 600), Some((10, 0, true, false)));
    stream.on_lost(10, 0, true, 0);
    assert_eq!(stream.next_run(600, 0, false).map(|run| (run.offset, run.fin)), Some((10, true)));
    let mut released = Vec::new();
    assert_eq!(stream.on_acked(0, 10, false, &mut released), 10);
    assert!(!stream.is_done());
    stream.on_acked(10, 0, true, &mut released);
    assert!(stream.is_done());
}

#[test]
fn the_end_may_arrive_before_the_rest() {
    let mut stream = ordered();
    stream.write(&[1; 1000], &mut Vec::new());
    stream.finish();
    while stream.next_run(500, usize::MAX, false).is_some() {}
    stream.on_acked(500, 500, true, &mut Vec::new());
    assert!(!stream.is_done());
    stream.on_acked(0, 500, false, &mut Vec::new());
    assert!(stream.is_done());
}

#[test]
fn blocks_go_back_when_acknowledged_in_any_order() {
    let mut stream = placed();
    for index in 0..3u64 {
        stream.write_block(index << 20, vec![index as u8; 3000].into()).unwrap();
    }
    assert!(stream.write_block(5, vec![1].into()).is_err(), "below the last block");
    while stream.next_run(1000, usize::MAX, false).is_some() {}
    let mut released = Vec::new();
    assert_eq!(stream.on_acked(1 << 20, 3000, false, &mut released), 3000);
    assert_eq!(released.len(), 1);
    assert_eq!(stream.on_acked(1 << 20, 3000, false, &mut released), 0, "twice acknowledged counts once");
    assert_eq!(stream.on_acked(0, 2000, false, &mut released), 2000);
    stream.on_lost(1000, 2000, false, 0);
    let again = stream.next_run(65536, 0, false).map(|run| (run.offset, run.bytes.len(), run.end));
    assert_eq!(again, Some((2000, 1000, true)), "only what is missing");
    stream.on_acked(2000, 1000, false, &mut released);
    stream.on_acked(2 << 20, 3000, false, &mut released);
    stream.finish();
    assert_eq!(stream.take_placed_fin(), Some(9000));
    stream.on_placed_fin_acked();
    assert!(stream.is_done());
    assert_eq!(released.iter().filter(|buffer| buffer.capacity() > 0).count(), 3);
}

#[test]
fn shared_memory_is_sent_from_where_it_lies_and_let_go() {
    let mut stream = placed();
    let memory = Bytes::from(vec![3; 5000]);
    for index in 0..4u64 {
        stream.write_block(index << 20, memory.slice(..4000).into()).unwrap();
    }
    while let Some(run) = stream.next_run(1000, usize::MAX, false) {
        assert_eq!(run.bytes.as_ptr() as usize - memory.as_ptr() as usize, (run.offset % (1 << 20)) as usize);
    }
    let mut released = Vec::new();
    for index in 0..4u64 {
        assert!(!memory.is_unique());
        assert_eq!(stream.on_acked(index << 20, 4000, false, &mut released), 4000);
    }
    assert!(memory.is_unique() && released.is_empty(), "nothing keeps it, and it is nobody else's to write to");
}

#[test]
fn in_the_tail_copies_follow() {
    let mut stream = placed();
    stream.write_block(0, vec![7; 1000].into()).unwrap();
    while stream.next_run(1000, usize::MAX, false).is_some() {}
    stream.on_lost(0, 1000, false, 2);
    let mut count = 0;
    while stream.next_run(1000, 0, true).is_some() {
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn credit_bounds_what_is_new() {
    let mut stream = SendHalf::new(StreamId(0), 100);
    stream.write(&[0; 300], &mut Vec::new());
    assert_eq!(sent(&mut stream, 1000), Some((0, 100, false, false)));
    assert!(!stream.has_fresh() && stream.credit_left() == 0);
    assert!(stream.raise_credit(250));
    assert_eq!(sent(&mut stream, 1000), Some((100, 150, false, false)));
}

#[test]
fn a_long_stream_keeps_only_what_is_in_flight() {
    let mut stream = ordered();
    let mut released = Vec::new();
    let mut offset = 0;
    for _ in 0..200 {
        stream.write(&vec![9; 50_000], &mut Vec::new());
        while let Some((at, len, ..)) = sent(&mut stream, 1400) {
            assert_eq!(at, offset);
            offset += len as u64;
            stream.on_acked(at, len as u64, false, &mut released);
        }
        assert!(stream.chunks.is_empty());
    }
    assert_eq!(offset, 10_000_000);
    assert_eq!(stream.unacknowledged(), 1);
}

#[test]
fn acknowledged_memory_is_kept_within_bounds_and_used_again() {
    let mut stream = SendHalf::new(StreamId(0), u64::MAX);
    let mut released = Vec::new();
    let chunk = vec![1; ORDERED_CHUNK];
    for _ in 0..3 * RELEASED_MAX {
        stream.write(&chunk, &mut Vec::new());
    }
    while stream.next_run(ORDERED_CHUNK, usize::MAX, false).is_some() {}
    stream.on_acked(0, (3 * RELEASED_MAX * ORDERED_CHUNK) as u64, false, &mut released);
    assert_eq!(released.len(), RELEASED_MAX);
    stream.write(&chunk, &mut released);
    assert_eq!(released.len(), RELEASED_MAX - 1);
}
