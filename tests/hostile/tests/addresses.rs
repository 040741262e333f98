//! Where a listener sends to: never much to an address that has proved nothing.

mod turns;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use e2e::Stopwatch;
use haul_proto::identity::Identity;
use hostile::{Attempt, Listener, Step, Victim};
use turns::turn;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 7, 7, 7));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 6, 6));

#[test]
fn an_address_that_proved_nothing_gets_at_most_three_times_what_it_sent() {
    let _turn = turn();
    for listener in Listener::ALL {
        let victim = Victim::start(listener, &[]);
        let shouted = Attempt::begin(victim.address, ELSEWHERE, None, listener.protocol()).shout(Duration::from_secs(1));
        assert!(shouted.sent_bytes > 0 && shouted.received_bytes <= 3 * shouted.sent_bytes, "{listener:?}: {shouted:?}");

        // A client could do it too, where strangers get no further than the handshake.
        let identity = Identity::generate();
        if listener != Listener::Perf {
            victim.authorize(&identity);
        }
        let attempt = Attempt::begin(victim.address, HOME, Some(&identity), listener.protocol());
        let mut peer = attempt.finish().expect("it is authorised");
        peer.play(&[Step::MoveTo(ELSEWHERE), Step::Challenges(8), Step::Silence(Duration::from_secs(2))]);
        let there = &peer.outlets()[1];
        assert!(there.received_bytes <= 3 * there.sent_bytes, "{listener:?}: eight challenges: {there:?}");
        // A stranger's moves are not followed at all (`haul perf -s`); a client is asked where it is.
        assert!(listener == Listener::Perf || there.received_bytes > 0, "{listener:?} does not ask there: {there:?}");

        // From another address, more of everything that might draw an answer.
        let address = IpAddr::V4(Ipv4Addr::new(127, 66, 6, 7));
        let script =
            [Step::MoveTo(address), Step::Challenges(1), Step::Speak(b"?\n".to_vec()), Step::Replay(3), Step::Garbage(50)];
        peer.play(&script);
        peer.play(&[Step::Silence(Duration::from_secs(2))]);
        for there in &peer.outlets()[1..] {
            assert!(there.received_bytes <= 3 * there.sent_bytes, "{listener:?}: everything: {there:?}");
        }
    }
}

#[test]
fn data_under_way_does_not_follow_to_an_address_that_proved_nothing() {
    let _turn = turn();
    let victim = Victim::start(Listener::Perf, &[]);
    let mut peer = Attempt::begin(victim.address, HOME, None, Listener::Perf.protocol()).finish().expect("perf lets anyone in");
    peer.answers_challenges = true;
    peer.play(&[Step::Speak(hostile::ask_for_download(20, "cubic"))]);
    let watch = Stopwatch::start();
    while peer.outlets()[0].received_bytes < 200_000 {
        peer.play(&[Step::Silence(Duration::from_millis(20)), Step::AcknowledgeHeard]);
        let data = peer.outlets()[0].received_bytes;
        assert!(watch.elapsed() < Duration::from_secs(30), "the download never began: {data} bytes; {}", victim.said());
    }
    peer.answers_challenges = false;
    peer.play(&[Step::MoveTo(ELSEWHERE)]);
    for _ in 0..20 {
        peer.play(&[Step::Challenges(1), Step::Silence(Duration::from_millis(50))]);
    }
    let there = &peer.outlets()[1];
    assert!(there.received_bytes <= 3 * there.sent_bytes, "{there:?}");
}
