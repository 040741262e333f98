//! A FatTree of network namespaces: its paths, its rates, the study that is played in it, and that nothing is left of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{Lab, Running, Stopwatch, eventually, haul_binary, pause};
use haul_lab::{Tree, TreeHost, TreeSpec};
use haul_units::{BitRate, Bytes};
use rustix::process::Signal;

const SPEC: TreeSpec = TreeSpec {
    ports: 4,
    host: BitRate::mbps(50),
    aggregation: BitRate::mbps(100),
    core: BitRate::mbps(200),
    buffer: Bytes(100_000),
    least_timeout: Duration::from_millis(400),
    seed: 3,
};

/// Sends so much from one host to another over a connection of its own, and waits until it is there.
fn send(from: &TreeHost, to: &TreeHost, bytes: usize) {
    let listener = to.namespace.within(|| TcpListener::bind((to.address, 0))).expect("entering").expect("binding");
    let at = listener.local_addr().expect("an address");
    std::thread::scope(|scope| {
        let arrived = scope.spawn(|| {
            let mut content = Vec::new();
            listener.accept().expect("a connection").0.read_to_end(&mut content).expect("it can be read");
            content.len()
        });
        let mut stream = from.namespace.within(|| TcpStream::connect(at)).expect("entering").expect("connecting");
        stream.write_all(&vec![0x5a; bytes]).expect("it can be written");
        drop(stream);
        assert_eq!(arrived.join().expect("the receiver"), bytes);
    });
}

/// What each switch of the core has received meanwhile.
fn core_received(tree: &Tree, work: impl FnOnce()) -> Vec<u64> {
    let before = tree.core_carried();
    work();
    tree.core_carried().iter().zip(before).map(|([after, _], [before, _])| (*after - before).as_u64()).collect()
}

/// Those whom a process or a thread of this machine is in, or holds, of these namespaces.
fn held(namespaces: &BTreeSet<String>) -> BTreeSet<String> {
    let list = |path: &std::path::Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let link = |path: std::path::PathBuf| fs::read_link(path).ok().map(|link| link.to_string_lossy().into_owned());
    let mut found = BTreeSet::new();
    let is_process =
        |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
    for process in list("/proc".as_ref()).filter(is_process) {
        found.extend(list(&process.join("task")).filter_map(|task| link(task.join("ns/net"))));
        found.extend(list(&process.join("fd")).filter_map(link));
    }
    found.intersection(namespaces).cloned().collect()
}

fn namespace_of(host: &TreeHost) -> String {
    let link = fs::read_link(format!("/proc/self/fd/{}", host.namespace.as_fd().as_raw_fd()));
    link.expect("a link").to_string_lossy().into_owned()
}

#[test]
fn flows_of_two_hosts_take_all_paths_each_flow_one_and_nothing_stays() {
    let Some(_lab) = Lab::open() else { return };
    let tree = Tree::lay(&SPEC).expect("a tree");
    let (first, last) = (&tree.hosts()[0], &tree.hosts()[15]);
    // ARP everywhere, and whatever else only comes once.
    (0..16).for_each(|_| send(first, last, 1000));
    let one = core_received(&tree, || send(first, last, 200_000));
    assert_eq!(one.iter().filter(|bytes| **bytes > 200_000).count(), 1, "one flow takes one path: {one:?}");
    let many = core_received(&tree, || (0..40).for_each(|_| send(first, last, 10_000)));
    // A path in four has 10 of 40 flows; 2 or fewer have a chance of 1 in 1000.
    assert!(many.iter().all(|bytes| *bytes > 20_000), "flows of other ports take other paths: {many:?}");
    let beside = core_received(&tree, || send(first, &tree.hosts()[1], 100_000));
    assert!(beside.iter().all(|bytes| *bytes < 5000), "two hosts of an edge do not need the core: {beside:?}");

    let watch = Stopwatch::start();
    send(first, last, 2_000_000);
    let took = watch.elapsed();
    // 2 MB in packets of 1448 of 1500 bytes at 50 Mbit/s.
    assert!(took > Duration::from_millis(310) && took < Duration::from_secs(3), "{took:?}");

    let namespaces: BTreeSet<String> = tree.hosts().iter().map(namespace_of).collect();
    assert_eq!(held(&namespaces).len(), 16);
    drop(tree);
    assert!(held(&namespaces).is_empty(), "{:?}", held(&namespaces));
}

/// The study under way, and the network namespaces that its process holds.
fn study(lab: &Lab, name: &str) -> (Running, BTreeSet<String>) {
    let mut command = Command::new(haul_binary());
    command.args(["lab", "run", "fattree", "--real", "--quick", "--out"]).arg(lab.scratch().join(name));
    let mut running = Running::start_with(command, Stdio::null());
    let own = fs::read_link("/proc/self/ns/net").expect("a link").to_string_lossy().into_owned();
    let mut namespaces = BTreeSet::new();
    let is_laid = eventually(Duration::from_secs(30), || {
        let fds = fs::read_dir(format!("/proc/{}/fd", running.pid().as_raw_nonzero())).into_iter().flatten().flatten();
        let links = fds.filter_map(|fd| Some(fs::read_link(fd.path()).ok()?.to_string_lossy().into_owned()));
        namespaces = links.filter(|link| link.starts_with("net:") && *link != own).collect();
        namespaces.len() == 36
    });
    assert!(is_laid && running.runs(), "{} namespaces", namespaces.len());
    // Hosts listen and flows have begun: threads are in some of them.
    pause(Duration::from_secs(2));
    (running, namespaces)
}

#[test]
fn nothing_is_left_of_a_study_that_is_interrupted_or_killed() {
    let Some(lab) = Lab::open() else { return };
    for (signal, code, patience) in [(Signal::INT, Some(130), 10), (Signal::KILL, None, 3)] {
        let (running, namespaces) = study(&lab, "interrupted");
        assert_eq!(held(&namespaces).len(), 36);
        running.signal(signal);
        let finished = running.wait(Duration::from_secs(patience));
        assert_eq!(finished.code, code, "{finished}");
        assert!(eventually(Duration::from_secs(2), || held(&namespaces).is_empty()), "{:?}", held(&namespaces));
    }
}

/// A file of comma-separated values, whose cells with commas are quoted.
fn table(lab: &Lab, name: &str) -> Vec<Vec<String>> {
    let path = lab.scratch().join("study/fattree/real").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cells = |line: &str| {
        let parts: Vec<&str> = line.split('"').collect();
        let quoted = |(at, part): (usize, &&str)| if at % 2 == 1 { part.replace(',', ";") } else { (*part).to_owned() };
        parts.iter().enumerate().map(quoted).collect::<String>().split(',').map(str::to_owned).collect()
    };
    text.lines().skip(1).map(cells).collect()
}

#[test]
fn the_study_is_played_by_tcp_mptcp_and_haul_and_bytes_of_each_subflow_are_told() {
    let Some(lab) = Lab::open() else { return };
    let mut command = Command::new(haul_binary());
    command.args(["lab", "run", "fattree", "--real", "--quick", "--out"]).arg(lab.scratch().join("study"));
    let finished = Running::start(command).wait(Duration::from_secs(180));
    finished.expect(0);
    let text = fs::read_to_string(lab.scratch().join("study/fattree/real/report.txt")).expect("a report");
    assert!(!text.contains("broke off") && !text.contains("failed,"), "{text}");

    let times = table(&lab, "times.csv");
    for (by, among) in [("TCP", "TCP"), ("TCP", "MPTCP; uncoupled"), ("TCP", "haul; fair; 4 paths"), ("haul; fair", "TCP")] {
        let row =
            times.iter().find(|row| row[1] == by && row[2] == among).unwrap_or_else(|| panic!("{by} among {among}: {text}"));
        // 70 KB take 29 ms on a line of 20 Mbit/s; the mean of all of them stands before their deviation.
        assert!(row[5].parse::<f64>().is_ok_and(|mean| mean > 29.0), "{text}");
    }
    let subflows = table(&lab, "subflows.csv");
    let of = |by: &str| -> Vec<Vec<u64>> {
        let long = subflows.iter().filter(|row| row[0] == "long" && row[2] == by);
        long.map(|row| row[8].split(' ').filter_map(|bytes| bytes.parse().ok()).collect()).collect()
    };
    assert!(of("TCP").iter().all(|flow| flow.len() == 1 && flow[0] > 1_000_000), "{text}");
    for by in ["MPTCP; uncoupled", "haul; fair; 4 paths"] {
        let flows = of(by);
        assert!(flows.len() == 5 && flows.iter().all(|flow| flow.len() == 4), "{by}: {flows:?}");
        let all: u64 = flows.iter().flatten().sum();
        assert!(all > 5_000_000, "{by}: {flows:?}");
    }
    assert!(of("MPTCP; uncoupled").iter().all(|flow| flow.iter().all(|bytes| *bytes > 0)), "{text}");
}
