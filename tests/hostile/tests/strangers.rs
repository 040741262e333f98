//! Strangers at every listener: what they get, what they cost, how long they stay.

mod turns;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hostile::{Knock, Listener, Step, Victim};
use turns::turn;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 7, 7, 7));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 6, 6));

#[test]
fn data_under_way_does_not_follow_to_an_address_that_proved_nothing() {
    let _turn = turn();
    let victim = Victim::start(Listener::Perf, &[]);
    let mut peer = Knock::begin(victim.address, HOME, None, Listener::Perf.protocol()).finish().expect("perf lets anyone in");
    peer.answers_challenges = true;
    peer.play(&[Step::Speak(hostile::ask_for_download(20, "cubic"))]);
    for _ in 0..20 {
        peer.play(&[Step::Silence(Duration::from_millis(20)), Step::AcknowledgeHeard]);
    }
    let data = peer.outlets()[0].received_bytes;
    assert!(data > 100_000, "the download never began: {data} bytes; {}", victim.said());
    peer.answers_challenges = false;
    peer.play(&[Step::MoveTo(ELSEWHERE)]);
    for _ in 0..20 {
        peer.play(&[Step::Challenges(1), Step::Silence(Duration::from_millis(50))]);
    }
    let there = &peer.outlets()[1];
    assert!(there.received_bytes <= 3 * there.sent_bytes, "{there:?}");
}
