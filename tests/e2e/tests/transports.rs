//! What carries the data where UDP does not pass: every way in which it may not, and every command.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Daemon, Finished, Lab, Random, Running, Stopwatch, eventually, pause};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(90);
const SIZE: u64 = 30 << 20;

fn far(path: &Path) -> OsString {
    let mut operand = OsString::from("far:");
    operand.push(path);
    operand
}

const NO_UDP: &str = "meta l4proto udp drop;";
/// A host that nobody begins anything with but ssh.
const SSH_ONLY: &str = "ct state established,related accept; tcp dport 2222 accept; meta l4proto { tcp, udp } drop;";

/// A file there and back, with these words of `haul cp`: what both said.
#[track_caller]
fn there_and_back(lab: &Lab, words: &[&str]) -> [Finished; 2] {
    let (source, there, back) = (lab.place("source"), lab.place("there"), lab.place("back"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2001));
    let run = |from: OsString, to: OsString| {
        let args = words.iter().map(OsString::from).chain([from, to]);
        lab.run_cp(args).expect(0)
    };
    let up = run(source.join("file").into(), far(&there));
    let down = run(far(&there.join("file")), OsString::from(&back));
    for copy in [&there, &back] {
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&copy.join("file")));
    }
    lab.assert_no_process_left(Duration::from_secs(10));
    [up, down]
}

#[track_caller]
fn assert_said(finished: &[Finished], words: &[&str]) {
    for finished in finished {
        assert!(words.iter().all(|word| finished.stderr.contains(word)), "not said: {words:?}: {finished}");
    }
}

#[test]
fn each_way_that_is_asked_for_carries_a_copy_and_says_nothing_of_others() {
    let Some(lab) = Lab::open() else { return };
    for way in ["udp", "tcp", "ssh", "auto"] {
        for finished in there_and_back(&lab, &["--transport", way]) {
            assert!(!finished.stderr.contains("UDP"), "{way}: {finished}");
        }
    }
    // What was asked for, and nothing else: no datagram leaves the near host.
    lab.near.firewall("output", "meta l4proto udp counter drop;");
    for way in ["tcp", "ssh"] {
        there_and_back(&lab, &["--transport", way]);
    }
    let rules = lab.near.command("nft").args(["list", "ruleset"]).output().expect("nft");
    let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
    assert!(rules.contains("counter packets 0 "), "{rules}");
}

#[test]
fn where_no_udp_passes_tcp_carries_the_copy_and_the_user_is_told_what_to_ask_for() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.block_udp();
    assert_said(
        &there_and_back(&lab, &["--udp-port", "60000-60100"]),
        &["UDP is blocked inbound at far: ask for UDP 60000-60100", "over TCP"],
    );
    let quiet = there_and_back(&lab, &["-q"]);
    assert!(quiet.iter().all(|finished| finished.stderr.is_empty()), "{quiet:?}");
}

#[test]
fn that_nothing_comes_in_there_is_said() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.far.firewall("input", NO_UDP);
    assert_said(&there_and_back(&lab, &[]), &["UDP is blocked inbound at far", "over TCP"]);
}

#[test]
fn that_answers_do_not_come_back_is_said() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.near.firewall("input", NO_UDP);
    assert_said(&there_and_back(&lab, &[]), &["UDP gets to far, its answers do not get here", "over TCP"]);
}

#[test]
fn behind_a_firewall_that_lets_nothing_in_but_ssh_its_own_channel_carries_the_copy() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.far.firewall("input", SSH_ONLY);
    lab.far.firewall("output", NO_UDP);
    assert_said(&there_and_back(&lab, &[]), &["UDP is blocked inbound at far", "through ssh's own connection"]);
}

/// What drops TCP says nothing, so nobody waits for it to be sure: ssh's channel carries meanwhile.
#[test]
fn ssh_s_own_channel_carries_until_tcp_opens() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("50mbit");
    lab.block_udp();
    // The first packet of each connection is lost, and TCP asks again after a second.
    let first =
        "tcp dport != 2222 tcp flags & (syn | ack) == syn meter asked { tcp sport limit rate 1/hour burst 1 packets } drop;";
    lab.far.firewall("input", first);
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2015));
    let finished = lab.run_cp([source.join("file").into(), far(&there)]).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
    let told = ["through ssh's own connection for now", "over TCP for now"].map(|words| finished.stderr.find(words));
    assert!(told[0].is_some() && told[0] < told[1], "{finished}");
    lab.assert_no_process_left(Duration::from_secs(10));
}

/// What the far side sends opens its firewall, and nothing but UDP carries.
#[test]
fn behind_a_firewall_that_lets_answers_in_the_far_side_sends_first_and_udp_carries_the_copy() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.far.firewall("input", SSH_ONLY);
    for (hook, count) in [("output", 0), ("input", 1)] {
        lab.near.firewall(hook, "meta l4proto udp counter;");
        let said = there_and_back(&lab, &[]);
        assert_said(&said, &["UDP is blocked inbound at far until far itself has sent some: it has, and UDP passes"]);
        assert!(said.iter().all(|one| !one.stderr.contains("TCP") && !one.stderr.contains("own connection")), "{said:?}");
        let counted = lab.near.counted_bytes();
        assert!(counted[count] > SIZE, "{hook}: {counted:?}");
    }
    // With each of these words what it has always been.
    let source = lab.place("source");
    tree::write_random(&source.join("file"), 1 << 20, &mut Random::seeded(2008));
    let run = |way: &str| lab.run_cp([OsString::from("--transport"), way.into(), source.join("file").into(), far(&source)]);
    let refused = run("udp").expect(2);
    assert!(refused.stderr.contains("UDP"), "{refused}");
    run("ssh").expect(0);
}

/// A copy that has begun over UDP goes on, and what has arrived is not sent again.
fn lost_in_the_middle(block: impl Fn(&Lab), words: &[&str]) {
    for is_push in [true, false] {
        let Some(lab) = Lab::open() else { return };
        lab.limit("50mbit");
        let (source, there) = (lab.place("source"), lab.place("there"));
        tree::write_random(&source.join("file"), 2 * SIZE, &mut Random::seeded(2002));
        let operands =
            if is_push { [source.join("file").into(), far(&there)] } else { [far(&source.join("file")), OsString::from(&there)] };
        let start = lab.bytes_carried();
        let mut running = Running::start(lab.cp(operands));
        let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > SIZE * 8 / 5);
        assert!(under_way && running.runs(), "the copy is not under way");
        block(&lab);
        let finished = running.wait(PATIENCE).expect(0);
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
        assert_said(&[finished], words);
        let carried = lab.bytes_carried() - start;
        // From the beginning again it would be 3.6 times that.
        assert!(carried < 3 * SIZE, "{carried} bytes were sent for {} of the file", 2 * SIZE);
        lab.assert_no_process_left(Duration::from_secs(10));
    }
}

#[test]
fn udp_that_is_lost_in_the_middle_is_left_for_tcp_without_beginning_again() {
    lost_in_the_middle(|lab| lab.block_udp(), &["UDP to far has brought nothing for", "over TCP"]);
}

#[test]
fn where_only_ssh_is_left_in_the_middle_its_channel_goes_on_with_the_copy() {
    let block = |lab: &Lab| {
        // ssh's connection is older than the rule that sees connections.
        lab.far.firewall("input", "tcp dport 2222 accept; tcp sport 2222 accept; meta l4proto { tcp, udp } drop;");
    };
    lost_in_the_middle(block, &["UDP to far has brought nothing for", "through ssh's own connection"]);
}

/// The connections of the old network are dead, and nobody says so: new ones from the new network take their place.
#[test]
fn a_client_that_moves_while_tcp_carries_goes_on_from_its_new_network() {
    for (seed, is_push) in [(2009, true), (2010, false)] {
        let Some(mut lab) = Lab::open() else { return };
        lab.limit("50mbit");
        lab.block_udp();
        let (source, there) = (lab.place("source"), lab.place("there"));
        tree::write_random(&source.join("file"), 2 * SIZE, &mut Random::seeded(seed));
        let operands =
            if is_push { [source.join("file").into(), far(&there)] } else { [far(&source.join("file")), OsString::from(&there)] };
        let start = lab.bytes_carried();
        let mut running = Running::start(lab.cp(operands));
        let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > SIZE * 8 / 5);
        assert!(under_way && running.runs(), "the copy is not under way");
        lab.replug_near(0);
        lab.block_udp_from("to-cable1");
        let moved = (Stopwatch::start(), lab.bytes_carried());
        let goes_on = eventually(Duration::from_secs(20), || lab.bytes_carried() - moved.1 > 2 << 20);
        assert!(goes_on, "push: {is_push}: nothing moves {:?} later", moved.0.elapsed());
        let finished = running.wait(PATIENCE).expect(0);
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
        let carried = lab.bytes_carried() - start;
        assert!(carried < 3 * SIZE * 3 / 2, "push: {is_push}: {carried} bytes: {finished}");
        lab.assert_no_process_left(Duration::from_secs(30));
    }
}

/// Where nothing else may carry it, both ends give up after the same silence, and ssh ends with the far one: that is not the cause.
#[test]
fn where_only_udp_is_asked_for_its_silence_is_named_and_not_the_end_of_ssh() {
    for is_push in [true, false] {
        let Some(lab) = Lab::open() else { return };
        lab.limit("50mbit");
        let (source, there) = (lab.place("source"), lab.place("there"));
        tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2007));
        let operands =
            if is_push { [source.join("file").into(), far(&there)] } else { [far(&source.join("file")), OsString::from(&there)] };
        let start = lab.bytes_carried();
        let words = ["--transport", "udp", "--dead-after", "9"].map(OsString::from);
        let mut running = Running::start(lab.cp(words.into_iter().chain(operands)));
        let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > SIZE / 3);
        assert!(under_way && running.runs(), "the copy is not under way");
        lab.block_udp();
        let blocked = Stopwatch::start();
        let finished = running.wait(PATIENCE).expect(2);
        let lasted = blocked.elapsed().as_secs_f64();
        assert!((8.5..30.0).contains(&lasted), "{lasted} s: {finished}");
        // The near end's own silence, or that it is what the far end has given up for, whichever was first.
        let causes = ["nothing heard from the peer for 9 s", "nothing has come over UDP for "];
        let is_named = causes.iter().any(|cause| finished.stderr.contains(cause));
        assert!(is_named && !finished.stderr.contains("ssh ended"), "{finished}");
        lab.assert_no_process_left(Duration::from_secs(20));
    }
}

/// A tree through a way that is asked for: resumed, filtered and verified as over UDP.
#[test]
fn a_tree_arrives_over_every_way_as_it_is() {
    let Some(lab) = Lab::open() else { return };
    let source = lab.place("tree");
    tree::make_varied(&source, &mut Random::seeded(2003));
    for way in ["tcp", "ssh"] {
        let there = lab.place("there");
        lab.run_cp([OsString::from("-rp"), "--transport".into(), way.into(), source.clone().into(), far(&there)]).expect(0);
        tree::assert_same(&source, &there.join("tree"), Exactness::Everything);
    }
}

/// Its connections take far less than haul has for them: what waits is held, and nothing is sent twice.
#[test]
fn nothing_is_lost_in_front_of_a_tcp_that_is_full() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("8mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), SIZE / 10, &mut Random::seeded(2005));
    let args = ["--json", "--transport", "tcp"].map(OsString::from);
    let finished = lab.run_cp(args.into_iter().chain([source.join("file").into(), far(&there)])).expect(0);
    let said = String::from_utf8_lossy(&finished.stdout);
    let summary: Value = serde_json::from_str(said.lines().last().expect("a summary")).expect("JSON");
    assert_eq!(summary["carried_by"], "tcp", "{finished}");
    let again = (&summary["path"]["lost_pkts"], &summary["path"]["retransmitted_bytes"]);
    assert_eq!(again, (&Value::from(0), &Value::from(0)), "{finished}");
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
}

#[test]
fn a_daemon_takes_tcp_on_the_port_of_the_same_number() {
    let Some(lab) = Lab::open() else { return };
    let (source, root, back) = (lab.place("source"), lab.place("root"), lab.place("back"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2004));
    let daemon = Daemon::start(&lab, &root);
    let run = |way: &str, from: OsString, to: OsString| lab.run_cp([OsString::from("--transport"), way.into(), from, to]);
    run("tcp", source.join("file").into(), daemon.url("tcp").into()).expect(0);
    lab.block_udp();
    let told = run("auto", source.join("file").into(), daemon.url("auto").into()).expect(0);
    assert!(told.stderr.contains("is blocked: ask for UDP 7700; over TCP for now"), "{told}");
    run("auto", daemon.url("auto").into(), OsString::from(&back)).expect(0);
    for copy in [root.join("tcp"), root.join("auto"), back.join("auto")] {
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&copy));
    }
    let refused = run("udp", source.join("file").into(), daemon.url("udp").into()).expect(2);
    assert!(refused.stderr.contains("no answer over UDP"), "{refused}");
}

#[test]
fn a_copy_with_a_daemon_that_loses_udp_in_the_middle_goes_on_over_tcp() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("50mbit");
    let (source, root) = (lab.place("source"), lab.place("root"));
    tree::write_random(&source.join("file"), 2 * SIZE, &mut Random::seeded(2005));
    let daemon = Daemon::start(&lab, &root);
    let start = lab.bytes_carried();
    let mut running = Running::start(lab.cp([OsString::from(source.join("file")), daemon.url("").into()]));
    let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > SIZE * 8 / 5);
    assert!(under_way && running.runs(), "the copy is not under way");
    lab.block_udp();
    let finished = running.wait(PATIENCE).expect(0);
    assert_said(&[finished], &["has brought nothing for", "over TCP"]);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&root.join("file")));
    assert!(lab.bytes_carried() - start < 3 * SIZE, "sent again");
}

/// An outage of everything is no reason to go over: the copy waits, and goes on over UDP.
#[test]
fn where_the_whole_network_is_away_for_a_while_udp_is_waited_for() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("50mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2006));
    let start = lab.bytes_carried();
    let mut running = Running::start(lab.cp([source.join("file").into(), far(&there)]));
    let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > SIZE / 3);
    assert!(under_way && running.runs(), "the copy is not under way");
    lab.cut();
    pause(Duration::from_secs(12));
    lab.mend();
    let finished = running.wait(PATIENCE).expect(0);
    assert!(!finished.stderr.contains("over TCP") && !finished.stderr.contains("own connection"), "{finished}");
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
}

#[test]
fn pipes_shells_measurements_and_rsync_find_the_same_ways() {
    let Some(lab) = Lab::open() else { return };
    let config = lab.ssh_config().to_owned();
    let file = lab.place("file").join("random");
    tree::write_random(&file, 5 << 20, &mut Random::seeded(2007));
    lab.block_udp();
    for way in ["auto", "tcp", "ssh"] {
        let haul = |words: &[&str]| {
            let mut command = lab.haul(&lab.near);
            command.arg(words[0]).arg("-F").arg(&config).args(["--transport", way]).args(&words[1..]);
            command
        };
        let input = || Stdio::from(File::open(&file).expect("the file"));
        let piped = Running::start_with(haul(&["pipe", "far", "--", "cat"]), input()).wait(PATIENCE).expect(0);
        assert_eq!(blake3::hash(&piped.stdout), tree::hash(&file), "{way}");
        let shell = Running::start_with(haul(&["rsh", "far", "cat; exit 7"]), input()).wait(PATIENCE).expect(7);
        assert_eq!(blake3::hash(&shell.stdout), tree::hash(&file), "{way}");
        for reverse in [&[][..], &["-R"]] {
            let words = [&["perf"][..], reverse, &["-t", "2", "far"]].concat();
            Running::start(haul(&words)).wait(PATIENCE).expect(0);
        }
        if way == "auto" {
            assert_said(&[piped, shell], &["UDP is blocked inbound at far", "over TCP"]);
        }
    }
    let there = lab.place("there");
    let mut rsync = lab.haul(&lab.near);
    let shell = format!("ssh -F {}", config.display());
    rsync.args(["rsync", "--transport", "tcp", "-a", "-e", &shell]).arg(&file).arg(far(&there));
    Running::start(rsync).wait(PATIENCE).expect(0);
    assert_eq!(tree::hash(&file), tree::hash(&there.join("random")));
}
