//! What a listener's memory comes to with many clients: bounded while they are there, given back when they have gone.

mod turns;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;

use e2e::{Random, Running, Stopwatch, eventually, pause, tree};
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

/// What an honest client of the daemon does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It fetches `pub/large`, and stands still in the middle.
    StopsFetching,
    /// It sends that, and stands still.
    StopsSending,
    /// It fetches `pub/slow`, and takes its time.
    Fetches,
}

/// A daemon, and clients with a key each: one that comes again ends its own older copies that are silent.
struct Daemon {
    victim: Victim,
    clients: Vec<Client>,
    slow: Slow,
    /// Resident memory while nobody is there.
    before: u64,
}

/// The file that is fetched slowly.
struct Slow {
    bytes: u64,
    limit: &'static str,
}

/// A client's copy.
struct Copying {
    manner: Manner,
    number: usize,
    running: Running,
}

impl Daemon {
    /// In blocks of 1 MiB, where nothing bounds them.
    const HOARD_BLOCKS: u32 = 40;
    const LARGE_BYTES: u64 = 64 * MIB;

    fn start(clients: usize, memory_mib: u64, slow: Slow) -> Self {
        let clients: Vec<_> = (0..clients).map(|_| Client::new()).collect();
        let keys: Vec<_> = clients.iter().map(Client::key).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        let victim = Victim::start_with(Listener::Serve, &keys, &["--max-memory", &format!("{memory_mib}M")]);
        for client in &clients {
            client.trust(victim.address, &victim.key);
        }
        let mut random = Random::seeded(13);
        tree::write_random(&victim.path("pub/large"), Self::LARGE_BYTES, &mut random);
        tree::write_random(&victim.path("pub/slow"), slow.bytes, &mut random);
        let before = victim.readings().rss_bytes;
        Self { victim, clients, slow, before }
    }

    fn connected(&self) -> usize {
        self.victim.said().matches(": connected").count()
    }

    /// Begins the copy of an honest client.
    fn begin(&self, number: usize, manner: Manner) -> Copying {
        let (client, before) = (&self.clients[number], self.connected());
        let url = |path: &str| format!("haul://{}/{path}", self.victim.address);
        let (large, got) = (self.victim.path("pub/large").display().to_string(), client.path("got").display().to_string());
        let command = match manner {
            Manner::StopsFetching => client.haul(&["cp", "-q", &url("pub/large"), &got]),
            Manner::StopsSending => client.haul(&["cp", "-q", &large, &url(&format!("in/put{number}"))]),
            Manner::Fetches => client.haul(&["cp", "-q", "-l", self.slow.limit, &url("pub/slow"), &got]),
        };
        let running = Running::start(command);
        let is_connected = || self.connected() > before;
        assert!(eventually(Duration::from_secs(30), is_connected), "client {number}: {}", self.victim.said());
        if manner != Manner::Fetches {
            // In the middle: what is under way now stays.
            pause(Duration::from_millis(50));
            running.signal(Signal::STOP);
        }
        Copying { manner, number, running }
    }

    /// A peer with a key that the operator has authorised, from an address of its own; it has said this.
    fn let_in(&self, number: u8, words: Vec<u8>) -> Box<Peer> {
        let (identity, home) = (Identity::generate(), IpAddr::V4(Ipv4Addr::new(127, 31, number, 1)));
        self.victim.authorize(&identity);
        let attempt = Attempt::begin(self.victim.address, home, Some(&identity), Listener::Serve.protocol());
        let mut peer = attempt.finish().expect("it is authorised");
        peer.answers_challenges = true;
        peer.play(&[Step::Speak(words)]);
        peer
    }

    /// One that will begin blocks and complete none.
    fn hoarder(&self, number: u8) -> Box<Peer> {
        let before = self.connected();
        let peer = self.let_in(number, b"{\"version\":\"0\"}\n".to_vec());
        assert!(eventually(Duration::from_secs(30), || self.connected() > before), "a hoarder: {}", self.victim.said());
        peer
    }

    /// One that fetches a file as others do, and stands still in the middle.
    fn stopped(&self, number: u8) -> Box<Peer> {
        let mut peer = self.let_in(number, hostile::ask_for_file("pub/large"));
        let watch = Stopwatch::start();
        while peer.outlets()[0].received_bytes < 50_000 {
            peer.play(&[Step::Silence(Duration::from_millis(10)), Step::AcknowledgeHeard]);
            assert!(watch.elapsed() < Duration::from_secs(30), "no file comes to peer {number}: {}", self.victim.said());
        }
        peer
    }

    /// Has all of them hoard, a few at once; the most memory that the daemon has held meanwhile and in the two seconds after.
    fn hoard(&self, hoarders: &mut [Box<Peer>]) -> u64 {
        const AT_ONCE: usize = 4;
        const LOOK: Duration = Duration::from_millis(50);
        let share = hoarders.len().div_ceil(AT_ONCE).max(1);
        thread::scope(|scope| {
            let play = |peer: &mut Box<Peer>| peer.play(&[Step::HollowBlocks(Self::HOARD_BLOCKS)]);
            let parts = hoarders.chunks_mut(share);
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || part.iter_mut().for_each(play))).collect();
            let (mut most, mut looks) = (0, 0);
            while looks < 40 {
                most = most.max(self.victim.readings().rss_bytes);
                pause(LOOK);
                looks += u32::from(threads.iter().all(thread::ScopedJoinHandle::is_finished));
            }
            most
        })
    }

    /// Nobody honest has lost anything: those that stand still go on, and all have in the end what they came for.
    fn finish(&self, copies: Vec<Copying>) {
        for copy in copies.iter().filter(|copy| copy.manner != Manner::Fetches) {
            copy.running.signal(Signal::CONT);
        }
        let [large, slow] = ["pub/large", "pub/slow"].map(|file| tree::hash(&self.victim.path(file)));
        for Copying { manner, number, running } in copies {
            running.wait(Duration::from_secs(180)).expect(0);
            let got = self.clients[number].path("got");
            let (arrived, sum) = match manner {
                Manner::StopsFetching => (got, large),
                Manner::StopsSending => (self.victim.path(&format!("in/put{number}")), large),
                Manner::Fetches => (got, slow),
            };
            assert_eq!(tree::hash(&arrived), sum, "{manner:?} {number}");
            fs::remove_file(arrived).expect("removing");
        }
    }

    /// Once all have gone, so has their memory, but for what the allocator keeps.
    fn assert_given_back(&self, keeps: u64) {
        let rests = || self.victim.readings().rss_bytes < self.before + keeps;
        let given_back = eventually(Duration::from_secs(20), rests);
        println!("after they left: {:?}", self.victim.readings());
        let (before, held) = (self.before / MIB, self.victim.readings().rss_bytes / MIB);
        assert!(given_back, "{before} MiB before, {held} MiB are still held");
    }
}

fn leave(peers: &mut [Box<Peer>]) {
    for peer in peers {
        peer.play(&[Step::Close(b"enough".to_vec())]);
    }
}

fn under_way(copies: &mut [Copying]) -> usize {
    copies.iter_mut().filter_map(|copy| copy.running.runs().then_some(())).count()
}

#[test]
fn a_daemon_keeps_to_its_memory_and_gives_it_back() {
    /// Half of them honest.
    const CLIENTS: u8 = 48;
    /// 16 MiB for each, little more than the least.
    const MEMORY_MIB: u64 = 768;
    let _turn = turn();
    let daemon = Daemon::start(usize::from(CLIENTS / 2), MEMORY_MIB, Slow { bytes: 64 * MIB, limit: "30M" });
    let (mut copies, mut hoarders) = (Vec::new(), Vec::new());
    for number in 0..CLIENTS / 2 {
        let manner = [Manner::StopsFetching, Manner::StopsSending, Manner::Fetches][usize::from(number) % 3];
        copies.push(daemon.begin(number.into(), manner));
        hoarders.push(daemon.hoarder(number));
    }
    let count = under_way(&mut copies);
    assert!(count > usize::from(CLIENTS) / 4, "only {count} copies are under way");
    let most = daemon.hoard(&mut hoarders);
    println!("{count} copies under way: {} MiB at most, {} before", most / MIB, daemon.before / MIB);
    assert!(most < daemon.before + MEMORY_MIB * MIB + OWN_BYTES, "{} MiB of {MEMORY_MIB}", most / MIB);

    daemon.finish(copies);
    leave(&mut hoarders);
    daemon.assert_given_back(2 * OWN_BYTES);
}

/// As many as it has memory for, and most of them stand still: the others are served all the same.
#[test]
fn a_daemon_serves_sixty_among_two_hundred_that_stand_still() {
    /// Honest ones that stand still.
    const RESTING: usize = 8;
    /// Peers that fetch and stand still, and as many that hoard.
    const STOPPED: u8 = 96;
    const FETCHING: usize = 60;
    const CLIENTS: u64 = RESTING as u64 + 2 * STOPPED as u64 + FETCHING as u64;
    /// The least for each, and for a few that might come again: some 3.6 GiB.
    const MEMORY_MIB: u64 = 14 * (CLIENTS + 4);
    let _turn = turn();
    let daemon = Daemon::start(RESTING + FETCHING, MEMORY_MIB, Slow { bytes: 16 * MIB, limit: "8M" });
    let mut stopped: Vec<_> = (0..STOPPED).map(|number| daemon.stopped(number)).collect();
    let mut hoarders: Vec<_> = (STOPPED..2 * STOPPED).map(|number| daemon.hoarder(number)).collect();
    let manner = |number| match number {
        RESTING.. => Manner::Fetches,
        _ if number % 2 == 0 => Manner::StopsFetching,
        _ => Manner::StopsSending,
    };
    let mut copies: Vec<_> = (0..RESTING + FETCHING).map(|number| daemon.begin(number, manner(number))).collect();
    let count = under_way(&mut copies);
    assert!(count > FETCHING * 3 / 4, "only {count} copies are under way");
    let most = daemon.hoard(&mut hoarders);
    println!("{CLIENTS} clients, {count} copies under way: {} MiB at most, {} before", most / MIB, daemon.before / MIB);
    assert!(most < daemon.before + MEMORY_MIB * MIB + OWN_BYTES, "{} MiB of {MEMORY_MIB}", most / MIB);
    // Nobody was shown out for it, or nothing was held: a MiB each is far less than a window.
    assert!(!daemon.victim.said().contains("the copy failed"), "{}", daemon.victim.said());
    assert!(most > daemon.before + CLIENTS * MIB, "{} MiB for {CLIENTS} clients", most / MIB);

    daemon.finish(copies);
    leave(&mut stopped);
    leave(&mut hoarders);
    daemon.assert_given_back(4 * OWN_BYTES);
}
