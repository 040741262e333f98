//! What a network does to a copy: it goes away for a while, it changes the address, it lets no UDP through.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use e2e::tree;
use e2e::{Daemon, Lab, Random, Running, Stopwatch, eventually, pause};
use rustix::process::{Signal, kill_process};

const SIZE: u64 = 60 << 20;

fn far(path: &Path) -> OsString {
    let mut operand = OsString::from("far:");
    operand.push(path);
    operand
}

/// Waits until a copy has moved a third of its data.
#[track_caller]
fn wait_until_under_way(lab: &Lab, running: &mut Running, start: u64) {
    let under_way = eventually(Duration::from_secs(60), || lab.bytes_carried() - start > SIZE / 3);
    let carried = lab.bytes_carried() - start;
    assert!(under_way && running.runs(), "the copy is not under way: {carried} bytes, running: {}", running.runs());
}

#[test]
fn a_link_that_is_down_for_thirty_seconds_only_delays_the_copy() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("100mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(60));
    let start = lab.bytes_carried();
    let mut running = Running::start(lab.cp([source.join("file").into(), far(&there)]));
    wait_until_under_way(&lab, &mut running, start);
    lab.cut();
    pause(Duration::from_secs(30));
    lab.mend();
    running.wait(Duration::from_secs(60)).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
}

#[test]
fn a_new_address_in_the_middle_does_not_stop_the_copy() {
    let Some(mut lab) = Lab::open() else { return };
    lab.limit("100mbit");
    let (source, root, back) = (lab.place("source"), lab.place("root"), lab.place("back"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(61));
    let daemon = Daemon::start(&lab, &root);
    let there = (OsString::from(source.join("file")), OsString::from(daemon.url("")));
    let again = (OsString::from(daemon.url("file")), OsString::from(&back));
    for (from, to) in [there, again] {
        let start = lab.bytes_carried();
        let mut running = Running::start(lab.cp([from, to]));
        wait_until_under_way(&lab, &mut running, start);
        lab.renumber_near();
        running.wait(Duration::from_secs(60)).expect(0);
    }
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&root.join("file")));
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&back.join("file")));
}

/// The far side is slow to answer, and meanwhile ssh's connection dies without a word.
#[test]
fn another_network_while_ssh_logs_in_does_not_stop_the_copy() {
    let Some(mut lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), 1 << 20, &mut Random::seeded(64));
    let (slow, begun) = (lab.place("bin").join("slow-haul"), lab.place("begun").join("mark"));
    // The first one never answers.
    let script = format!("#!/bin/sh\nif mkdir '{}' 2>/dev/null; then exec sleep 600; fi\nexec haul \"$@\"\n", begun.display());
    std::fs::write(&slow, script).expect("writing a script");
    std::fs::set_permissions(&slow, PermissionsExt::from_mode(0o755)).expect("making it a program");
    let running = Running::start(lab.cp([OsString::from("--remote-haul"), slow.into(), source.join("file").into(), far(&there)]));
    assert!(eventually(Duration::from_secs(30), || begun.exists()), "ssh has not started the far side");
    lab.replug_near(0);
    running.wait(Duration::from_secs(60)).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
}

/// As a laptop that leaves the Wi-Fi for a cable. First ssh's connection does not notice that it is dead, then it has, at both ends.
#[test]
fn another_network_in_the_middle_does_not_stop_the_copy() {
    let Some(mut lab) = Lab::open() else { return };
    lab.limit("50mbit");
    let (source, there, back) = (lab.place("source"), lab.place("there"), lab.place("back"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(63));
    let up = (OsString::from(source.join("file")), far(&there));
    let down = (far(&there.join("file")), OsString::from(&back));
    for (plugged, (from, to)) in [up.clone(), down.clone(), up, down].into_iter().enumerate() {
        for place in [&back, &there].into_iter().take(if plugged == 2 { 2 } else { 0 }) {
            std::fs::remove_file(place.join("file")).expect("the copy of the last round");
        }
        let start = lab.bytes_carried();
        let mut running = Running::start(lab.cp([from, to]));
        wait_until_under_way(&lab, &mut running, start);
        lab.replug_near(plugged as u8);
        let (watch, carried) = (Stopwatch::start(), lab.bytes_carried());
        if plugged >= 2 {
            lose_ssh(&lab);
        }
        // Within 2 s, and what a machine with other things to do may add.
        let goes_on = || lab.bytes_carried() - carried > 1 << 20 || !running.runs();
        let is_soon = eventually(Duration::from_secs(5), goes_on);
        println!("round {plugged}: goes on after {:?}", watch.elapsed());
        assert!(is_soon, "round {plugged}: {} bytes in 5 s", lab.bytes_carried() - carried);
        // Its ssh ends with it, too, where that has not noticed anything.
        running.wait(Duration::from_secs(60)).expect(0);
        lab.assert_no_process_left(Duration::from_secs(20));
    }
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&back.join("file")));
}

/// What keep-alives of both ends come to in the end.
fn lose_ssh(lab: &Lab) {
    let sessions = [lab.near.processes(&["ssh", "haul remote"]), lab.far.processes(&["sshd", "root@"])].concat();
    assert!(sessions.len() >= 2, "no session of ssh: {sessions:?}");
    for pid in sessions {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A near side that was killed is not waited for long: its ssh goes with it, and then nobody is heard.
#[test]
fn a_far_side_does_not_outlive_a_near_side_that_was_killed() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("50mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(64));
    let start = lab.bytes_carried();
    let mut running = Running::start(lab.cp([OsString::from(source.join("file")), far(&there)]));
    let under_way = || lab.bytes_carried() - start > SIZE / 10;
    assert!(eventually(Duration::from_secs(60), under_way) && running.runs(), "the copy is not under way");
    running.signal(Signal::KILL);
    running.wait(Duration::from_secs(10));
    // After some seconds of silence.
    lab.assert_no_process_left(Duration::from_secs(12));
}

#[test]
fn blocked_udp_is_noticed_soon_and_explained() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), 1000, &mut Random::seeded(62));
    lab.ssh_config();
    lab.block_udp();
    let finished = lab.run_cp(["--transport".into(), "udp".into(), source.join("file").into(), far(&there)]).expect(2);
    // It promises 5 s.
    assert!(finished.took < Duration::from_secs(15), "{finished}");
    assert!(
        finished.stderr.contains("error:") && finished.stderr.contains("hint:") && finished.stderr.contains("UDP"),
        "{finished}"
    );
    assert!(tree::names(&there).is_empty(), "{:?}", tree::names(&there));
    lab.assert_no_process_left(Duration::from_secs(10));
}
