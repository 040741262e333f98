//! Lies of peers that are let in: what they gain.

mod turns;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use e2e::Stopwatch;
use haul_proto::identity::Identity;
use hostile::{Attempt, Listener, Step, Victim, is_end};
use turns::turn;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 7, 7, 7));

#[test]
fn acknowledging_what_was_never_received_ends_the_connection() {
    let _turn = turn();
    let victim = Victim::start(Listener::Perf, &[]);
    for script in [[Step::AcknowledgeAll], [Step::AcknowledgeUnsent(1 << 20)]] {
        let mut peer =
            Attempt::begin(victim.address, HOME, None, Listener::Perf.protocol()).finish().expect("perf lets anyone in");
        peer.answers_challenges = true;
        peer.play(&[Step::Speak(hostile::ask_for_download(30, "cubic"))]);
        let watch = Stopwatch::start();
        let mut ended = false;
        while !ended && watch.elapsed() < Duration::from_secs(15) {
            ended = peer.hear_until(Duration::from_millis(5), is_end);
            peer.play(&script);
        }
        assert!(ended, "{script:?}: believed for {:?}: {:?}", watch.elapsed(), peer.outlets());
    }
}

#[test]
fn one_byte_blocks_of_an_authorised_key_grow_nothing() {
    let _turn = turn();
    let victim = Victim::start(Listener::Serve, &[]);
    let identity = Identity::generate();
    victim.authorize(&identity);
    let protocol = Listener::Serve.protocol();
    let mut peer = Attempt::begin(victim.address, HOME, Some(&identity), protocol).finish().expect("it is authorised");
    peer.answers_challenges = true;
    peer.play(&[Step::Speak(b"{\"version\":\"0\"}\n".to_vec()), Step::Silence(Duration::from_millis(500))]);
    let before = victim.readings().rss_bytes;
    peer.play(&[Step::OneByteBlocks(20_000)]);
    let grown = victim.readings().rss_bytes.saturating_sub(before);
    println!("20,000 blocks of a byte: {} KiB", grown >> 10);
    assert!(grown < 32 << 20, "20,000 blocks of a byte: {} KiB", grown >> 10);
}
