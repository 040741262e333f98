//! Words of clients and servers on the other side's terminal, and a server that moves.

mod turns;

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{Running, Stopwatch, eventually};
use haul_proto::identity::Identity;
use haul_proto::{Side, StreamId, StreamKind};
use hostile::{Attempt, Client, Heard, Host, Listener, Peer, Step, Victim, is_end};
use turns::turn;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 7, 7, 7));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 6, 6));
/// A change of colour, a cleared screen, a title, a bell, a line that was never printed, a line overwritten.
const WORDS: &str = "\x1b[31mred\x1b[2J\x1b]0;title\x07\nFORGED line\rFORGED start\u{9b}31m\u{202e}";
const WORDS_IN_JSON: &str = r"\u001b[31mred\u001b[2J\u001b]0;title\u0007\nFORGED line\rFORGED start\u009b31m\u202e";

/// Panics if anything that a terminal obeys is in there, or a line that a peer made up.
#[track_caller]
fn assert_harmless(what: &str, printed: &str) {
    let bad = |c: char| c != '\n' && c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!printed.chars().any(bad), "{what}: raw control characters in {printed:?}");
    assert!(!printed.lines().any(|line| line.starts_with("FORGED")), "{what}: a forged line in {printed:?}");
}

#[test]
fn a_clients_words_reach_the_operators_terminal_escaped() {
    let _turn = turn();
    for listener in Listener::ALL {
        let victim = Victim::start(listener, &[]);
        let identity = Identity::generate();
        if listener != Listener::Perf {
            victim.authorize(&identity);
        }
        let openings = [
            format!("{{\"version\":\"{WORDS_IN_JSON}\",\"ask\":\"pipe\"}}\n").into_bytes(),
            format!("{{\"version\":\"0\",\"ask\":{{\"{WORDS_IN_JSON}\":1}}}}\n").into_bytes(),
            [WORDS.as_bytes(), b"\n"].concat(),
            hostile::ask_for_download(1, WORDS_IN_JSON),
        ];
        for opening in openings {
            for wait in [300, 0] {
                let attempt = Attempt::begin(victim.address, HOME, Some(&identity), listener.protocol());
                let mut peer = attempt.finish().expect("it is authorised");
                peer.play(&[Step::Speak(opening.clone()), Step::Silence(Duration::from_millis(wait))]);
                peer.play(&[Step::Close(WORDS.as_bytes().to_vec()), Step::Silence(Duration::from_millis(20))]);
            }
        }
        // Something of it is to be seen, or nothing was tested.
        assert!(eventually(Duration::from_secs(10), || victim.said().contains("127.7.7.7")), "{listener:?}: {}", victim.said());
        assert_harmless(&format!("{listener:?}"), &victim.said());
    }
}

/// Runs a client against a server that plays `answer` once the handshake is over; what the client printed.
fn meet(listener: Listener, command: impl FnOnce(&Client, &Host) -> Command, answer: impl FnOnce(&mut Peer)) -> String {
    let client = Client::new();
    let host = Host::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), listener.protocol());
    client.trust(host.address(), &host.fingerprint);
    let running = Running::start(command(&client, &host));
    let mut peer = host.accept(Duration::from_secs(20)).expect("the client comes");
    peer.answers_challenges = true;
    peer.hear_until(Duration::from_secs(5), |heard| matches!(heard, Heard::Data(..)));
    peer.play(&[Step::AcknowledgeHeard]);
    answer(&mut peer);
    let finished = running.wait(Duration::from_secs(60));
    assert!(!finished.stderr.contains("panicked"), "{finished}");
    finished.stderr + &String::from_utf8_lossy(&finished.stdout)
}

fn copy(client: &Client, host: &Host) -> Command {
    client.haul(&["cp", &format!("haul://{}/pub/file", host.address()), "got"])
}

fn measure(client: &Client, host: &Host) -> Command {
    client.haul(&["perf", "-c", "127.0.0.1", "-p", &host.address().port().to_string(), "-t", "1"])
}

fn pipe(client: &Client, host: &Host) -> Command {
    client.haul(&["pipe", "--key", &host.fingerprint, "127.0.0.1", &host.address().port().to_string()])
}

#[test]
fn a_servers_words_reach_the_users_terminal_escaped() {
    let _turn = turn();
    type Start = fn(&Client, &Host) -> Command;
    let clients: [(Listener, Start); 3] = [(Listener::Serve, copy), (Listener::Perf, measure), (Listener::Pipe, pipe)];
    let first = StreamId::new(Side::Client, StreamKind::Bidirectional, 0);
    for (listener, start) in clients {
        let closed = meet(listener, start, |peer| {
            peer.play(&[Step::Close(WORDS.as_bytes().to_vec()), Step::Silence(Duration::from_millis(200))]);
        });
        assert!(closed.contains("red"), "{listener:?} does not say why: {closed}");
        assert_harmless(&format!("{listener:?}, closed"), &closed);
        let refused = meet(listener, start, |peer| {
            let line = format!("{{\"refused\":{{\"error\":\"{WORDS_IN_JSON}\",\"hint\":\"{WORDS_IN_JSON}\"}}}}\n");
            peer.put(first, 0, line.as_bytes(), false);
            peer.hear_until(Duration::from_secs(5), is_end);
            peer.play(&[Step::Close(b"over".to_vec()), Step::Silence(Duration::from_millis(200))]);
        });
        assert!(refused.contains("red"), "{listener:?} does not say why: {refused}");
        assert_harmless(&format!("{listener:?}, refused"), &refused);
    }
}

#[test]
fn a_client_does_not_follow_a_server_that_moves() {
    let _turn = turn();
    let client = Client::new();
    let host = Host::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), Listener::Pipe.protocol());
    let mut source = Command::new("head").args(["-c", "200000000", "/dev/zero"]).stdout(Stdio::piped()).spawn().expect("head(1)");
    let running = Running::start_with(pipe(&client, &host), source.stdout.take().expect("a pipe").into());
    let mut peer = host.accept(Duration::from_secs(20)).expect("the client comes");
    peer.answers_challenges = true;
    let granted = b"{\"served\":{\"version\":\"0\"}}\n";
    // A server that answers before it was asked breaks the protocol.
    assert!(peer.hear_until(Duration::from_secs(20), |heard| matches!(heard, Heard::Data(..))), "the client asks");
    peer.put(StreamId::new(Side::Client, StreamKind::Bidirectional, 0), 0, granted, false);
    let honest = [Step::Silence(Duration::from_millis(10)), Step::AcknowledgeHeard];
    let watch = Stopwatch::start();
    while peer.outlets()[0].received_bytes < 50_000 {
        peer.play(&honest);
        assert!(watch.elapsed() < Duration::from_secs(30), "the client never sent much: {:?}", peer.outlets());
    }
    peer.play(&[Step::MoveTo(ELSEWHERE)]);
    for _ in 0..50 {
        peer.play(&honest);
    }
    let there = &peer.outlets()[1];
    drop(running);
    let _ = source.kill();
    let _ = source.wait();
    assert!(there.sent_bytes > 0 && there.received_bytes <= 3 * there.sent_bytes, "{:?}", peer.outlets());
    // It proved the address, as it could: a copy of the client's data went there all the same, if it went anywhere.
    assert!(there.received_bytes < 20_000, "{:?}", peer.outlets());
}
