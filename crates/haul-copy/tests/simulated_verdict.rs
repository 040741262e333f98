//! What a copy says limited it, on simulated paths whose truth is known: real connections in virtual time, what their sender has seen, and the sentence that comes of it.
//!
//! The engine is not there. Its account says what was copied and how long that took, and that no thread was ever busy but the one that a case makes slow.

use std::time::Duration;

use haul::{BitRate, Bytes, ClientConfig, ControllerChoice, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_copy::{Conditions, Demand, PathReport, verdict};
use haul_files::Report;
use haul_scenarios::{Content, End};
use haul_sim::{Change, EndpointId, LinkId, Network, Path, Queue, TokenBucket};
use haul_units::Time;

const CLIENT: EndpointId = EndpointId(0);
const SERVER: EndpointId = EndpointId(1);
/// Longer than any of these copies.
const PATIENCE: Duration = Duration::from_secs(300);

const FULL: &str = "limited by the path: full at ";
const POLICED: &str = "limited by the path: something on it drops what is above ";
const STARTING: &str = "limited by the start: finding the path's rate took ";
const NOT_KNOWN: &str = "what limited the speed is not known: the sender sent what it took the path to bear";
const OVERFILLED: &str = " % at the start, which overfilled the queue itself";
const CONGESTION: &str = " % with a queue, so of congestion";
const NO_QUEUE: &str = " % without a queue";

/// 300 Mbit/s, 60 ms, a queue of one product of bandwidth and delay, and nothing wrong.
const CLEAN: Path = Path::new(BitRate::mbps(300), ms(60));

/// One copy over one path.
#[derive(Debug, Clone, Copy)]
struct Upload {
    path: Path,
    size: Bytes,
    controller: ControllerChoice,
    limit: Option<BitRate>,
    /// What the receiver has for data under way.
    memory: Bytes,
    source: Source,
}

/// How what is to be sent comes.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// All at once.
    Ready,
    /// So much each twentieth of a second, and its thread reads for this part of the time.
    Slow { each: Bytes, read: f64 },
}

/// What came of it.
#[derive(Debug)]
struct Seen {
    rate: BitRate,
    path: PathReport,
    said: String,
}

#[test]
fn a_path_that_is_full_is_named() {
    let long = Path::new(BitRate::mbps(100), ms(200));
    for upload in [
        Upload::new(CLEAN, Bytes::mib(160)),
        Upload::new(Path::new(BitRate::mbps(50), ms(20)), Bytes::mib(40)),
        Upload::new(long, Bytes::mib(100)),
        Upload::new(CLEAN, Bytes::mib(160)).by(ControllerChoice::Quickstart),
        Upload::new(CLEAN, Bytes::mib(160)).by(ControllerChoice::Aggressive),
    ] {
        let seen = upload.run(1).says(FULL, &[]).without(NO_QUEUE);
        assert!(seen.rate > upload.path.rate.scaled(0.85), "the path is not full: {seen:?}");
    }
}

/// The queue holds 4 ms: it is seen in one of eighty round trips, but that it overflowed shows.
#[test]
fn a_queue_that_overflows_shows_that_the_path_is_full() {
    let short = Path::new(BitRate::mbps(50), ms(60)).queue(Queue::Bytes(Bytes(26_000)));
    let seen = Upload::new(short, Bytes::mib(150)).by(ControllerChoice::Cubic).run(1).says(FULL, &[CONGESTION]);
    assert!(seen.rate > short.rate.scaled(0.8), "the path is not full: {seen:?}");
}

/// The path was full before and after, but not at the rate of the copy.
#[test]
fn a_path_that_was_down_for_most_of_the_time_was_not_full() {
    const OUTAGE: &[(Duration, Change)] = &[(ms(2000), Change::Down), (ms(10_000), Change::Up)];
    for controller in [ControllerChoice::Fair, ControllerChoice::Quickstart, ControllerChoice::Cubic] {
        Upload::new(Path { changes: OUTAGE, ..CLEAN }, Bytes::mib(160)).by(controller).run(1).says(NOT_KNOWN, &[]);
    }
}

/// A queue of a quarter or a tenth of what is under way, and starts that double what they send until it overflows.
#[test]
fn what_the_start_overfilled_is_told_from_what_the_path_loses() {
    for controller in [ControllerChoice::Modest, ControllerChoice::Aggressive, ControllerChoice::Bbr] {
        for part in [0.25, 0.1] {
            let short = CLEAN.queue(Queue::Bdp(part));
            let Seen { path, .. } = Upload::new(short, Bytes::mib(160)).by(controller).run(1).says(FULL, &[OVERFILLED]);
            let most = if controller == ControllerChoice::Aggressive { path.lost_pkts / 3 } else { path.lost_pkts / 4 * 3 };
            assert!(path.lost_starting_pkts > most, "{path:?}");
        }
    }
}

/// That the start overfilled the queue shows nothing of the time after it, in which Reno sends two thirds of what the path bears.
#[test]
fn what_the_start_overfilled_is_no_sign_of_a_full_path() {
    let short = Path::new(BitRate::mbps(300), ms(100)).queue(Queue::Bdp(0.1));
    let seen = Upload::new(short, Bytes::mib(300)).by(ControllerChoice::Reno).run(1).says(NOT_KNOWN, &[OVERFILLED]);
    assert!(seen.rate < short.rate.scaled(0.8), "the path is full: {seen:?}");
}

#[test]
fn a_copy_that_is_over_before_the_path_is_known_is_limited_by_its_start() {
    let far = Path::new(BitRate::mbps(300), ms(300));
    for upload in [
        Upload::new(far, Bytes::mib(10)).by(ControllerChoice::Fair),
        Upload::new(far, Bytes::mib(10)).by(ControllerChoice::Quickstart),
        Upload::new(far, Bytes::mib(40)).by(ControllerChoice::Modest),
        Upload::new(CLEAN, Bytes::mib(20)).by(ControllerChoice::Bbr),
    ] {
        let seen = upload.run(1).says(STARTING, &[]);
        assert!(seen.rate < upload.path.rate.scaled(0.6), "the start was no limit: {seen:?}");
    }
}

/// Who fills the path all the same is limited by the path, who does not has not shown that it is full; either way the loss has no queue.
#[test]
fn random_loss_is_not_taken_for_a_limit_of_the_path() {
    for seed in 1..=3 {
        // As much of it as a policer would drop, too.
        for loss in [0.02, 0.08] {
            let seen = Upload::new(CLEAN.loss(loss), Bytes::mib(160)).run(seed).says(FULL, &[NO_QUEUE]);
            assert!(seen.rate > CLEAN.rate.scaled(0.75), "the path is not full: {seen:?}");
        }
        for (controller, size) in [(ControllerChoice::Cubic, Bytes::mib(5)), (ControllerChoice::Bbr, Bytes::mib(160))] {
            let seen = Upload::new(CLEAN.loss(0.02), size).by(controller).run(seed).says(NOT_KNOWN, &[NO_QUEUE]);
            assert!(seen.rate < CLEAN.rate.scaled(0.7), "the path is full: {seen:?}");
        }
    }
}

#[test]
fn a_policer_is_named() {
    use ControllerChoice::{Aggressive, Fair, Quickstart};
    for (line_mbps, rtt, mbps, bucket, controllers) in [
        (500, ms(40), 50, Bytes(256_000), &[Fair, Quickstart][..]),
        (500, ms(50), 50, Bytes(200_000), &[Fair, Quickstart, Aggressive]),
        (1000, ms(100), 200, Bytes(1_000_000), &[Fair, Quickstart, Aggressive]),
        (300, ms(60), 60, Bytes(500_000), &[Fair]),
        (300, ms(60), 100, Bytes(64_000), &[Aggressive]),
    ] {
        let policed = BitRate::mbps(mbps);
        let policer = Some(TokenBucket { rate: policed, bucket });
        let path = Path { policer, ..Path::new(BitRate::mbps(line_mbps), rtt) };
        for &controller in controllers {
            let seen = Upload::new(path, Bytes::mib(mbps)).by(controller).run(1).says(POLICED, &[NO_QUEUE]);
            assert!(seen.rate > policed.scaled(0.8) && seen.rate < policed, "{seen:?}");
        }
    }
}

#[test]
fn the_users_rate_is_named() {
    let limited = |mbps, path, size| Upload { limit: Some(BitRate::mbps(mbps)), ..Upload::new(path, size) };
    let far = Path::new(BitRate::mbps(300), ms(300));
    for (upload, said) in [
        (limited(20, CLEAN, Bytes::mib(10)), "limited by the rate limit of 20.0 Mbit/s"),
        (limited(100, CLEAN, Bytes::mib(50)), "limited by the rate limit of 100 Mbit/s"),
        // What its model of the path says is lower still, now and then.
        (limited(250, CLEAN, Bytes::mib(125)).by(ControllerChoice::Bbr), "limited by the rate limit of 250 Mbit/s"),
        // Two thirds of it, for it took a while to get there.
        (limited(100, far, Bytes::mib(30)), "limited by the rate limit of 100 Mbit/s"),
        // More than the path bears.
        (limited(400, CLEAN, Bytes::mib(200)), FULL),
    ] {
        upload.run(1).says(said, &[]);
    }
}

/// Between a seventh and over a half of what the path bears. That leaves in portions, each as fast as the sender takes the path to bear, so the pacer is waited for, too.
#[test]
fn a_source_that_gives_less_than_the_path_bears_is_told_from_the_path() {
    for kib in [256, 512, 768, 1024] {
        for controller in [ControllerChoice::Fair, ControllerChoice::Quickstart, ControllerChoice::Aggressive] {
            let slow = |read| {
                let source = Source::Slow { each: Bytes::kib(kib), read };
                Upload { source, ..Upload::new(CLEAN, Bytes::kib(kib * 100)) }.by(controller).run(1)
            };
            let seen = slow(0.9).says("limited by the source's disk (reading took 90.0 %", &[]);
            assert!(seen.rate < CLEAN.rate.scaled(0.6), "{seen:?}");
            slow(0.0).says("what limited the speed is not known: nothing was there to send ", &[]);
        }
    }
}

#[test]
fn a_receiver_with_room_for_less_than_the_path_holds_is_named() {
    let path = Path::new(BitRate::mbps(300), ms(100));
    for mib in [1, 2] {
        for controller in [ControllerChoice::Fair, ControllerChoice::Modest] {
            let upload = Upload { memory: Bytes::mib(mib), ..Upload::new(path, Bytes::mib(mib * 50)) };
            upload.by(controller).run(1).says("limited by memory for data under way: ", &[]);
        }
    }
}

impl Upload {
    const fn new(path: Path, size: Bytes) -> Self {
        let (controller, memory) = (ControllerChoice::Fair, Bytes::gib(1));
        Self { path, size, controller, limit: None, memory, source: Source::Ready }
    }

    const fn by(self, controller: ControllerChoice) -> Self {
        Self { controller, ..self }
    }

    fn run(self, seed: u64) -> Seen {
        let mut network = self.network(seed);
        let is_connected = |network: &mut Network<End>| network.endpoint(CLIENT).connected_at.is_some();
        assert!(network.run_until(Time::ZERO + PATIENCE, is_connected), "no connection: {self:?}");
        let start = network.now();
        self.feed(&mut network);
        let has_all = |network: &mut Network<End>| network.endpoint(SERVER).arrived() >= self.size.as_u64();
        assert!(network.run_until(start + PATIENCE, has_all), "it does not end: {self:?}");
        let (now, login) = (network.now(), start.since(Time::ZERO));
        let stats = network.endpoint_mut(CLIENT).connection().stats(now).expect("it is connected");
        let path = PathReport::from(&stats);
        let report = self.report(now - start);
        let demand = Demand::default();
        let (sender_demand, receiver_demand, limit) = (demand, demand, self.limit);
        let conditions = Conditions { report: &report, path: Some(&path), limit, sender_demand, receiver_demand, login };
        let seen = Seen { rate: BitRate::of(self.size, report.elapsed), path, said: verdict(&conditions) };
        println!("{self:?}, seed {seed}\n    {seen:?}");
        seen
    }

    /// The account of an engine whose threads are never in the way, but for the source's.
    fn report(&self, elapsed: Duration) -> Report {
        let mut report = Report::default();
        (report.files, report.bytes, report.elapsed) = (1, self.size, elapsed);
        (report.sender.threads, report.receiver.threads) = (1, 1);
        if let Source::Slow { read, .. } = self.source {
            report.sender.read = elapsed.mul_f64(read);
        }
        report
    }

    fn network(&self, seed: u64) -> Network<End> {
        let identity = Identity::generate();
        let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
        let transport = TransportConfig { controller: self.controller, max_packet: 1472, ..TransportConfig::default() };
        let server = TransportConfig { memory: self.memory, ..transport.clone() };
        let server = ServerConfig { transport: server, ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let transport = TransportConfig { rate_limit: self.limit, ..transport };
        let client = ClientConfig { transport, connect_timeout: PATIENCE, ..ClientConfig::new(trust) };
        let [from, to] = [1, 2].map(|host| ([10, 0, 0, host], 7000).into());
        let [ours, theirs] = [1, 2].map(|side| [(seed * 2 + side) as u8; 32]);
        let mut sender = End::client(ours, from, SERVER, Content::Zeros);
        sender.connect(Time::ZERO, to, client);
        let receiver = End::server(theirs, to, CLIENT, Content::Zeros, server);
        let mut network = Network::pair(sender, receiver, self.path.there(seed * 2), self.path.way_back(seed * 2 + 1));
        network.schedule(LinkId(0), self.path.changes.iter().map(|&(at, change)| (Time::ZERO + at, change)));
        network
    }

    /// Gives the sender what it is to send, when it is there.
    fn feed(&self, network: &mut Network<End>) {
        let each = match self.source {
            Source::Ready => self.size,
            Source::Slow { each, .. } => each,
        };
        let mut left = self.size.as_u64();
        while left > 0 {
            let portion = left.min(each.as_u64());
            network.endpoint_mut(CLIENT).start_bulk(portion, false);
            left -= portion;
            if left > 0 {
                network.run(network.now() + ms(50));
            }
        }
    }
}

impl Seen {
    /// The sentence begins like this, and has these words in it.
    #[track_caller]
    fn says(self, beginning: &str, words: &[&str]) -> Self {
        assert!(self.said.starts_with(beginning), "not `{beginning}`: {self:?}");
        assert!(words.iter().all(|words| self.said.contains(words)), "not {words:?}: {self:?}");
        self
    }

    /// And not these.
    #[track_caller]
    fn without(self, words: &str) -> Self {
        assert!(!self.said.contains(words), "`{words}`: {self:?}");
        self
    }
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
