//! Two sides and a link between them, in virtual time.

mod carried;

use std::net::SocketAddr;
use std::sync::Arc;

use proptest::prelude::*;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;
use crate::crypto::TAG_LEN;
use crate::handshake::CookieJar;
use crate::handshake::wire::{self, Kind};
use crate::handshake::{Accept, Acceptor, Fault, Misbehaviour};
use crate::identity::{Identity, PeerTrust};

const CLIENT_CID: u32 = 11;
const SERVER_CID: u32 = 22;
const ATTEMPT: u64 = 0x1234_5678_9abc_def0;
const ONE_WAY: Duration = Duration::from_millis(40);

fn address() -> SocketAddr {
    "192.0.2.1:4000".parse().unwrap()
}

/// What the link does to datagrams, in per mille; decided by the seed.
#[derive(Debug, Clone, Copy, Default)]
struct Trouble {
    seed: u64,
    lost: u64,
    doubled: u64,
    corrupted: u64,
    delayed: u64,
}

impl Trouble {
    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        self.random() % 1000 < per_mille
    }
}

struct World {
    now: Time,
    trouble: Trouble,
    /// Arrival, towards the server?, bytes.
    link: Vec<(Time, bool, Vec<u8>)>,
    acceptor: Acceptor,
    client: Handshake,
    client_result: Option<Result<Established, HandshakeError>>,
    server_params: ServerParams,
    server: Option<Handshake>,
    server_result: Option<Result<Established, HandshakeError>>,
    /// Datagrams and bytes: by the client, by the server before it kept state, by the server in all.
    client_sent: Vec<usize>,
    stateless_bytes: usize,
    server_sent: Vec<usize>,
}

impl World {
    fn new(client: ClientParams, server: ServerParams, trouble: Trouble) -> Self {
        let now = Time::ZERO + Duration::from_secs(1000);
        Self {
            now,
            trouble,
            link: Vec::new(),
            acceptor: Acceptor::with_versions(CookieJar::new(&[3; 32]), server.versions.clone()),
            client: Handshake::client(now, client).unwrap(),
            client_result: None,
            server_params: server,
            server: None,
            server_result: None,
            client_sent: Vec::new(),
            stateless_bytes: 0,
            server_sent: Vec::new(),
        }
    }

    fn put(&mut self, to_server: bool, mut bytes: Vec<u8>) {
        let trouble = &mut self.trouble;
        if trouble.happens(trouble.lost) {
            return;
        }
        if trouble.happens(trouble.doubled) {
            let delay = Duration::from_millis(trouble.random() % 300);
            self.link.push((self.now + ONE_WAY + delay, to_server, bytes.clone()));
        }
        if trouble.happens(trouble.corrupted) {
            let bit = trouble.random() as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let delay = if trouble.happens(trouble.delayed) { trouble.random() % 200 } else { 0 };
        self.link.push((self.now + ONE_WAY + Duration::from_millis(delay), to_server, bytes));
    }

    fn drain(&mut self) {
        let mut buf = [0; wire::DATAGRAM_BYTES];
        while let Some(length) = self.client.poll_transmit(self.now, &mut buf) {
            self.client_sent.push(length);
            self.put(true, buf[..length].to_vec());
        }
        if let Some(established) = self.client.take_complete() {
            self.client_result = Some(Ok(established));
        }
        while let Some(length) = self.server.as_mut().and_then(|server| server.poll_transmit(self.now, &mut buf)) {
            self.server_sent.push(length);
            self.put(false, buf[..length].to_vec());
        }
        if let Some(established) = self.server.as_mut().and_then(Handshake::take_complete) {
            self.server_result = Some(Ok(established));
        }
    }

    fn deliver(&mut self, to_server: bool, mut bytes: Vec<u8>) {
        if !to_server {
            if let Err(error) = self.client.handle_datagram(self.now, &mut bytes) {
                self.client_result = Some(Err(error));
            }
            return;
        }
        if self.server.is_none() {
            match self.acceptor.handle(self.now, address(), &bytes, |_| true) {
                Accept::Respond(answer) => {
                    assert!(answer.len() < bytes.len(), "an answer without state is shorter than its cause");
                    self.stateless_bytes += answer.len();
                    return self.put(false, answer);
                }
                Accept::Begin(initial) if initial.attempt == ATTEMPT => {
                    self.server = Some(Handshake::server(self.now, self.server_params.clone(), &initial).unwrap());
                }
                Accept::Begin(_) | Accept::Ignore => return,
            }
        }
        if let Some(Err(error)) = self.server.as_mut().map(|server| server.handle_datagram(self.now, &mut bytes)) {
            self.server_result = Some(Err(error));
        }
    }

    /// One event. False if there is none left.
    fn step(&mut self) -> bool {
        self.drain();
        let timeouts = [self.client.poll_timeout(), self.server.as_ref().and_then(Handshake::poll_timeout)];
        let arrival = self.link.iter().map(|(at, ..)| *at).min();
        let Some(next) = timeouts.into_iter().flatten().chain(arrival).min() else { return false };
        self.now = self.now.max(next);
        if let Some(index) = self.link.iter().position(|(at, ..)| *at <= self.now) {
            let (_, to_server, bytes) = self.link.remove(index);
            self.deliver(to_server, bytes);
            return true;
        }
        if let Err(error) = self.client.handle_timeout(self.now) {
            self.client_result.get_or_insert(Err(error));
        }
        if let Some(Err(error)) = self.server.as_mut().map(|server| server.handle_timeout(self.now)) {
            self.server_result.get_or_insert(Err(error));
        }
        true
    }

    fn run(&mut self) {
        for _ in 0..10_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the handshake does not come to rest");
    }

    fn both(&mut self) -> (Established, Established) {
        self.run();
        (self.client_result.take().unwrap().unwrap(), self.server_result.take().unwrap().unwrap())
    }

    fn errors(&mut self) -> (HandshakeError, Option<HandshakeError>) {
        self.run();
        let client = self.client_result.take().unwrap().unwrap_err();
        (client, self.server_result.take().map(Result::unwrap_err))
    }
}

struct Setup {
    client_identity: Option<Identity>,
    server_identity: Identity,
    client_trust: PeerTrust,
    server_trust: PeerTrust,
    client_protocols: Vec<Vec<u8>>,
    server_protocols: Vec<Vec<u8>>,
}

impl Setup {
    fn new() -> Self {
        let (client, server) = (Identity::generate(), Identity::generate());
        Self {
            client_trust: PeerTrust::Pinned(vec![server.public_key().fingerprint()]),
            server_trust: PeerTrust::Pinned(vec![client.public_key().fingerprint()]),
            client_identity: Some(client),
            server_identity: server,
            client_protocols: vec![b"other/1".to_vec(), b"copy/1".to_vec()],
            server_protocols: vec![b"copy/1".to_vec()],
        }
    }

    fn client(&self) -> ClientParams {
        let tls = ClientTls::new(self.client_identity.as_ref(), &self.client_trust, self.client_protocols.clone()).unwrap();
        let transport = TransportParams { max_streams: 100, ..TransportParams::default() };
        ClientParams::new(tls, transport, CLIENT_CID, ATTEMPT)
    }

    fn server(&self) -> ServerParams {
        let tls = ServerTls::new(&self.server_identity, &self.server_trust, self.server_protocols.clone()).unwrap();
        let transport = TransportParams { max_streams: 200, features: 6, ..TransportParams::default() };
        ServerParams::new(tls, transport, SERVER_CID)
    }

    fn world(&self, trouble: Trouble) -> World {
        World::new(self.client(), self.server(), trouble)
    }
}

fn assert_same_keys(client: &mut Established, server: &mut Established) {
    let mut sealed = [0; 4 + TAG_LEN];
    let (client_keys, server_keys) = (&mut client.keys, &mut server.keys);
    client_keys.sealer.seal_into(0, 1, b"head", b"data", &mut sealed).unwrap();
    server_keys.opener.open_in_place(0, 0, 1, b"head", &mut sealed).unwrap();
    server_keys.sealer.seal_into(0, 1, b"head", b"data", &mut sealed).unwrap();
    client_keys.opener.open_in_place(0, 0, 1, b"head", &mut sealed).unwrap();
    assert_eq!(client.suite, server.suite);
}

#[test]
fn a_handshake_in_quiet_weather() {
    let setup = Setup::new();
    let mut world = setup.world(Trouble::default());
    let start = world.now;
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!((client.peer_cid, server.peer_cid), (SERVER_CID, CLIENT_CID));
    assert_eq!((client.peer_params.max_streams, server.peer_params.max_streams), (200, 100));
    assert_eq!((client.peer_params.features, client.version, server.version), (6, 1, 1));
    assert_eq!((client.protocol.as_deref(), server.protocol.as_deref()), (Some(&b"copy/1"[..]), Some(&b"copy/1"[..])));
    assert_eq!(client.peer_key.as_ref(), Some(setup.server_identity.public_key()));
    assert_eq!(server.peer_key.as_ref(), setup.client_identity.as_ref().map(Identity::public_key));
    assert_eq!((client.rtt, server.rtt), (Some(ONE_WAY * 2), Some(ONE_WAY * 2)));
    assert!(world.client.is_settled() && world.server.as_ref().is_some_and(Handshake::is_settled));
    assert_eq!(world.now - start, ONE_WAY * 6, "RETRY, hellos, Finished and its acknowledgement; no timer ran");
    assert!(world.client_sent.iter().filter(|length| **length == 1200).count() == 4, "two hellos of two datagrams, padded");
    assert_eq!(
        client.suite,
        if crate::crypto::has_aes_instructions() { CipherSuite::Aes128Gcm } else { CipherSuite::ChaCha20Poly1305 }
    );
}

#[test]
fn an_admission_token_saves_the_round_trip_and_proves_no_address() {
    let setup = Setup::new();
    let mut world = setup.world(Trouble::default());
    let admission = world.acceptor.cookies().admit(world.now + Duration::from_secs(60), 5).to_vec();
    world.client = Handshake::client(world.now, ClientParams { admission: Some(admission), ..setup.client() }).unwrap();
    let start = world.now;
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!(world.stateless_bytes, 0);
    assert_eq!(world.now - start, ONE_WAY * 4);
    assert_eq!(server.rtt, Some(ONE_WAY * 2));
}

#[test]
fn a_stale_admission_token_falls_back_to_a_cookie() {
    let setup = Setup::new();
    let mut world = setup.world(Trouble::default());
    let admission = world.acceptor.cookies().admit(world.now.before(Duration::from_secs(1)), 5).to_vec();
    world.client = Handshake::client(world.now, ClientParams { admission: Some(admission), ..setup.client() }).unwrap();
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert!(world.stateless_bytes > 0);
}

#[test]
fn an_unproved_address_gets_three_times_what_it_sent_at_most() {
    let setup = Setup::new();
    let mut world = setup.world(Trouble::default());
    let admission = world.acceptor.cookies().admit(world.now + Duration::from_secs(60), 5).to_vec();
    world.client = Handshake::client(world.now, ClientParams { admission: Some(admission), ..setup.client() }).unwrap();
    world.drain();
    let spoofed = std::mem::take(&mut world.link);
    for (_, to_server, bytes) in spoofed {
        world.deliver(to_server, bytes);
    }
    let mut buf = [0; wire::DATAGRAM_BYTES];
    let server = world.server.as_mut().unwrap();
    let mut sent = 0;
    while let Some(at) = server.poll_timeout() {
        while let Some(length) = server.poll_transmit(at, &mut buf) {
            sent += length;
        }
        if server.handle_timeout(at).is_err() {
            break;
        }
    }
    let received: usize = world.client_sent.iter().sum();
    assert!(sent > received && sent <= 3 * received, "{sent} bytes for {received}");
    assert_eq!(server.failure(), Some(&HandshakeError::TimedOut { heard: true }));
}

#[test]
fn an_anonymous_client_is_let_in_where_anyone_is() {
    let setup = Setup { client_identity: None, server_trust: PeerTrust::Anyone, ..Setup::new() };
    let (client, server) = setup.world(Trouble::default()).both();
    assert_eq!(server.peer_key, None);
    assert!(client.peer_key.is_some());
}

#[test]
fn a_known_client_shows_its_key_where_anyone_is_let_in() {
    let setup = Setup { server_trust: PeerTrust::Anyone, ..Setup::new() };
    let (_, server) = setup.world(Trouble::default()).both();
    assert_eq!(server.peer_key.as_ref(), setup.client_identity.as_ref().map(Identity::public_key));
}

#[test]
fn no_protocols_on_either_side_are_fine() {
    let setup = Setup { client_protocols: vec![], server_protocols: vec![], ..Setup::new() };
    let (client, server) = setup.world(Trouble::default()).both();
    assert_eq!((client.protocol, server.protocol), (None, None));
}

#[test]
fn a_client_refuses_a_server_that_it_does_not_know() {
    let setup = Setup { client_trust: PeerTrust::Pinned(vec![[9; 32].into()]), ..Setup::new() };
    let fingerprint = setup.server_identity.public_key().fingerprint();
    let (client, server) = setup.world(Trouble::default()).errors();
    assert_eq!(client, HandshakeError::PeerNotTrusted { fingerprint });
    assert_eq!(server, Some(HandshakeError::Refused { alert: 46 }));
    assert_eq!((client.fault(), server.unwrap().fault()), (Fault::NotTrusted, Fault::NotTrusted));
}

#[test]
fn a_server_refuses_a_client_that_it_does_not_know() {
    let setup = Setup { server_trust: PeerTrust::Callback(Arc::new(|_| false)), ..Setup::new() };
    let fingerprint = setup.client_identity.as_ref().unwrap().public_key().fingerprint();
    let (client, server) = setup.world(Trouble::default()).errors();
    assert_eq!(client, HandshakeError::Refused { alert: 46 });
    assert_eq!(server, Some(HandshakeError::PeerNotTrusted { fingerprint }));
}

#[test]
fn a_server_that_wants_to_know_its_clients_refuses_an_anonymous_one() {
    let setup = Setup { client_identity: None, ..Setup::new() };
    let (client, server) = setup.world(Trouble::default()).errors();
    assert_eq!(client, HandshakeError::Refused { alert: 116 });
    assert_eq!(server, Some(HandshakeError::ClientAnonymous));
    assert_eq!(client.to_string(), "peer refused the connection: it wants to know who this side is");
}

#[test]
fn a_refusal_that_is_lost_is_said_again() {
    let setup = Setup { client_identity: None, ..Setup::new() };
    let mut world = setup.world(Trouble::default());
    let mut dropped = 0;
    while world.client_result.as_ref().is_none_or(Result::is_ok) && world.step() {
        if world.server_result.is_some() && dropped < 3 {
            world.drain();
            let before = world.link.len();
            world.link.retain(|(_, to_server, _)| *to_server);
            dropped += before - world.link.len();
        }
    }
    assert_eq!((dropped, world.client_result.unwrap().unwrap_err()), (3, HandshakeError::Refused { alert: 116 }));
}

#[test]
fn without_a_common_protocol_both_sides_say_so() {
    let setup = Setup { client_protocols: vec![b"other/1".to_vec()], ..Setup::new() };
    let (client, server) = setup.world(Trouble::default()).errors();
    assert_eq!((client, server), (HandshakeError::NoCommonProtocol, Some(HandshakeError::NoCommonProtocol)));
}

fn authority(name: &str) -> (CertificateDer<'static>, rcgen::Issuer<'static, rcgen::KeyPair>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().der().clone();
    (certificate, rcgen::Issuer::new(params, key))
}

fn certified(issuer: &rcgen::Issuer<'static, rcgen::KeyPair>, name: &str) -> Identity {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    Identity::from_certificate(vec![certificate.der().clone()], &key).unwrap()
}

#[test]
fn certificates_of_an_authority_on_both_sides() {
    let (root, issuer) = authority("authority");
    let trust = |name: &str| PeerTrust::CertificateAuthority { roots: vec![root.clone()], server_name: name.to_owned() };
    let mut setup = Setup {
        client_identity: Some(certified(&issuer, "client.test")),
        server_identity: certified(&issuer, "server.test"),
        client_trust: trust("server.test"),
        server_trust: trust("whoever.test"),
        ..Setup::new()
    };
    let (mut client, mut server) = setup.world(Trouble::default()).both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!(client.peer_key.as_ref(), Some(setup.server_identity.public_key()));
    assert_eq!(server.peer_key.as_ref(), setup.client_identity.as_ref().map(Identity::public_key));

    setup.client_trust = trust("other.test");
    let (client, server) = setup.world(Trouble::default()).errors();
    assert!(matches!(client, HandshakeError::BadCertificate(_)), "{client:?}");
    assert_eq!(server, Some(HandshakeError::Refused { alert: 42 }));

    let (_, stranger) = authority("stranger");
    setup.client_trust = trust("server.test");
    setup.client_identity = Some(certified(&stranger, "client.test"));
    let (client, server) = setup.world(Trouble::default()).errors();
    assert!(matches!(server, Some(HandshakeError::BadCertificate(_))), "{server:?}");
    assert_eq!(client.fault(), Fault::NotTrusted);
}

#[test]
fn raw_keys_and_certificates_do_not_mix_in_one_direction() {
    let (root, issuer) = authority("authority");
    let trust = PeerTrust::CertificateAuthority { roots: vec![root], server_name: "server.test".to_owned() };
    let setup = Setup { client_trust: trust, ..Setup::new() };
    let (client, server) = setup.world(Trouble::default()).errors();
    assert_eq!((client.fault(), server.unwrap().fault()), (Fault::PeerUnsupported, Fault::PeerUnsupported));

    let setup = Setup { server_identity: certified(&issuer, "server.test"), server_trust: PeerTrust::Anyone, ..Setup::new() };
    let (client, server) = setup.world(Trouble::default()).errors();
    assert_eq!((client.fault(), server.unwrap().fault()), (Fault::PeerUnsupported, Fault::PeerUnsupported));
}

#[test]
fn a_newer_client_comes_down_to_the_version_of_an_older_server() {
    let setup = Setup::new();
    let client = ClientParams { versions: vec![9, 1], ..setup.client() };
    let mut world = World::new(client, setup.server(), Trouble::default());
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!((client.version, server.version, server.peer_params.versions), (1, 1, vec![9, 1]));
}

#[test]
fn without_a_common_version_the_client_says_which_there_are() {
    let setup = Setup::new();
    let client = ClientParams { versions: vec![9, 8], ..setup.client() };
    let (client, server) = World::new(client, setup.server(), Trouble::default()).errors();
    assert_eq!(client, HandshakeError::VersionMismatch { ours: vec![9, 8], theirs: vec![1] });
    assert_eq!((client.fault(), server), (Fault::PeerUnsupported, None));
}

#[test]
fn a_forged_version_packet_is_found_out() {
    let setup = Setup::new();
    let client = ClientParams { versions: vec![9, 1], ..setup.client() };
    let server = ServerParams { versions: vec![9, 1], ..setup.server() };
    let mut world = World::new(client, server, Trouble::default());
    let invariant =
        wire::Invariant { kind: Kind::Version, version: 0, destination_cid: CLIENT_CID, source_cid: 0, attempt: ATTEMPT };
    world.put(false, wire::Answer { invariant, echo: 0, content: &[1] }.encode());
    let (client, server) = world.errors();
    assert_eq!(client, HandshakeError::PeerMisbehaved(Misbehaviour::Downgrade));
    assert_eq!(server, Some(HandshakeError::Refused { alert: 47 }));
}

#[test]
fn of_several_cookies_for_one_flight_the_first_is_taken() {
    let mut world = Setup::new().world(Trouble::default());
    world.drain();
    for (_, _, bytes) in std::mem::take(&mut world.link) {
        world.now += Duration::from_micros(10);
        world.deliver(true, bytes);
    }
    let retries = std::mem::take(&mut world.link);
    assert_eq!(retries.len(), 2);
    assert_ne!(retries[0].2, retries[1].2);
    for (_, _, bytes) in retries {
        world.deliver(false, bytes);
        world.drain();
    }
    assert_eq!(world.client_sent.len(), 4, "the hello once without and once with a cookie");
}

#[test]
fn an_expired_cookie_is_replaced() {
    let setup = Setup::new();
    let client = ClientParams { timeout: Duration::from_secs(60), ..setup.client() };
    let mut world = World::new(client, setup.server(), Trouble::default());
    while world.stateless_bytes == 0 || !world.link.is_empty() && world.link.iter().all(|(_, to_server, _)| !to_server) {
        assert!(world.step());
        world.drain();
    }
    // The hello with the cookie is held up on the way for longer than the cookie lasts.
    world.link.iter_mut().for_each(|(at, ..)| *at += Duration::from_secs(31));
    world.client.timing.on_progress(world.now + Duration::from_secs(40));
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!(world.client.retries, 2);
}

#[test]
fn who_hears_nothing_knows_it() {
    let trouble = Trouble { lost: 1000, ..Trouble::default() };
    let mut world = Setup::new().world(trouble);
    let start = world.now;
    let (client, _) = world.errors();
    assert_eq!(client, HandshakeError::TimedOut { heard: false });
    assert_eq!((world.now - start, client.to_string().as_str()), (Duration::from_secs(5), "peer does not answer"));
    assert!(world.client_sent.len() < 14, "the timer doubles: {}", world.client_sent.len());
}

/// When a hello that is lost comes again, and then again.
fn repeats(expected_rtt: Option<Duration>) -> [u128; 2] {
    let setup = Setup::new();
    let mut world = World::new(ClientParams { expected_rtt, ..setup.client() }, setup.server(), Trouble::default());
    let mut at = world.now;
    [(); 2].map(|()| {
        world.drain();
        assert_eq!(std::mem::take(&mut world.link).len(), 2, "the whole hello");
        let passed = world.client.poll_timeout().unwrap().since(at);
        at += passed;
        world.now = at;
        assert_eq!(world.client.handle_timeout(at), Ok(true));
        passed.as_millis()
    })
}

#[test]
fn a_lost_hello_comes_again_by_the_round_trip_that_is_expected() {
    let ms = Duration::from_millis;
    assert_eq!(repeats(None), [250, 500]);
    assert_eq!(repeats(Some(ms(1))), [20, 40], "the server may be busy for a moment");
    assert_eq!(repeats(Some(ms(50))), [100, 200]);
    assert_eq!(repeats(Some(ms(500))), [250, 500], "no later than without");
}

/// The path has become much longer: what is repeated in vain is a few hellos, and what is measured is the path.
#[test]
fn a_round_trip_that_is_not_the_expected_one_costs_bytes_alone() {
    let setup = Setup::new();
    let expected_rtt = Some(Duration::from_micros(500));
    let mut world = World::new(ClientParams { expected_rtt, ..setup.client() }, setup.server(), Trouble::default());
    let start = world.now;
    let (mut client, mut server) = world.both();
    assert_same_keys(&mut client, &mut server);
    assert_eq!(client.rtt, Some(ONE_WAY * 2));
    let plain = {
        let mut world = setup.world(Trouble::default());
        world.both();
        world.client_sent.len()
    };
    // At 20 and 60 ms, each two datagrams; the server answers each of them in fewer bytes, and keeps no state for it.
    assert_eq!(world.client_sent.len(), plain + 4, "{:?}", world.client_sent);
    assert_eq!(world.client.retries, 1);
    assert!(world.now.since(start) < Duration::from_secs(1));
}

#[test]
fn a_lost_finished_comes_again_until_acknowledged() {
    let mut world = Setup::new().world(Trouble::default());
    let mut dropped = 0;
    loop {
        world.drain();
        if world.client_result.is_some() && dropped < 3 {
            let before = world.link.len();
            world.link.retain(|(_, to_server, _)| !to_server);
            dropped += before - world.link.len();
        }
        if !world.step() {
            break;
        }
    }
    assert_eq!(dropped, 3);
    assert!(world.client_result.unwrap().is_ok() && world.server_result.unwrap().is_ok());
    assert!(world.client.is_settled());
}

#[test]
fn an_authentic_data_packet_settles_a_handshake() {
    let mut world = Setup::new().world(Trouble::default());
    while world.client_result.is_none() {
        assert!(world.step());
    }
    world.drain();
    assert!(!world.client.is_settled() && world.client.poll_timeout().is_some());
    world.client.confirm();
    assert!(world.client.is_settled() && world.client.poll_timeout().is_none());
}

#[test]
fn connection_ids_and_attempt_are_part_of_the_keys() {
    let mut world = Setup::new().world(Trouble::default());
    let _ = world.both();
    let server = world.server.as_mut().unwrap();
    let context = world.client.exporter_context(SERVER_CID);
    assert_eq!(context, server.exporter_context(CLIENT_CID));
    assert_ne!(context, world.client.exporter_context(SERVER_CID + 1));
    server.attempt ^= 1;
    assert_ne!(context, server.exporter_context(CLIENT_CID));
    let secret = |context: &[u8]| world.client.session.exporter_secret(context).unwrap();
    assert_ne!(secret(&context), secret(&server.exporter_context(CLIENT_CID)));
}

proptest! {
    /// Lost, doubled, reordered, corrupted: with enough time the handshake completes, with the same keys on both sides.
    #[test]
    fn handshakes_complete_in_bad_weather(
        seed: u64, lost in 0_u64..350, doubled in 0_u64..300, corrupted in 0_u64..250, delayed in 0_u64..500
    ) {
        let setup = Setup::new();
        let timeout = Duration::from_secs(1200);
        let client = ClientParams { timeout, ..setup.client() };
        let server = ServerParams { timeout, ..setup.server() };
        let mut world = World::new(client, server, Trouble { seed, lost, doubled, corrupted, delayed });
        let (mut client, mut server) = world.both();
        assert_same_keys(&mut client, &mut server);
        prop_assert_eq!(client.peer_key.as_ref(), Some(setup.server_identity.public_key()));
        prop_assert!(client.rtt.is_none_or(|rtt| rtt >= ONE_WAY * 2) && server.rtt.is_none_or(|rtt| rtt >= ONE_WAY * 2));
    }

    /// Random bytes, and real packets with random changes, at every stage: no panic, no harm.
    #[test]
    fn hostile_datagrams_do_no_harm(
        seed: u64, junk in prop::collection::vec((0_usize..60, any::<bool>(), prop::collection::vec(any::<u8>(), 0..1300), 0x80_u8..0x84, 0_u8..3), 0..60)
    ) {
        let mut world = Setup::new().world(Trouble { seed, ..Trouble::default() });
        let mut steps = 0;
        loop {
            for (_, to_server, bytes, kind, effort) in junk.iter().filter(|(at, ..)| *at == steps) {
                let mut bytes = bytes.clone();
                match effort {
                    // As it is; then with the clear part of the header right; then a real packet, damaged.
                    0 => {}
                    1 if bytes.len() >= 24 => {
                        let cid = if *to_server { SERVER_CID } else { CLIENT_CID };
                        bytes[0] = *kind;
                        bytes[1] = 1;
                        bytes[2..6].copy_from_slice(&cid.to_be_bytes());
                        bytes[10..18].copy_from_slice(&ATTEMPT.to_be_bytes());
                    }
                    _ => {
                        if let Some((_, _, real)) = world.link.iter().find(|(_, direction, _)| direction == to_server) {
                            let mut real = real.clone();
                            for (place, change) in bytes.iter().enumerate().step_by(7) {
                                let index = (place * 31 + usize::from(*change)) % real.len();
                                real[index] = *change;
                            }
                            bytes = real;
                        }
                    }
                }
                world.deliver(*to_server, bytes);
            }
            steps += 1;
            if !world.step() {
                break;
            }
        }
        prop_assert!(world.client_result.unwrap().is_ok());
        prop_assert!(world.server_result.unwrap().is_ok());
    }

    /// Nothing that comes without a valid token makes state or gets a longer answer.
    #[test]
    fn strangers_get_no_state(mut bytes in prop::collection::vec(any::<u8>(), 0..1500), shaped: bool, token_len in 0_u8..60) {
        let acceptor = Acceptor::new(CookieJar::new(&[3; 32]));
        if shaped && bytes.len() > 24 {
            bytes[..2].copy_from_slice(&[0x80, 1]);
            bytes[2..6].fill(0);
            bytes[22..24].copy_from_slice(&[0, token_len]);
        }
        match acceptor.handle(Time::ZERO, address(), &bytes, |_| true) {
            Accept::Respond(answer) => prop_assert!(answer.len() < bytes.len()),
            Accept::Ignore => {}
            Accept::Begin(_) => prop_assert!(false, "a forged token was taken"),
        }
    }
}

#[test]
fn a_cookie_begins_only_the_attempt_and_address_that_it_is_of() {
    let setup = Setup::new();
    let mut world = setup.world(Trouble::default());
    while world.server.is_none() && world.link.iter().all(|(_, to_server, bytes)| !to_server || bytes[23] == 0) {
        assert!(world.step());
        world.drain();
    }
    let with_cookie = world.link.iter().find(|(_, to_server, bytes)| *to_server && bytes[23] == 25).unwrap().2.clone();
    let judge = |after: u64, from: &str, bytes: &[u8]| {
        let accept = world.acceptor.handle(world.now + Duration::from_secs(after), from.parse().unwrap(), bytes, |_| true);
        matches!(accept, Accept::Begin(_))
    };
    assert!(judge(0, "192.0.2.1:4000", &with_cookie));
    assert!(judge(29, "192.0.2.1:4000", &with_cookie));
    assert!(!judge(31, "192.0.2.1:4000", &with_cookie), "expired");
    assert!(!judge(0, "192.0.2.66:4000", &with_cookie), "replayed from another host");
    assert!(!judge(0, "192.0.2.1:4001", &with_cookie), "from another port");
    let mut other_attempt = with_cookie.clone();
    other_attempt[17] ^= 1;
    assert!(!judge(0, "192.0.2.1:4000", &other_attempt));
    assert!(!judge(0, "192.0.2.1:4000", &with_cookie[..1199]), "too short to be answered");
}
