//! The sink against a naive model: every byte once, every block once, whatever the order and the overlaps.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use haul_proto::{Side, Sink, StreamId, StreamKind};
use haul_units::Bytes;
use proptest::prelude::*;

use super::assembly::MAX_BLOCK;
use super::memory::BlockMemory;
use super::queue::{End, Queue};
use super::queues::Queues;
use super::sink::BlockSink;

/// A queue of a connection with this memory.
fn queue(memory: Bytes) -> Arc<Queue> {
    Arc::new(Queue::new(Arc::new(BlockMemory::new(memory, Arc::default()))))
}

fn take(queue: &Queue) -> Option<(u64, Vec<u8>)> {
    match queue.poll_take(&Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(Some(complete))) => {
            let bytes = complete.buffer[..complete.len].to_vec();
            queue.give_back(complete.buffer, complete.len);
            Some((complete.index, bytes))
        }
        _ => None,
    }
}

/// One packet as the transport hands it over: by a slot if there is one.
fn arrive(sink: &mut BlockSink, offset: u64, bytes: &[u8], end: bool) -> usize {
    if let Some(slot) = sink.slot(offset, bytes.len()) {
        slot.copy_from_slice(bytes);
        sink.commit(offset, bytes.len(), end);
        return bytes.len();
    }
    sink.deliver(offset, bytes, end)
}

proptest! {
    #[test]
    fn blocks_come_out_once_and_whole(
        lens in prop::collection::vec(1usize..5000, 1..6),
        cuts in prop::collection::vec((0usize..6, 0usize..5000, 1usize..1500), 0..80),
        seed in any::<u64>(),
    ) {
        let blocks: Vec<Vec<u8>> = lens.iter().map(|&len| (0..len).map(|i| (i as u64 ^ seed) as u8).collect()).collect();
        let queue = queue(Bytes::gib(1));
        let mut sink = BlockSink::new(queue.clone());
        // Arbitrary pieces, overlapping and repeated; then everything in order, so that all becomes complete.
        let mut pieces: Vec<(usize, usize, usize)> = cuts
            .into_iter()
            .filter_map(|(block, start, len)| {
                let total = *lens.get(block)?;
                (start < total).then(|| (block, start, (start + len).min(total)))
            })
            .collect();
        for (block, &total) in lens.iter().enumerate() {
            pieces.extend((0..total).step_by(700).map(|start| (block, start, (start + 700).min(total))));
        }
        let mut new_bytes = 0;
        let mut out = Vec::new();
        for (block, start, end) in pieces {
            let offset = (block * MAX_BLOCK + start) as u64;
            new_bytes += arrive(&mut sink, offset, &blocks[block][start..end], end == lens[block]);
            out.extend(take(&queue));
        }
        let total: usize = lens.iter().sum();
        prop_assert_eq!(new_bytes, total);
        prop_assert_eq!(queue.received(), total as u64);
        sink.finish(total as u64);
        prop_assert!(matches!(queue.poll_take(&Context::from_waker(Waker::noop())), Poll::Ready(Ok(None))));
        out.sort_unstable();
        let expected: Vec<(u64, Vec<u8>)> = blocks.into_iter().enumerate().map(|(i, block)| (i as u64, block)).collect();
        prop_assert_eq!(out, expected);
        prop_assert_eq!(sink.consumed(), total as u64);
    }
}

#[test]
fn hostile_places_are_refused() {
    let mut sink = BlockSink::new(queue(Bytes::ZERO));
    assert!(sink.slot(MAX_BLOCK as u64 - 1, 2).is_none(), "across two blocks");
    assert!(sink.slot(u64::MAX, 1).is_none(), "far ahead");
    assert!(sink.slot(0, 0).is_none(), "nothing");
    assert_eq!(sink.deliver(u64::MAX - 1, &[1, 2, 3], true), 0);
    // An end before bytes that are there, then a byte beyond an end.
    assert_eq!(arrive(&mut sink, 10, &[1; 10], false), 10);
    assert_eq!(arrive(&mut sink, 0, &[1; 5], true), 5);
    assert_eq!(arrive(&mut sink, 5, &[1; 5], false), 5);
    assert_eq!(arrive(&mut sink, 20, &[1; 5], true), 5, "the believable end completes the block");
    assert_eq!(arrive(&mut sink, 25, &[1; 5], false), 0);
}

#[test]
fn memory_of_incomplete_blocks_is_bounded() {
    let mut sink = BlockSink::new(queue(Bytes::ZERO));
    let taken = (0..1000u64).filter(|index| arrive(&mut sink, (index + 1) * MAX_BLOCK as u64 - 1, &[0], false) == 1).count();
    assert_eq!(taken, 3, "8 MiB, notes included, are less than four buffers of 2 MiB");
}

#[test]
fn streams_of_a_connection_share_the_bound() {
    let memory = Arc::new(BlockMemory::new(Bytes::ZERO, Arc::default()));
    let mut sinks: Vec<BlockSink> = (0..3).map(|_| BlockSink::new(Arc::new(Queue::new(memory.clone())))).collect();
    let fill = |sinks: &mut [BlockSink], sink: usize, mut blocks: std::ops::Range<u64>| {
        let mut taken = 0;
        blocks.all(|index| {
            let fits = arrive(&mut sinks[sink], (index + 1) * MAX_BLOCK as u64 - 1, &[0], false) == 1;
            taken += usize::from(fits);
            fits
        });
        taken
    };
    assert_eq!([fill(&mut sinks, 0, 0..40), fill(&mut sinks, 1, 0..40)], [3, 0], "less than 8 MiB, whoever has them");
    sinks[0].reset(1);
    assert_eq!([fill(&mut sinks, 1, 0..2), fill(&mut sinks, 2, 0..20)], [2, 1]);
    memory.set_memory(Bytes::mib(16));
    assert_eq!(fill(&mut sinks, 2, 20..50), 16, "twice what was added to the connection's memory");
    drop(sinks);
    assert_eq!(memory.held(), 0);
}

#[test]
fn a_reset_ends_the_queue_after_what_is_complete() {
    let queue = queue(Bytes::ZERO);
    let mut sink = BlockSink::new(queue.clone());
    arrive(&mut sink, 0, b"whole", true);
    sink.reset(7);
    assert_eq!(take(&queue), Some((0, b"whole".to_vec())));
    assert!(matches!(queue.poll_take(&Context::from_waker(Waker::noop())), Poll::Ready(Err(End::Reset(7)))));
}

#[test]
fn streams_of_one_name_are_apart_by_their_connection() {
    let id = StreamId::new(Side::Server, StreamKind::Placed, 0);
    let connections = [(); 2].map(|()| Queues::new(Bytes::mib(1), Arc::default()));
    // Both are made before either is asked for.
    let mut sinks = connections.each_ref().map(|queues| queues.sinks().make(id));
    for (sink, byte) in sinks.iter_mut().zip([1, 2]) {
        assert_eq!(sink.deliver(0, &[byte], true), 1);
    }
    let queues = connections.each_ref().map(|queues| queues.get(id).expect("made"));
    assert_eq!(queues.each_ref().map(|queue| take(queue)), [Some((0, vec![1])), Some((0, vec![2]))]);
}

#[test]
fn one_byte_blocks_take_no_more_than_there_is() {
    let memory = Arc::new(BlockMemory::new(Bytes::mib(1), Arc::default()));
    let queue = Arc::new(Queue::new(memory.clone()));
    let mut sink = BlockSink::new(queue.clone());
    let limit = 10 << 20;
    // A large block first, so that buffers to come are large.
    assert_eq!(arrive(&mut sink, 0, &vec![1; 1 << 20], true), 1 << 20);
    let mut refused = 0;
    for index in 1..200_000u64 {
        let offset = index * MAX_BLOCK as u64;
        if sink.has_room(offset, 1) {
            assert_eq!(arrive(&mut sink, offset, &[7], true), 1);
        } else {
            refused += 1;
        }
        assert!(memory.held() <= limit + (1 << 20), "{} bytes held for {index} blocks", memory.held());
    }
    assert!(refused > 50_000, "{refused}");
    // Those that were refused come again, when others have been read.
    assert!(!sink.has_room(199_999 * MAX_BLOCK as u64, 1));
    assert!(std::iter::from_fn(|| take(&queue)).count() > 50_000, "each takes about a hundred bytes");
    assert!(sink.has_room(199_999 * MAX_BLOCK as u64, 1));
    drop((sink, queue));
    assert_eq!(memory.held(), 0);
}

#[test]
fn bytes_far_apart_in_one_block_are_bounded() {
    let mut sink = BlockSink::new(queue(Bytes::mib(1)));
    let taken = (0..10_000u64).filter(|at| sink.has_room(at * 2, 1) && arrive(&mut sink, at * 2, &[1], false) == 1).count();
    assert_eq!(taken, 2048);
}

#[test]
fn a_forged_packet_begins_no_block() {
    let queue = queue(Bytes::mib(1));
    let mut sink = BlockSink::new(queue.clone());
    assert!((0..1000).all(|index| sink.slot(index * MAX_BLOCK as u64, 1000).is_none()));
    assert_eq!(queue.memory().held(), 0);
}
