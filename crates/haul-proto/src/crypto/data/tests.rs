use proptest::prelude::*;

use super::*;
use crate::crypto::TAG_LEN;

const SUITES: [CipherSuite; 3] = [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305];

fn pair(suite: CipherSuite) -> (DataKeys, DataKeys) {
    (DataKeys::new([7; 32], Role::Client, suite), DataKeys::new([7; 32], Role::Server, suite))
}

fn seal(sealer: &mut Sealer, path: u8, packet_number: u64, plain: &[u8]) -> (u8, Vec<u8>) {
    let epoch = sealer.epoch();
    let mut out = vec![0; plain.len() + TAG_LEN];
    sealer.seal_into(path, packet_number, &[epoch], plain, &mut out).unwrap();
    (epoch, out)
}

fn open(opener: &mut Opener, epoch: u8, path: u8, packet_number: u64, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut out = vec![0; sealed.len().saturating_sub(TAG_LEN)];
    opener.open_into(epoch, path, packet_number, &[epoch], sealed, &mut out).map(|()| out)
}

proptest! {
    #[test]
    fn what_is_sealed_opens(path: u8, packet_number: u64, plain in prop::collection::vec(any::<u8>(), 0..2000), to_server: bool) {
        for suite in SUITES {
            let (client, server) = pair(suite);
            let (mut sealer, mut opener) =
                if to_server { (client.sealer, server.opener) } else { (server.sealer, client.opener) };
            let (epoch, mut sealed) = seal(&mut sealer, path, packet_number, &plain);
            prop_assert_eq!(open(&mut opener, epoch, path, packet_number, &sealed).unwrap(), &plain[..]);
            let length = opener.open_in_place(epoch, path, packet_number, &[epoch], &mut sealed).unwrap();
            prop_assert_eq!(&sealed[..length], &plain[..]);
        }
    }

    #[test]
    fn any_change_is_noticed(plain in prop::collection::vec(any::<u8>(), 1..200), place: prop::sample::Index, flip in 1_u8..) {
        let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
        let (epoch, sealed) = seal(&mut client.sealer, 0, 9, &plain);
        let mut forged = sealed.clone();
        forged[place.index(sealed.len())] ^= flip;
        let refused = Err(OpenError::NotAuthentic);
        prop_assert_eq!(&open(&mut server.opener, epoch, 0, 9, &forged), &refused);
        prop_assert_eq!(&open(&mut server.opener, epoch, 1, 9, &sealed), &refused);
        prop_assert_eq!(&open(&mut server.opener, epoch, 0, 10, &sealed), &refused);
        let mut out = vec![0; plain.len()];
        prop_assert_eq!(server.opener.open_into(epoch, 0, 9, b"other header", &sealed, &mut out), Err(OpenError::NotAuthentic));
        prop_assert!(open(&mut server.opener, epoch, 0, 9, &sealed).is_ok());
        prop_assert_eq!(server.opener.failed_pkts(), 4);
    }

    /// Packets lost and reordered by less than an epoch, any length of epoch: all that arrive open, exactly as sent.
    #[test]
    fn epochs_follow_through_loss_and_reordering(
        fates in prop::collection::vec((0_u64..20, prop::bool::weighted(0.2)), 1..3000), every in 40_u64..200
    ) {
        let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
        client.sealer.rotate_every(every);
        let mut sent: Vec<_> = fates.iter().enumerate().map(|(n, (delay, lost))| (n as u64 + delay, n as u64, *lost)).collect();
        let mut in_flight = Vec::new();
        sent.sort_by_key(|(_, n, _)| *n);
        for (due, n, lost) in sent {
            let (epoch, sealed) = seal(&mut client.sealer, 0, n, &n.to_be_bytes());
            if !lost {
                in_flight.push((due, n, epoch, sealed));
            }
            in_flight.sort_by_key(|(due, ..)| *due);
            while in_flight.first().is_some_and(|(due, ..)| *due <= n) {
                let (_, n, epoch, sealed) = in_flight.remove(0);
                prop_assert_eq!(open(&mut server.opener, epoch, 0, n, &sealed).unwrap(), n.to_be_bytes());
                client.sealer.on_acknowledged(0, n);
            }
        }
    }
}

#[test]
fn the_two_directions_have_different_keys() {
    let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
    let (_, from_client) = seal(&mut client.sealer, 0, 1, &[0; 64]);
    let (_, from_server) = seal(&mut server.sealer, 0, 1, &[0; 64]);
    assert_ne!(from_client, from_server);
    assert_eq!(open(&mut client.opener, 0, 0, 1, &from_client), Err(OpenError::NotAuthentic), "reflected");
}

#[test]
fn misfitting_buffers_are_errors() {
    let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
    assert_eq!(client.sealer.seal_into(0, 0, &[], &[0; 10], &mut [0; 25]), Err(SealError));
    assert_eq!(client.sealer.seal_into(0, 0, &[], &[0; 10], &mut [0; 27]), Err(SealError));
    for (sealed, out) in [(0, 0), (15, 0), (16, 1), (30, 13), (30, 15)] {
        let result = server.opener.open_into(0, 0, 0, &[], &vec![0; sealed], &mut vec![0; out]);
        assert_eq!(result, Err(OpenError::NotAuthentic), "{sealed} into {out}");
    }
    assert_eq!(server.opener.open_in_place(0, 0, 0, &[], &mut [0; 15]), Err(OpenError::NotAuthentic));
}

#[test]
fn the_key_changes_after_its_packets_and_an_acknowledgement() {
    let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
    client.sealer.rotate_every(4);
    for n in 0..600 {
        let (epoch, sealed) = seal(&mut client.sealer, 0, n, b"data");
        assert_eq!(u64::from(epoch), n / 4 % 256, "wraps");
        assert!(open(&mut server.opener, epoch, 0, n, &sealed).is_ok());
        client.sealer.on_acknowledged(0, n);
    }
    assert_eq!(server.opener.epoch(), (599_u64 / 4) as u8);
}

#[test]
fn without_an_acknowledgement_the_key_stays() {
    let (mut client, _) = pair(CipherSuite::Aes128Gcm);
    client.sealer.rotate_every(4);
    (0..100).for_each(|n| assert_eq!(seal(&mut client.sealer, 0, n, b"data").0, 0));
    client.sealer.on_acknowledged(1, 50);
    assert_eq!(client.sealer.epoch(), 0, "nothing was sent on that path");
    client.sealer.on_acknowledged(0, 0);
    assert_eq!(client.sealer.epoch(), 1);
    (100..200).for_each(|n| assert_eq!(seal(&mut client.sealer, 0, n, b"data").0, 1));
    client.sealer.on_acknowledged(0, 99);
    assert_eq!(client.sealer.epoch(), 1, "99 was of the epoch before");
    client.sealer.on_acknowledged(0, 100);
    assert_eq!(client.sealer.epoch(), 2);
}

#[test]
fn the_limit_of_use_changes_the_key_in_any_case() {
    let (mut client, _) = pair(CipherSuite::Aes128Gcm);
    client.sealer.sealed_pkts = PROTECTED_PACKETS_MAX - 1;
    assert_eq!(seal(&mut client.sealer, 0, 0, b"last").0, 0);
    assert_eq!(seal(&mut client.sealer, 0, 1, b"first").0, 1);
}

#[test]
fn late_packets_of_the_previous_epoch_open_until_the_next_change() {
    let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
    client.sealer.rotate_every(2);
    let sealed: Vec<_> = (0..5)
        .map(|n| {
            let packet = seal(&mut client.sealer, 0, n, b"data");
            client.sealer.on_acknowledged(0, n);
            packet
        })
        .collect();
    let opens = |opener: &mut Opener, n: usize| open(opener, sealed[n].0, 0, n as u64, &sealed[n].1);
    assert!(opens(&mut server.opener, 0).is_ok());
    assert!(opens(&mut server.opener, 2).is_ok());
    assert!(opens(&mut server.opener, 1).is_ok(), "of the epoch before");
    assert!(opens(&mut server.opener, 4).is_ok());
    assert!(opens(&mut server.opener, 3).is_ok());
    assert_eq!(opens(&mut server.opener, 0), Err(OpenError::UnknownEpoch { epoch: 0, current: 2 }));
}

#[test]
fn forged_epochs_change_nothing() {
    let (mut client, mut server) = pair(CipherSuite::Aes128Gcm);
    let (_, first) = seal(&mut client.sealer, 0, 0, b"data");
    for epoch in 0..=255 {
        assert!(open(&mut server.opener, epoch, 0, 77, &[epoch; 64]).is_err());
        assert!(epoch == 0 || open(&mut server.opener, epoch, 0, 0, &first).is_err(), "real packet, forged epoch {epoch}");
    }
    assert_eq!(server.opener.epoch(), 0);
    assert_eq!(server.opener.failed_pkts(), 3, "epochs 0 and 1 only are worth a trial");
    assert!(open(&mut server.opener, 0, 0, 0, &first).is_ok());
    client.sealer.rotate_every(1);
    client.sealer.on_acknowledged(0, 0);
    let (epoch, second) = seal(&mut client.sealer, 0, 1, b"data");
    assert_eq!((epoch, open(&mut server.opener, epoch, 0, 1, &second).is_ok()), (1, true));
}

#[test]
fn the_integrity_limit_is_reported() {
    let (mut client, mut server) = pair(CipherSuite::ChaCha20Poly1305);
    server.opener.limit_failures(3);
    let (_, good) = seal(&mut client.sealer, 0, 0, b"data");
    let mut forge = |n| open(&mut server.opener, 0, 0, n, &[0; 32]);
    assert_eq!(forge(1), Err(OpenError::NotAuthentic));
    assert_eq!(forge(2), Err(OpenError::NotAuthentic));
    assert_eq!(forge(3), Err(OpenError::IntegrityLimit));
    assert_eq!(open(&mut server.opener, 0, 0, 0, &good), Err(OpenError::IntegrityLimit));
}
