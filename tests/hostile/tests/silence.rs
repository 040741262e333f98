//! What peers cost that have asked for data and are never heard again.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use e2e::{Stopwatch, pause};
use haul_proto::StreamKind;
use hostile::{Attempt, Heard, Listener, Peer, Step, Victim, is_end};

const MINUTE: Duration = Duration::from_secs(60);
/// Two fewer than `haul perf -s` lets in.
const PEERS: u8 = 30;
/// What is promised, the first window of data counted.
const PACKETS_OF_PEER: u64 = 100;
/// Of all of them together: 50 ms each, less than a thousandth of a core.
const CPU_OF_ALL: Duration = Duration::from_millis(1500);
/// Between two looks at what has come, so that the sockets do not fill.
const LOOK: Duration = Duration::from_millis(500);

/// A peer from an address of its own, to whom data comes that will go on for longer than it is watched; and the packets that came to it before it asked.
fn asks(victim: &Victim, index: u8) -> (Box<Peer>, u64) {
    let home = IpAddr::V4(Ipv4Addr::new(127, 40, index, 1));
    let attempt = Attempt::begin(victim.address, home, None, Listener::Perf.protocol());
    let mut peer = attempt.finish().expect("perf lets anyone in");
    let before = peer.outlets()[0].received_pkts;
    peer.play(&[Step::Speak(hostile::ask_for_download(2 * MINUTE.as_secs(), "cubic"))]);
    let is_content = |heard: &Heard| matches!(heard, Heard::Data(stream, ..) if stream.kind() == Some(StreamKind::Placed));
    assert!(peer.hear_until(Duration::from_secs(10), is_content), "nothing comes to peer {index}: {}", victim.said());
    (peer, before)
}

/// Lets time pass in silence. Nobody is shown out: then there would be nothing to measure.
fn keep_silent(peers: &mut [(Box<Peer>, u64)], time: Duration) {
    let watch = Stopwatch::start();
    while watch.elapsed() < time {
        for (index, (peer, _)) in peers.iter_mut().enumerate() {
            assert!(!peer.hear_until(Duration::ZERO, is_end), "peer {index} is shown out after {:?}", watch.elapsed());
        }
        pause(LOOK);
    }
}

#[test]
fn peers_that_never_answer_get_few_packets_and_little_time() {
    let (victim, idle) = (Victim::start(Listener::Perf, &[]), Victim::start(Listener::Perf, &[]));
    let mut peers: Vec<_> = (0..PEERS).map(|index| asks(&victim, index)).collect();
    let count = |peers: &[(Box<Peer>, u64)]| -> Vec<u64> {
        peers.iter().map(|(peer, before)| peer.outlets()[0].received_pkts - before).collect()
    };
    let before = (victim.readings().cpu, idle.readings().cpu);
    keep_silent(&mut peers, MINUTE / 2);
    let first = count(&peers);
    keep_silent(&mut peers, MINUTE / 2);
    let all = count(&peers);
    let since = |victim: &Victim, before: Duration| victim.readings().cpu.saturating_sub(before);
    let (cpu, own) = (since(&victim, before.0), since(&idle, before.1));
    println!("{PEERS} silent peers: {cpu:?} in {MINUTE:?}, {own:?} without any; packets in half of it {first:?}, in all {all:?}");
    for (index, (first, all)) in first.into_iter().zip(all).enumerate() {
        assert!(all <= PACKETS_OF_PEER, "{all} packets in {MINUTE:?} to peer {index}, who never answers");
        assert!(all - first < first, "not ever fewer to peer {index}: {first} packets, and {} then", all - first);
    }
    assert!(cpu.saturating_sub(own) < CPU_OF_ALL, "{cpu:?} for {PEERS} silent peers, {own:?} for none");
}
