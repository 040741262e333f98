//! What strangers cost at every listener, how long they stay, and who is served meanwhile.

mod turns;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use e2e::{Running, Stopwatch, eventually, pause};
use haul_proto::StreamKind;
use haul_proto::identity::Identity;
use hostile::{Attempt, Client, Crowd, Lie, Listener, Manner, Outcome, Peer, Sources, Step, Victim};
use turns::turn;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 7, 7, 7));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 6, 6));
/// Strangers have so long before they are shown out; the rest is slack for a machine with other things to do.
const GRACE: Duration = Duration::from_secs(10);
const SLACK: Duration = Duration::from_secs(6);
const STRANGER_BYTES: u64 = 1 << 20;
/// So many are let in at each listener, and as many stop halfway.
const PEERS: u8 = 16;
/// What one that has a key may have at the least: the smallest part of the memory that a daemon gives (docs/use/serve.md). All of them together stay below it.
const KEYED_BYTES: u64 = 14 << 20;
/// What a process may grow by for reasons of its own: threads' first stacks, arenas of the allocator.
const OWN_BYTES: u64 = 8 << 20;

/// A stranger with a key that it made itself, if the listener talks to such at all.
fn stranger(victim: &Victim, listener: Listener, source: IpAddr) -> Option<Box<Peer>> {
    Attempt::begin(victim.address, source, Some(&Identity::generate()), listener.protocol()).finish()
}

#[test]
fn a_stranger_costs_less_than_a_mebibyte_and_is_gone_after_ten_seconds() {
    let _turn = turn();
    let source = |index: u8| IpAddr::V4(Ipv4Addr::new(127, 10 + index, 0, 1));
    let mut visited = Vec::new();
    for listener in Listener::ALL {
        let victim = Victim::start_open(listener);
        let before = victim.readings();
        // `haul serve` lets in nobody without an authorised key: there it is handshakes that are begun and left.
        let mut peers: Vec<_> = (0..PEERS).filter_map(|index| stranger(&victim, listener, source(index))).collect();
        assert_eq!(peers.len(), if listener == Listener::Serve { 0 } else { usize::from(PEERS) }, "{listener:?}");
        // Some open their stream and say no more than that, some nothing at all.
        for peer in peers.iter_mut().take(usize::from(PEERS / 4)) {
            peer.play(&[Step::Streams(StreamKind::Bidirectional, 1)]);
        }
        for peer in peers.iter_mut().skip(usize::from(PEERS / 2)) {
            peer.play(&[
                Step::OneByteBlocks(500),
                Step::Streams(StreamKind::Bidirectional, 200),
                Step::Speak(vec![b'x'; 20_000]),
            ]);
        }
        let attempt = |index| Attempt::begin(victim.address, source(index), None, listener.protocol()).halfway();
        let mut attempts: Vec<_> = (0..PEERS).map(attempt).collect();
        assert!(eventually(Duration::from_secs(20), || {
            attempts = attempts
                .drain(..)
                .filter_map(|attempt| if let Outcome::Waiting(attempt) = attempt.step() { Some(attempt) } else { None })
                .collect();
            attempts.iter().all(Attempt::has_stopped)
        }));
        assert_eq!(attempts.len(), usize::from(PEERS), "{listener:?}");
        let during = victim.readings();
        let grown = during.rss_bytes.saturating_sub(before.rss_bytes);
        println!("{listener:?}: {} strangers and {PEERS} halfway: {} KiB, {during:?}", peers.len(), grown >> 10);
        let allowed = 2 * u64::from(PEERS) * STRANGER_BYTES;
        assert!(grown < allowed, "{listener:?}: {} strangers cost {} KiB", 2 * PEERS, grown >> 10);
        visited.push((listener, victim, before, peers, attempts));
    }
    let watch = Stopwatch::start();
    for (listener, victim, before, peers, _attempts) in &mut visited {
        for (index, peer) in peers.iter_mut().enumerate() {
            let left = (GRACE + SLACK).saturating_sub(watch.elapsed()).max(Duration::from_secs(1));
            assert!(peer.is_ended_within(left), "{listener:?}: stranger {index} is still there");
        }
        let alone = || victim.readings().threads <= before.threads + 2 && victim.readings().descriptors <= before.descriptors + 2;
        assert!(eventually(GRACE + SLACK, alone), "{listener:?}: before {before:?}, left {:?}", victim.readings());
        let left = victim.readings().rss_bytes.saturating_sub(before.rss_bytes);
        println!("{listener:?}: {} KiB are left after {:?}", left >> 10, watch.elapsed());
        assert!(left < OWN_BYTES, "{listener:?}: {} KiB are still held", left >> 10);
    }
}

#[test]
fn an_authorised_client_is_served_among_strangers() {
    let _turn = turn();
    // Where a list of keys turns them away, strangers stay by stopping halfway.
    let manner_at = |listener| if listener == Listener::Perf { Manner::Silent } else { Manner::Halfway };
    for (listener, manner) in Listener::ALL.map(|listener| (listener, manner_at(listener))) {
        let client = Client::new();
        let victim = Victim::start(listener, &[&client.key()]);
        client.trust(victim.address, &victim.key);
        let visit = || {
            let finished = victim.visit(&client, Duration::from_secs(60));
            (finished.took, finished)
        };
        let alone: Vec<_> = (0..3).map(|_| visit()).collect();
        for (_, finished) in &alone {
            assert_eq!(finished.code, Some(0), "{listener:?} alone: {finished}");
        }
        let slowest = alone.iter().map(|(took, _)| *took).max().unwrap_or_default();

        let crowd = Crowd::gather(victim.address, listener.protocol(), manner, &[(Sources::One, 600), (Sources::Many, 600)]);
        assert!(crowd.wait_until_there(1000, Duration::from_secs(60)), "{listener:?}: {} strangers came", crowd.tried());
        let among: Vec<_> = (0..3).map(|_| visit()).collect();
        let inside = crowd.inside();
        println!(
            "{listener:?}: alone {slowest:?}, among {inside} strangers ({} tried) {:?}; {:?}",
            crowd.tried(),
            among.iter().map(|(took, _)| *took).collect::<Vec<_>>(),
            victim.readings()
        );
        for (took, finished) in &among {
            assert_eq!(finished.code, Some(0), "{listener:?} among strangers: {finished}");
            assert!(*took < slowest + Duration::from_secs(2), "{listener:?}: alone {slowest:?}: {finished}");
        }
        assert!(inside >= 300, "{listener:?}: only {inside} strangers were there");
    }
}

#[test]
fn whatever_strangers_send_the_listener_lives_and_serves() {
    let _turn = turn();
    for listener in Listener::ALL {
        let client = Client::new();
        let mut victim = Victim::start(listener, &[&client.key()]);
        client.trust(victim.address, &victim.key);
        // Without a key of the list nothing but a handshake could be sent: so these have one, and never say what they want.
        let identity = Identity::generate();
        if listener != Listener::Perf {
            victim.authorize(&identity);
        }
        let before = victim.readings();
        let mut scripts: Vec<Vec<Step>> = Lie::all().into_iter().map(|lie| vec![lie]).collect();
        for kind in StreamKind::ALL {
            scripts.push(vec![Step::Streams(kind, 2000)]);
        }
        scripts.push(vec![Step::Garbage(2000), Step::Replay(20)]);
        scripts.push(vec![Step::AcknowledgeUnsent(1 << 40)]);
        scripts.push(vec![Step::MoveTo(ELSEWHERE), Step::Replay(20), Step::MoveHome, Step::Replay(20)]);
        for script in &scripts {
            let attempt = Attempt::begin(victim.address, HOME, Some(&identity), listener.protocol());
            let mut peer =
                attempt.finish().unwrap_or_else(|| panic!("{listener:?}: not let in for {script:?}: {}", victim.said()));
            peer.play(script);
            peer.play(&[Step::Silence(Duration::from_millis(20))]);
            assert!(victim.lives(), "{listener:?} ended by {script:?}: {}", victim.said());
        }
        for _ in 0..10 {
            let _ = Attempt::begin(victim.address, HOME, None, listener.protocol()).halfway().step();
        }
        pause(Duration::from_millis(200));
        victim.visit(&client, Duration::from_secs(30)).expect(0);
        let grown = victim.readings().rss_bytes.saturating_sub(before.rss_bytes);
        // Those that have gone without a word are still there: some have opened all the streams that they may, with a byte in each.
        let allowed = if listener == Listener::Serve { KEYED_BYTES } else { 64 << 20 };
        assert!(grown < allowed, "{listener:?}: {} KiB, allowed {}", grown >> 10, allowed >> 10);
        assert!(!victim.said().contains("panicked"), "{}", victim.said());
    }
}

/// A connection from an address of this machine.
fn call(server: SocketAddr, from: Ipv4Addr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("an address of this machine");
    socket.connect(&server.into()).expect("the listener takes connections");
    socket.into()
}

#[test]
fn strangers_over_tcp_keep_nobody_out() {
    let _turn = turn();
    let client = Client::new();
    let victim = Victim::start(Listener::Serve, &[&client.key()]);
    client.trust(victim.address, &victim.key);
    let visit = || {
        let from = format!("haul://{}/pub/file", victim.address);
        let to = client.path("got").display().to_string();
        let finished = Running::start(client.haul(&["cp", "--transport", "tcp", &from, &to])).wait(Duration::from_secs(60));
        assert_eq!(finished.code, Some(0), "{finished}");
        finished.took
    };
    let alone = (0..3).map(|_| visit()).max().unwrap_or_default();
    let before = victim.readings();
    // Some say nothing; others want a carrier each, from all over a network of their own.
    let _silent: Vec<TcpStream> = (0..200).map(|_| call(victim.address, Ipv4Addr::new(127, 50, 0, 1))).collect();
    let greeted: Vec<TcpStream> = (0..100)
        .map(|n: u8| {
            let mut stream = call(victim.address, Ipv4Addr::new(127, 51, 0, n + 1));
            let name = [n; 16];
            stream.write_all(&[&b"haulTCP1"[..], &name].concat()).expect("a greeting");
            stream
        })
        .collect();
    // Those are answered, or cut off for the others.
    let taken = greeted
        .iter()
        .filter(|stream| {
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            matches!((&**stream).read(&mut [0; 8]), Ok(8))
        })
        .count();
    let among: Vec<Duration> = (0..3).map(|_| visit()).collect();
    println!("alone {alone:?}, among strangers of whom {taken} have a carrier {among:?}: {:?}", victim.readings());
    assert!(taken >= 16, "{taken} carriers: the crowd is none");
    assert!(among.iter().all(|took| *took < alone + Duration::from_secs(2)), "{alone:?} alone, {among:?} among strangers");
    // They have 15 s, also those who never fall silent: a carrier's question is four bytes of zero.
    let gone = || {
        for mut stream in &greeted {
            let _ = stream.write_all(&[0; 4]);
        }
        victim.readings().threads <= before.threads + 2 && victim.readings().descriptors <= before.descriptors + 2
    };
    assert!(eventually(Duration::from_secs(15) + SLACK, gone), "before {before:?}, left {:?}", victim.readings());
}
