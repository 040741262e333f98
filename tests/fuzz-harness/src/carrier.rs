//! What a lane of a carrier brings: any bytes, read in pieces of any size.

use haul_carrier::{Frame, Frames, MAX_SAID_BYTES, MAX_SEGMENTS, MAX_TRAIN_BYTES};

/// The first byte says how large the pieces are. Whatever the pieces, the same frames are found, in bounded memory.
pub fn carrier(input: &[u8]) {
    let Some((&piece, stream)) = input.split_first() else { return };
    let whole = found(stream, usize::MAX);
    assert_eq!(whole, found(stream, usize::from(piece) + 1), "it matters how the stream is read");
}

/// The sizes of the frames, and whether the stream ended as one of frames may.
fn found(stream: &[u8], piece: usize) -> (Vec<(usize, usize)>, bool) {
    let (mut frames, mut sizes, mut rest) = (Frames::default(), Vec::new(), stream);
    while !rest.is_empty() {
        let room = frames.room();
        assert!(!room.is_empty() && room.len() <= 4 * MAX_TRAIN_BYTES);
        let read = rest.len().min(piece).min(room.len());
        room[..read].copy_from_slice(&rest[..read]);
        rest = &rest[read..];
        frames.on_read(read);
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(Frame::Train { train, segment_bytes })) => {
                    assert!((1..=MAX_TRAIN_BYTES).contains(&train.len()) && train.chunks(segment_bytes).len() <= MAX_SEGMENTS);
                    sizes.push((train.len(), segment_bytes));
                }
                Ok(Some(Frame::CallBack { port })) => {
                    assert_ne!(port, 0);
                    sizes.push((0, 0));
                }
                Ok(Some(Frame::Said(words))) => {
                    assert!(words.len() <= MAX_SAID_BYTES);
                    sizes.push((words.len(), 0));
                }
                Ok(Some(Frame::Ping | Frame::Pong { .. } | Frame::Unknown)) => sizes.push((0, 0)),
                Err(_) => return (sizes, false),
            }
        }
    }
    (sizes, true)
}
