//! Handshakes whose hellos go another way.

use super::*;

/// Both sides when the answer has been carried back, which takes as long as a round trip.
fn carried(setup: &Setup, timeout: Duration, trouble: Trouble) -> World {
    let mut world = World::new(ClientParams { timeout, ..setup.client() }, setup.server(), trouble);
    let params = ServerParams { timeout, ..setup.server() };
    let (server, answer) = Handshake::carried(world.now, params, &world.client.opening()).unwrap();
    world.now += ONE_WAY;
    world.client.on_answer(world.now, &answer).unwrap();
    world.client.begin_asking(world.now, timeout);
    world.server = Some(server);
    world
}

const SECONDS_5: Duration = Duration::from_secs(5);

#[test]
fn it_takes_no_round_trip_over_udp() {
    let setup = Setup::new();
    let mut world = carried(&setup, SECONDS_5, Trouble::default());
    let start = world.now;
    assert!(world.client.is_complete() && !world.client.has_heard());
    assert_eq!(world.server.as_mut().unwrap().poll_transmit(start, &mut [0; 1200]), None, "nobody knows where the client is");
    world.drain();
    assert_eq!(world.link.len(), 1, "one packet with Finished, and data may follow");
    assert!(world.step() && world.server.as_ref().unwrap().is_complete());
    assert_eq!(world.now - start, ONE_WAY);
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!((client.peer_cid, server.peer_cid), (SERVER_CID, CLIENT_CID));
    assert_eq!((client.peer_params.max_streams, server.peer_params.max_streams), (200, 100));
    assert_eq!(client.protocol.as_deref(), Some(&b"copy/1"[..]));
    assert_eq!(server.peer_key.as_ref(), setup.client_identity.as_ref().map(Identity::public_key));
    assert_eq!((client.rtt, server.rtt), (None, Some(ONE_WAY * 2)), "from the answer to the packet that echoes it");
    assert!(world.client.is_settled() && world.server.as_ref().is_some_and(Handshake::is_settled));
    assert_eq!(world.now - start, ONE_WAY * 2, "no timer ran");
}

#[test]
fn a_lost_or_doubled_finished_does_no_harm() {
    let setup = Setup::new();
    let mut world = carried(&setup, SECONDS_5, Trouble::default());
    world.drain();
    let lost = world.link.pop().unwrap();
    while world.link.is_empty() {
        assert!(world.step(), "timers only");
        world.drain();
    }
    let (_, _, again) = &world.link[0];
    assert_ne!(&lost.2, again);
    world.put(true, lost.2);
    let twice = world.link[0].2.clone();
    world.put(true, twice);
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
}

#[test]
fn a_server_that_is_not_heard_is_told_apart_from_one_that_is_slow() {
    let mut world = carried(&Setup::new(), SECONDS_5, Trouble { lost: 1000, ..Trouble::default() });
    let (start, mut end) = (world.now, None);
    while end.is_none() {
        world.now = world.client.poll_timeout().unwrap();
        end = world.client.handle_timeout(world.now).err();
    }
    assert_eq!((end, world.now - start), (Some(HandshakeError::TimedOut { heard: false }), SECONDS_5));
    let server = world.server.as_mut().unwrap();
    let end = server.handle_timeout(world.now);
    assert_eq!(end, Err(HandshakeError::TimedOut { heard: false }), "what nobody takes up is forgotten");
}

/// Its keys follow from what everybody on the way sees.
#[test]
fn packets_of_level_initial_no_longer_count() {
    let setup = Setup::new();
    let mut world = carried(&setup, SECONDS_5, Trouble::default());
    let forger = Handshake::client(world.now, setup.client()).unwrap();
    let mut buf = [0; wire::DATAGRAM_BYTES];
    let mut initial = Handshake { peer_cid: Some(SERVER_CID), ..forger };
    let length = initial.poll_transmit(world.now, &mut buf).unwrap();
    let server = world.server.as_mut().unwrap();
    server.handle_datagram(world.now, &mut buf[..length]).unwrap();
    assert!(!server.has_heard());
    initial.close_due = Some((crate::handshake::Level::Initial, 40));
    let length = initial.poll_transmit(world.now, &mut buf).unwrap();
    server.handle_datagram(world.now, &mut buf[..length]).unwrap();
    assert!(!server.has_heard());
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
}

#[test]
fn who_is_not_trusted_is_refused_on_either_side() {
    let strange = PeerTrust::Pinned(vec![[9; 32].into()]);
    let setup = Setup { client_trust: strange.clone(), ..Setup::new() };
    let mut client = Handshake::client(Time::ZERO, setup.client()).unwrap();
    let (_, answer) = Handshake::carried(Time::ZERO, setup.server(), &client.opening()).unwrap();
    let refused = client.on_answer(Time::ZERO, &answer);
    assert_eq!(refused.unwrap_err().fault(), Fault::NotTrusted);
    assert!(client.take_complete().is_none());

    let setup = Setup { server_trust: strange, ..Setup::new() };
    let (client, server) = carried(&setup, SECONDS_5, Trouble::default()).errors();
    assert_eq!(client, HandshakeError::Refused { alert: 46 });
    assert_eq!(server.map(|error| error.fault()), Some(Fault::NotTrusted));
}

#[test]
fn what_is_not_an_opening_or_an_answer_is_refused() {
    let setup = Setup::new();
    let mut client = Handshake::client(Time::ZERO, setup.client()).unwrap();
    let opening = client.opening();
    let refused = |opening: &[u8]| Handshake::carried(Time::ZERO, setup.server(), opening).unwrap_err();
    assert_eq!(refused(&[]), HandshakeError::PeerMisbehaved(Misbehaviour::Malformed));
    assert_eq!(refused(&opening[..opening.len() - 1]), HandshakeError::PeerMisbehaved(Misbehaviour::Malformed));
    assert_eq!(refused(&vec![1; 70_000]), HandshakeError::PeerMisbehaved(Misbehaviour::TooLong));
    let newer = [&[9], &opening[1..]].concat();
    assert_eq!(refused(&newer), HandshakeError::VersionMismatch { ours: vec![1], theirs: vec![9] });
    let (_, answer) = Handshake::carried(Time::ZERO, setup.server(), &opening).unwrap();
    let half = client.on_answer(Time::ZERO, &answer[..answer.len() - 1]);
    assert_eq!(half, Err(HandshakeError::PeerMisbehaved(Misbehaviour::Malformed)));
    assert!(client.on_answer(Time::ZERO, &answer).is_err(), "only one answer counts");
}

proptest! {
    #[test]
    fn carried_handshakes_complete_in_bad_weather(
        seed: u64, lost in 0_u64..350, doubled in 0_u64..300, corrupted in 0_u64..250, delayed in 0_u64..500
    ) {
        let trouble = Trouble { seed, lost, doubled, corrupted, delayed };
        let (mut client, mut server) = carried(&Setup::new(), Duration::from_secs(120), trouble).both();
        assert_same_keys(&mut client, &mut server);
        prop_assert!(client.rtt.is_none() && server.rtt.is_none_or(|rtt| rtt >= ONE_WAY * 2));
    }

    /// A channel that changes what it carries: both sides refuse, or never come together, and nobody panics.
    #[test]
    fn changed_messages_make_no_connection(opening_at: prop::sample::Index, answer_at: prop::sample::Index, change in 1_u8.., of_opening: bool) {
        let setup = Setup::new();
        let mut world = World::new(setup.client(), setup.server(), Trouble::default());
        let mut opening = world.client.opening();
        if of_opening {
            let at = opening_at.index(opening.len());
            opening[at] ^= change;
        }
        let Ok((server, mut answer)) = Handshake::carried(world.now, setup.server(), &opening) else { return Ok(()) };
        if !of_opening {
            let at = answer_at.index(answer.len());
            answer[at] ^= change;
        }
        if world.client.on_answer(world.now, &answer).is_err() {
            return Ok(());
        }
        world.server = Some(server);
        world.run();
        prop_assert!(world.server_result.is_none_or(|result| result.is_err()));
    }
}
