//! What a listener's memory comes to with many clients: bounded while they are there, given back when they have gone.

mod turns;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use e2e::{Random, Running, eventually, pause, tree};
use haul_proto::identity::Identity;
use hostile::{Attempt, Client, Heard, Listener, Peer, Step, Victim};
use rustix::process::Signal;
use turns::turn;

const MIB: u64 = 1 << 20;
/// What a process may grow by for reasons of its own: threads' stacks, arenas of the allocator.
const OWN_BYTES: u64 = 32 * MIB;

#[test]
fn anonymous_clients_take_no_more_than_their_windows() {
    /// One fewer than are let in.
    const CLIENTS: u8 = 31;
    const WINDOW_MIB: u64 = 4;
    /// 1 MiB each, where nothing bounds them.
    const BLOCKS: u32 = 32;
    let _turn = turn();
    let victim = Victim::start_with(Listener::Perf, &[], &["--max-memory", &format!("{WINDOW_MIB}M")]);
    let before = victim.readings();
    let mut peers = Vec::new();
    for index in 0..CLIENTS {
        let home = IpAddr::V4(Ipv4Addr::new(127, 30, index, 1));
        let mut peer =
            Attempt::begin(victim.address, home, None, Listener::Perf.protocol()).finish().expect("perf lets anyone in");
        peer.answers_challenges = true;
        peer.play(&[Step::Speak(hostile::ask_for_upload(60))]);
        assert!(peer.hear_until(Duration::from_secs(10), |heard| matches!(heard, Heard::Data(..))), "client {index} is welcome");
        peer.play(&[Step::AcknowledgeHeard, Step::Silence(Duration::from_millis(100))]);
        peers.push(peer);
    }
    for peer in &mut peers {
        peer.play(&[Step::HollowBlocks(BLOCKS)]);
    }
    let grown = victim.readings().rss_bytes.saturating_sub(before.rss_bytes);
    println!("{CLIENTS} anonymous clients: {} MiB; {:?}", grown / MIB, victim.readings());
    // Twice the window of what is received, and 8 MiB besides, for two of the largest blocks.
    let allowed = u64::from(CLIENTS) * (2 * WINDOW_MIB + 8) * MIB + OWN_BYTES;
    assert!(grown < allowed, "{} MiB", grown / MIB);
    // Whoever comes now has a window like theirs, and measures.
    victim.visit(&Client::new(), Duration::from_secs(60)).expect(0);
    drop(peers);
}

/// What a client of the daemon does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It fetches a file, and stands still in the middle.
    StopsFetching,
    /// It sends one, and stands still.
    StopsSending,
    /// It fetches slowly.
    Fetches,
    /// It has a key, and begins blocks that it never completes.
    Hoards,
}

fn connected(victim: &Victim) -> usize {
    victim.said().matches(": connected").count()
}

/// A peer with a key that the operator has authorised, let in.
fn hoarder(victim: &Victim) -> Box<Peer> {
    let (identity, before) = (Identity::generate(), connected(victim));
    victim.authorize(&identity);
    let attempt = Attempt::begin(victim.address, Ipv4Addr::LOCALHOST.into(), Some(&identity), Listener::Serve.protocol());
    let mut peer = attempt.finish().expect("it is authorised");
    peer.answers_challenges = true;
    peer.play(&[Step::Speak(b"{\"version\":\"0\"}\n".to_vec()), Step::Silence(Duration::from_millis(20))]);
    assert!(eventually(Duration::from_secs(30), || connected(victim) > before), "a hoarder: {}", victim.said());
    peer
}

#[test]
fn a_daemon_keeps_to_its_memory_and_gives_it_back() {
    const CLIENTS: usize = 48;
    /// In blocks of 1 MiB, where nothing bounds them.
    const HOARD_BLOCKS: u32 = 40;
    /// 16 MiB for each, little more than the least.
    const MEMORY_MIB: u64 = 768;
    const FILE_BYTES: u64 = 64 << 20;
    let _turn = turn();
    // A key each: one that comes again ends its own older copies that are silent.
    let clients: Vec<_> = (0..CLIENTS).map(|_| Client::new()).collect();
    let keys: Vec<_> = clients.iter().map(Client::key).collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let victim = Victim::start_with(Listener::Serve, &keys, &["--max-memory", &format!("{MEMORY_MIB}M")]);
    let large = victim.path("pub/large");
    tree::write_random(&large, FILE_BYTES, &mut Random::seeded(13));
    let url = |path: &str| format!("haul://{}/{path}", victim.address);
    let before = victim.readings().rss_bytes;

    let (mut copies, mut hoarders) = (Vec::new(), Vec::new());
    for (number, client) in clients.iter().enumerate() {
        client.trust(victim.address, &victim.key);
        let manner =
            [Manner::StopsFetching, Manner::StopsSending, Manner::Fetches, Manner::Hoards][[0, 3, 1, 3, 2, 3][number % 6]];
        if manner == Manner::Hoards {
            hoarders.push(hoarder(&victim));
            continue;
        }
        let (got, put) = (client.path("got").display().to_string(), url(&format!("in/put{number}")));
        let command = match manner {
            Manner::StopsFetching => client.haul(&["cp", "-q", &url("pub/large"), &got]),
            Manner::StopsSending => client.haul(&["cp", "-q", &large.display().to_string(), &put]),
            Manner::Fetches | Manner::Hoards => client.haul(&["cp", "-q", "-l", "30M", &url("pub/large"), &got]),
        };
        let copy = Running::start(command);
        let is_connected = || connected(&victim) > number;
        assert!(eventually(Duration::from_secs(30), is_connected), "client {number}: {}", victim.said());
        // In the middle: what is under way now stays.
        pause(Duration::from_millis(50));
        if manner != Manner::Fetches {
            copy.signal(Signal::STOP);
        }
        copies.push((manner, number, copy));
    }
    let under_way = copies.iter_mut().filter_map(|(_, _, copy)| copy.runs().then_some(())).count();
    assert!(under_way > CLIENTS / 4, "only {under_way} copies are under way");
    for peer in &mut hoarders {
        peer.play(&[Step::HollowBlocks(HOARD_BLOCKS)]);
    }
    let mut most = 0;
    for _ in 0..40 {
        most = most.max(victim.readings().rss_bytes);
        pause(Duration::from_millis(50));
    }
    println!("{under_way} copies under way: {} MiB at most, {} before", most / MIB, before / MIB);
    assert!(most < before + MEMORY_MIB * MIB + OWN_BYTES, "{} MiB of {MEMORY_MIB}", most / MIB);

    // Nobody honest has lost anything by it.
    let sum = tree::hash(&large);
    for (manner, _, copy) in &copies {
        if *manner != Manner::Fetches {
            copy.signal(Signal::CONT);
        }
    }
    for (manner, number, copy) in copies {
        copy.wait(Duration::from_secs(180)).expect(0);
        let arrived = match manner {
            Manner::StopsSending => victim.path(&format!("in/put{number}")),
            Manner::StopsFetching | Manner::Fetches | Manner::Hoards => clients[number].path("got"),
        };
        assert_eq!(tree::hash(&arrived), sum, "{manner:?} {number}");
        fs::remove_file(arrived).expect("removing");
    }
    for peer in &mut hoarders {
        peer.play(&[Step::Close(b"enough".to_vec())]);
    }
    let rests = || victim.readings().rss_bytes < before + 2 * OWN_BYTES;
    let given_back = eventually(Duration::from_secs(20), rests);
    println!("after they left: {:?}", victim.readings());
    assert!(given_back, "{} MiB before, {} MiB are still held", before / MIB, victim.readings().rss_bytes / MIB);
}
