//! kill -9 of either side at any moment: nothing corrupt, nothing left behind, and what has to be sent again is bounded by what a kill can cost.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Daemon, Lab, Random, Running, Sites, eventually, pause};
use haul_lab::LinkOptions;
use haul_units::BitRate;
use rustix::process::{Signal, kill_process};

/// Who is killed, and when: each side while the two meet and while data flows, and nothing is whole before the last of them.
const KILLS: [(Side, Moment); 4] =
    [(Side::Near, Moment::Opening), (Side::Far, Moment::UnderWay), (Side::Near, Moment::UnderWay), (Side::Far, Moment::Opening)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Near,
    Far,
}

#[derive(Debug, Clone, Copy)]
enum Moment {
    /// From the login to the first data.
    Opening,
    /// When some of the data has crossed.
    UnderWay,
}

/// What a kill may cost in data that has to be sent again: what is in flight, in the receiver's hands and not yet durable. Nothing more than the run had carried.
const LOST_PER_KILL_BYTES: u64 = 3 << 20;
/// ssh's login, handshakes, acknowledgements and the list of files of one run.
const OVERHEAD_PER_RUN_BYTES: u64 = 256 << 10;

/// Each way twice, at other moments; `E2E_SEED` gives others. What comes of hours of kills, `make torture` shows.
#[test]
fn kills_of_both_sides() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("150mbit");
    let mut random = Random::seeded(50);
    let source = lab.place("tree");
    tree::make_varied(&source.join("varied"), &mut random);
    tree::make_many(&source.join("many"), 300, &mut random);
    tree::write_random(&source.join("large"), 40 << 20, &mut random);

    let kills: u32 = [false, true, false, true]
        .into_iter()
        .map(|pull| {
            let place = lab.place("copy");
            copy_with_kills(&lab, &source, &place, pull, &mut random)
        })
        .sum();
    println!("{kills} kills in 4 copies met data under way");
    // Two in each copy; the machine decides how far a copy gets until it is killed, and one in four may come too late.
    assert!(kills >= 6, "only {kills} kills met data under way");
    lab.assert_no_process_left(Duration::from_secs(10));
}

/// Copies `source` into `place` through all [`KILLS`]; returns how many of them came when data was under way: those during a login cost no data, and show that nothing
/// is left of it.
fn copy_with_kills(lab: &Lab, source: &Path, place: &Path, pull: bool, random: &mut Random) -> u32 {
    let far = |path: &Path| {
        let mut operand = OsString::from("far:");
        operand.push(path);
        operand
    };
    let operands = if pull { [far(source), place.into()] } else { [source.into(), far(place)] };
    let args: Vec<OsString> = ["-rp".into(), "--json".into()].into_iter().chain(operands).collect();
    let (before, data) = (lab.bytes_carried(), tree::data_bytes(source));
    let (mut kills, mut under_way, mut lost) = (0u64, 0, 0);
    let mut ended = None;
    for (side, moment) in KILLS {
        let start = lab.bytes_carried();
        let mut running = Running::start(lab.cp(&args));
        match moment {
            Moment::Opening => pause(random.millis(50..600)),
            Moment::UnderWay => {
                let some = data * random.within(5..35) / 100;
                let flowed = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > some || !running.runs());
                assert!(flowed, "the copy does not get on");
            }
        }
        if !running.runs() {
            ended = Some(running.wait(Duration::from_secs(10)));
            break;
        }
        kill(lab, &running, side);
        kills += 1;
        under_way += u32::from(matches!(moment, Moment::UnderWay));
        lost += (lab.bytes_carried() - start).min(LOST_PER_KILL_BYTES);
        // The side that was not killed notices and ends by itself.
        running.wait(Duration::from_secs(20));
        lab.assert_no_process_left(Duration::from_secs(20));
        if tree::names(place) == ["tree"] {
            // Nothing is left to go on with: the copy was complete, and the kill came before the goodbyes. Another run would be another copy.
            break;
        }
    }
    if ended.is_none() && tree::names(place) != ["tree"] {
        ended = Some(Running::start(lab.cp(&args)).wait(Duration::from_secs(120)));
    }
    let summary = ended.map(|run| run.expect(0).event("summary"));
    // What the network dropped and crossed it again is no loss by a kill: a busy machine lets queues overflow.
    let dropped =
        summary.as_ref().map_or(0, |summary| summary["path"]["retransmitted_bytes"].as_u64().expect("a count of bytes"));
    let summary = summary.map_or_else(|| "killed when it was complete".to_owned(), |summary| summary.to_string());

    tree::assert_same(source, &place.join("tree"), Exactness::Everything);
    assert_eq!(tree::names(place), ["tree"]);
    assert_eq!(tree::names(place.parent().expect("a place has a parent")), ["copy"], "something was left beside the copy");
    let carried = lab.bytes_carried() - before;
    let runs = kills + 1;
    let allowed = data * 108 / 100 + dropped + lost + runs * OVERHEAD_PER_RUN_BYTES;
    println!("{kills} kills, {data} bytes of data, {carried} crossed the network, {allowed} may; {summary}");
    assert!(carried <= allowed, "{carried} bytes crossed the network in {runs} runs, {allowed} would be right");
    under_way
}

/// Kills that side; the near one if the far one is not there yet.
fn kill(lab: &Lab, running: &Running, side: Side) {
    let remote = lab.far.processes(&["haul remote"]);
    if side == Side::Near || remote.is_empty() {
        running.signal(Signal::KILL);
    } else {
        for pid in remote {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
fn a_server_killed_when_all_is_in_place_is_not_waited_for() {
    let link = LinkOptions { rate: BitRate::mbps(100), rtt: Duration::from_millis(400), ..LinkOptions::default() };
    let Some(sites) = Sites::open(&[link]) else { return };
    let (source, here) = (sites.scratch().join("source"), sites.scratch().join("here"));
    tree::write_random(&source, 1 << 20, &mut Random::seeded(52));
    let mut from = OsString::from("site1:");
    from.push(&source);
    let mut command = sites.haul(sites.hub());
    command.arg("cp").arg("-F").arg(sites.ssh_config()).arg(from).arg(&here);
    let mut running = Running::start(command);

    // From here on the client has one thing left to do: to see that the server has heard of it. That takes a round trip.
    let in_place = || here.exists() || !running.runs();
    assert!(eventually(Duration::from_secs(60), in_place), "the copy does not get on");
    let servers = sites.site(1).processes(&["haul remote"]);
    assert!(!servers.is_empty(), "the copy was over too soon");
    for pid in servers {
        let _ = kill_process(pid, Signal::KILL);
    }

    // Half of the transport's idle timeout.
    running.wait(Duration::from_secs(15));
    assert_eq!(tree::hash(&source), tree::hash(&here));
}

#[test]
fn a_resumed_copy_sends_only_what_was_missing() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("200mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    let size = 100 << 20;
    tree::write_random(&source.join("file"), size, &mut Random::seeded(51));
    let mut target = OsString::from("far:");
    target.push(&there);
    let args: [OsString; 3] = ["--json".into(), source.join("file").into(), target];

    let start = lab.bytes_carried();
    let running = Running::start(lab.cp(&args));
    let half_way = || lab.bytes_carried() - start > size / 2;
    assert!(eventually(Duration::from_secs(60), half_way), "the copy does not get on");
    running.signal(Signal::KILL);
    running.wait(Duration::from_secs(10));
    lab.assert_no_process_left(Duration::from_secs(40));

    let before = lab.bytes_carried();
    let finished = lab.run_cp(&args).expect(0);
    let carried = lab.bytes_carried() - before;
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
    assert!(carried < size / 2 + LOST_PER_KILL_BYTES + size / 10, "{carried} bytes for the second half: {finished}");
    let resumed = finished.event("summary")["bytes_resumed"].as_u64().expect("a number");
    assert!(resumed > size / 3, "{finished}");
}

#[test]
fn a_daemon_that_is_killed_and_started_again_only_delays_its_copies() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("50mbit");
    let (source, root, back) = (lab.place("source"), lab.place("root"), lab.place("back"));
    let size = 30 << 20;
    tree::write_random(&source.join("file"), size, &mut Random::seeded(53));
    let mut daemon = Daemon::start(&lab, &root);
    let up = (OsString::from(source.join("file")), OsString::from(daemon.url("")));
    let down = (OsString::from(daemon.url("file")), OsString::from(&back));
    for ((from, to), gone_s) in [(up, 0), (down, 4)] {
        let start = lab.bytes_carried();
        let mut running = Running::start(lab.cp(["--json".into(), from, to]));
        let half_way = || lab.bytes_carried() - start > size / 2;
        assert!(eventually(Duration::from_secs(60), half_way) && running.runs(), "the copy does not get on");
        daemon = daemon.kill_and_start(&lab, &root, Duration::from_secs(gone_s));
        let finished = running.wait(Duration::from_secs(60)).expect(0);
        assert!(finished.stderr.contains("connecting again"), "{finished}");
        let resumed = finished.event("summary")["bytes_resumed"].as_u64().expect("a number");
        assert!(resumed > size / 4, "{finished}");
        assert_eq!(tree::names(&root), ["file"]);
    }
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&root.join("file")));
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&back.join("file")));
}

#[test]
fn a_daemon_that_is_killed_and_started_again_is_measured_again() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("50mbit");
    let root = lab.place("root");
    let mut daemon = Daemon::start(&lab, &root);
    let address = format!("haul://{}", lab.far.address);
    for gone_s in [0, 4] {
        let start = lab.bytes_carried();
        let mut command = lab.haul(&lab.near);
        command.args(["perf", "-t", "4", "-J", &address]);
        let mut running = Running::start(command);
        // Of some 25 MB.
        let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > 5 << 20);
        assert!(under_way && running.runs(), "the measurement does not get on");
        daemon = daemon.kill_and_start(&lab, &root, Duration::from_secs(gone_s));
        let finished = running.wait(Duration::from_secs(60)).expect(0);
        assert!(finished.stderr.contains("connecting again"), "{finished}");
        assert!(finished.stderr.contains("the measurement begins again"), "{finished}");
        let document: serde_json::Value =
            serde_json::from_slice(&finished.stdout).expect("one document, of the measurement that was complete");
        let measured = &document["end"]["sum_received"];
        assert!(measured["seconds"].as_f64().is_some_and(|seconds| seconds > 3.9), "{measured}");
    }
}

/// Sent and not known to be durable there: a window of blocks that the receiver checks and writes.
const IN_HAND_BYTES: u64 = 4 << 20;

/// `HAUL_KILL_MBPS` is the rate of the path, 200 unless set; the file is as many times as large.
#[test]
fn a_kill_on_a_long_path_costs_what_was_in_flight() {
    let mbps = e2e::number("HAUL_KILL_MBPS", 200);
    let long = LinkOptions { rate: BitRate::mbps(mbps), rtt: Duration::from_millis(60), ..LinkOptions::default() };
    let bdp = long.rate.bytes_in(long.rtt).as_u64();
    let Some(sites) = Sites::open(&[long]) else { return };
    let [source, there] = ["source", "there"].map(|name| sites.scratch().join(name));
    for dir in [&source, &there] {
        std::fs::create_dir_all(dir).expect("making a directory");
    }
    let size = (60 << 20) * mbps / 200;
    tree::write_random(&source.join("file"), size, &mut Random::seeded(51));
    let copy = || {
        let mut command = sites.haul(sites.hub());
        command.arg("cp").arg("-F").arg(sites.ssh_config()).arg(source.join("file"));
        command.arg(format!("site1:{}", there.display()));
        Running::start(command)
    };
    let start = sites.offered_bytes(1);
    let mut running = copy();
    let half = eventually(Duration::from_secs(60), || sites.offered_bytes(1) - start > size / 2 || !running.runs());
    assert!(half && running.runs(), "the copy was over too soon");
    running.signal(Signal::KILL);
    running.wait(Duration::from_secs(10));
    copy().wait(Duration::from_secs(120)).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
    let again = (sites.offered_bytes(1) - start).saturating_sub(size);
    println!("{again} bytes again; the path holds {bdp}");
    // Headers and acknowledgements are 5 %; each of two starts may fill the queue once.
    let allowed = 2 * bdp + IN_HAND_BYTES + size / 20;
    assert!(again <= allowed, "{again} bytes were sent again, {allowed} would be right");
}
