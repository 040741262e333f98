//! What a network does to a copy: it goes away for a while, it changes the address, it lets no UDP through.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use e2e::tree;
use e2e::{Daemon, Lab, Random, Running, eventually, pause};

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
    assert!(under_way && running.runs(), "the copy is not under way");
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

#[test]
fn blocked_udp_is_noticed_soon_and_explained() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), 1000, &mut Random::seeded(62));
    lab.ssh_config();
    lab.block_udp();
    let finished = lab.run_cp([source.join("file").into(), far(&there)]).expect(2);
    assert!(finished.took < Duration::from_secs(8), "{finished}");
    assert!(
        finished.stderr.contains("error:") && finished.stderr.contains("hint:") && finished.stderr.contains("UDP"),
        "{finished}"
    );
    assert!(tree::names(&there).is_empty(), "{:?}", tree::names(&there));
    lab.assert_no_process_left(Duration::from_secs(10));
}
