//! Decoders of the copy protocol: what a hostile peer or a damaged disk can feed haul-files.

use haul_files::{block, journal as stored, protocol};

use crate::feed::Feed;

/// The body of a frame on the control stream.
pub fn control_message(data: &[u8]) {
    let Ok(message) = protocol::decode(data) else { return };
    let mut frame = Vec::new();
    protocol::encode(&message, &mut frame).expect("what came in one frame goes out in one");
    let again = protocol::read_frame(&mut frame.as_slice(), &mut Vec::new()).expect("an encoded frame is a frame");
    assert_eq!(again, Some(message));
}

/// A block: as it came, and with a proper end so that the fuzzer need not find the magic number.
pub fn block(data: &[u8]) {
    check_block(data);
    let mut feed = Feed(data);
    let count = feed.u8();
    let ended = [feed.0, &u32::from(count).to_le_bytes(), b"hBk1"].concat();
    check_block(&ended);
}

fn check_block(bytes: &[u8]) {
    let Ok(pieces) = block::open(bytes) else { return };
    let mut again = Vec::new();
    for (piece, content) in &pieces {
        assert_eq!(piece.length as usize, content.len());
        assert!(piece.offset.checked_add(content.len() as u64).is_some_and(|end| i64::try_from(end).is_ok()));
        again.extend_from_slice(content);
    }
    let pieces: Vec<_> = pieces.into_iter().map(|(piece, _)| piece).collect();
    block::seal(&mut again, &pieces);
    assert_eq!(again, bytes);
}

/// A packed block: as it came, and with a proper end. What is in it is no longer than it says, and a block or none.
pub fn packed_block(data: &[u8]) {
    let mut feed = Feed(data);
    let length = u32::from(feed.u8()) << 4;
    let ended = [feed.0, &length.to_le_bytes(), b"hZs1"].concat();
    for bytes in [data, &ended] {
        let Ok(unpacked) = haul_squeeze::unpack(bytes, block::MAX_BLOCK) else { continue };
        assert!(haul_squeeze::is_packed(bytes) && unpacked.len() <= block::MAX_BLOCK);
        check_block(&unpacked);
        let mut again = Vec::new();
        if haul_squeeze::Packer::default().pack(&unpacked, &mut again) {
            assert_eq!(haul_squeeze::unpack(&again, unpacked.len()).as_ref(), Ok(&unpacked));
        }
    }
}

/// A journal: as it came, and as records with right check sums and any body.
pub fn journal(data: &[u8]) {
    check_journal(data);
    let mut feed = Feed(data);
    let mut journal = Vec::new();
    while !feed.0.is_empty() {
        let body = feed.run();
        journal.extend_from_slice(&(body.len() as u32).to_le_bytes());
        journal.extend_from_slice(&blake3::hash(body).as_bytes()[..8]);
        journal.extend_from_slice(body);
    }
    check_journal(&journal);
}

fn check_journal(bytes: &[u8]) {
    let (records, used) = stored::decode(bytes);
    assert!(used <= bytes.len());
    let mut again = Vec::new();
    for record in &records {
        stored::encode(record, &mut again);
    }
    assert_eq!(stored::decode(&again), (records, again.len()));
}
