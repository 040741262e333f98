use proptest::prelude::*;

use super::*;
use crate::ConnectionId;
use crate::crypto::{CipherSuite, DataKeys, Role, TAG_LEN};
use crate::streams::{StreamId, StreamKind};
use crate::wire::DATA_HEADER_BYTES;

const STRIDE: usize = DATA_HEADER_BYTES + TAG_LEN;

fn keys(role: Role) -> DataKeys {
    DataKeys::new([7; 32], role, CipherSuite::Aes128Gcm)
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// Bytes of one stream, from the packet with this number on. They lie in memory of their own, behind some that are not meant, or in the train.
fn row(number: u64, payload: usize, bytes: &[u8], in_place: bool, train: &mut [u8]) -> Row {
    let stream = StreamId::new(crate::Side::Client, StreamKind::Placed, 3);
    let kind = PacketKind::Data { stream, offset: 5000, fin: true, end: true };
    let header = Header { destination: ConnectionId(9), path: 2, epoch: 0, number, kind };
    let memory = (!in_place).then(|| (Fixed::Ours(Arc::new([&[0xee; 11], bytes].concat())), 11));
    let row = Row { header, at: 0, payload, len: bytes.len(), memory };
    if in_place {
        row.place(bytes, train);
    }
    row
}

/// The same packets, each sealed when it is made.
fn at_once(sealer: &mut Sealer, number: u64, payload: usize, bytes: &[u8]) -> Vec<u8> {
    let mut train = Vec::new();
    let pkts = bytes.len().div_ceil(payload).max(1);
    for index in 0..pkts {
        let plain = &bytes[index * payload..((index + 1) * payload).min(bytes.len())];
        let (stream, is_last) = (StreamId::new(crate::Side::Client, StreamKind::Placed, 3), index + 1 == pkts);
        let kind = PacketKind::Data { stream, offset: 5000 + (index * payload) as u64, fin: is_last, end: is_last };
        let number = number + index as u64;
        let mut packet = vec![0; STRIDE + plain.len()];
        Header { destination: ConnectionId(9), path: 2, epoch: sealer.epoch(), number, kind }.encode(&mut packet);
        let (head, body) = packet.split_at_mut(DATA_HEADER_BYTES);
        sealer.seal_into(2, number, head, plain, body).unwrap();
        train.extend(packet);
    }
    train
}

proptest! {
    /// Byte for byte, wherever the bytes lie, however often the key changes in the midst of a train.
    #[test]
    fn what_is_sealed_later_is_what_is_sealed_at_once(
        rows in prop::collection::vec((0_usize..4000, any::<bool>(), any::<bool>()), 1..8), payload in 1_usize..300, every in 1_u64..40,
    ) {
        let (mut now, mut later) = (keys(Role::Client).sealer, keys(Role::Client).sealer);
        now.rotate_every(every);
        later.rotate_every(every);
        let (mut number, mut made) = (100, Vec::new());
        for (len, in_place, acknowledged) in rows {
            let bytes = content(len);
            let mut train = vec![0xaa; len.div_ceil(payload).max(1) * STRIDE + len];
            let mut unsealed = Vec::new();
            row(number, payload, &bytes, in_place, &mut train).defer(&mut later, &mut unsealed);
            made.push((unsealed, train, at_once(&mut now, number, payload, &bytes)));
            number += len.div_ceil(payload).max(1) as u64;
            if acknowledged {
                now.on_acknowledged(2, number - 1);
                later.on_acknowledged(2, number - 1);
            }
            prop_assert_eq!(now.epoch(), later.epoch());
        }
        // Not before all of them are made, nor in that order.
        for (mut unsealed, mut train, expected) in made.into_iter().rev() {
            seal(&mut unsealed, &mut train);
            prop_assert_eq!(train, expected);
        }
    }
}

#[test]
fn a_key_that_is_gone_meanwhile_still_seals_what_was_made_with_it() {
    let (mut sealer, mut opener) = (keys(Role::Client).sealer, keys(Role::Server).opener);
    sealer.rotate_every(4);
    let (mut train, mut unsealed) = (vec![0; 4 * (STRIDE + 100)], Vec::new());
    row(0, 100, &content(400), false, &mut train).defer(&mut sealer, &mut unsealed);
    sealer.on_acknowledged(2, 0);
    assert_eq!(sealer.epoch(), 1);
    seal(&mut unsealed, &mut train);
    for (index, packet) in train.chunks(STRIDE + 100).enumerate() {
        let (header, mut plain) = (Header::parse(packet).unwrap(), [0; 100]);
        assert_eq!((header.epoch, header.number), (0, index as u64));
        let (head, body) = packet.split_at(DATA_HEADER_BYTES);
        opener.open_into(0, 2, header.number, head, body, &mut plain).unwrap();
        assert_eq!(plain, content(400)[index * 100..][..100]);
    }
}

#[test]
fn the_use_of_a_key_counts_when_packets_are_made() {
    let mut sealer = keys(Role::Client).sealer;
    sealer.rotate_every(10);
    let (mut train, mut unsealed) = (vec![0; 30 * (STRIDE + 1)], Vec::new());
    row(0, 1, &content(3), false, &mut train).defer(&mut sealer, &mut unsealed);
    sealer.on_acknowledged(2, 2);
    row(3, 1, &content(20), false, &mut train).defer(&mut sealer, &mut unsealed);
    let rows: Vec<_> = unsealed.iter().map(|part| (part.row.header.epoch, part.row.header.number, part.row.len)).collect();
    assert_eq!(rows, [(0, 0, 3), (0, 3, 7), (1, 10, 13)], "the peer has not said that it has the second key");
    let ends = |part: &Unsealed| matches!(part.row.header.kind, PacketKind::Data { fin: true, end: true, .. });
    assert_eq!(unsealed.iter().map(ends).collect::<Vec<_>>(), [true, false, true]);
}
