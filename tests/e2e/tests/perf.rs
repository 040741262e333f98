//! `haul perf` across emulated links: over ssh, against a server for anyone, against a daemon, over TCP, and as a mesh of six sites.

use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::{Finished, Modes, Random, Running, Sites, Stopwatch, eventually, pause, tree};
use haul_lab::LinkOptions;
use haul_units::{BitRate, Ratio};
use rustix::process::Signal;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);

/// A link of a site: its rate, its part of every round trip, its loss.
fn link(rate: BitRate, rtt_ms: u64, loss_percent: f64, seed: u64) -> LinkOptions {
    LinkOptions { rate, rtt: Duration::from_millis(rtt_ms), loss: Ratio::percent(loss_percent), seed, ..LinkOptions::default() }
}

/// Two sites, 100 Mbit/s, 20 ms apart, 0.2 % loss on the way.
fn two() -> Option<Sites> {
    Sites::open(&[link(BitRate::mbps(100), 10, 0.1, 1), link(BitRate::mbps(100), 10, 0.1, 3)])
}

fn run(sites: &Sites, from: usize, args: &str) -> Finished {
    let mut command = sites.haul(sites.site(from));
    command.arg("perf").args(args.split_whitespace());
    Running::start(command).wait(PATIENCE)
}

fn over_ssh(sites: &Sites, args: &str) -> Finished {
    run(sites, 1, &format!("-F {} site2 {args}", sites.ssh_config().display()))
}

/// A server on site 2, its line of JSON read.
struct Server {
    running: Running,
}

impl Server {
    fn start(sites: &Sites, args: &str) -> Self {
        let mut command = sites.haul(sites.site(2));
        command.args(["perf", "-s"]).args(args.split_whitespace());
        let running = Running::start(command);
        let listens = || {
            let output = sites.site(2).command("ss").args(["-Hlun", "sport = :7701"]).output();
            output.is_ok_and(|output| !output.stdout.is_empty())
        };
        assert!(eventually(Duration::from_secs(10), listens), "haul perf -s does not listen");
        Self { running }
    }

    fn stop(self) -> Finished {
        self.running.signal(Signal::INT);
        self.running.wait(Duration::from_secs(10))
    }
}

fn document(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or_else(|| panic!("{value} is no list"), Vec::as_slice)
}

/// What every measurement must be: intervals add up to the total, and nothing is faster than the link.
fn assert_sound(document: &Value, most_mbps: f64) {
    let received = &document["end"]["sum_received"];
    let bytes: u64 = list(&document["intervals"]).iter().map(|interval| interval["sum"]["bytes"].as_u64().unwrap_or(0)).sum();
    assert_eq!(received["bytes"], bytes, "{document:#}");
    let bps = number(&received["bits_per_second"]);
    assert!(bps > 0.0 && bps <= most_mbps * 1e6, "{bps} bit/s on a link of {most_mbps} Mbit/s");
    assert!(number(&document["end"]["sum_sent"]["bytes"]) >= bytes as f64 * 0.99, "{document:#}");
    assert!(number(&document["end"]["latency_us"]["idle_ping"]["p50"]) >= 19_000.0, "20 ms apart: {document:#}");
}

#[test]
fn over_ssh_both_ways_and_at_once() {
    let Some(sites) = two() else { return };
    let there = document(&over_ssh(&sites, "-t 3 -i 0.5 -J").expect(0));
    assert_sound(&there, 101.0);
    assert_eq!(list(&there["intervals"]).len(), 6, "{there:#}");
    assert_eq!(there["start"]["haul"]["transport"], "haul");
    let sum = &there["end"]["sum_sent"];
    // More than the link loses where it has to share its processor; never nearly everything.
    assert!(number(&sum["retransmits"]) > 0.0 && number(&sum["loss"]) < 0.5, "0.2 % are lost: {sum:#}");
    assert!(number(&sum["burst_p99_packets"]) >= 1.0, "{sum:#}");
    let spread = &there["end"]["latency_us"]["client_to_server"];
    assert!(number(&spread["rtt"]["p50"]) >= 19_000.0 && number(&spread["rtt"]["count"]) > 20.0, "{spread:#}");
    assert!(!list(&spread["gaps_packets"]).is_empty(), "{spread:#}");
    let back = document(&over_ssh(&sites, "-t 2 -R -O 1 -P 3 --get-server-output -J").expect(0));
    assert_eq!((back["start"]["test_start"]["reverse"].as_u64(), list(&back["end"]["streams"]).len()), (Some(1), 3));
    assert_eq!(back["intervals"][0]["sum"]["omitted"], true);
    assert!(number(&back["end"]["sum_received"]["bits_per_second"]) <= 101e6);
    assert!(back["server_output_text"].as_str().unwrap().contains("sender"), "{back:#}");
    let both = document(&over_ssh(&sites, "-t 2 --bidir --mode cubic -J").expect(0));
    assert!(
        number(&both["end"]["sum_received_bidir_reverse"]["bytes"]) > 0.0 && number(&both["end"]["sum_received"]["bytes"]) > 0.0
    );
    assert_eq!(both["end"]["sender_tcp_congestion"], "cubic", "{both:#}");
    let left = || sites.site(2).processes(&["haul remote"]);
    assert!(eventually(Duration::from_secs(10), || left().is_empty()), "left behind: {:?}", left());
}

/// A stream hands over at most four blocks more than the slowest one. What arrives differs by these, and by what is on its way in the end: half a megabyte, twice what the path holds.
#[test]
fn streams_share_evenly() {
    const BLOCK: f64 = 65_536.0;
    let Some(sites) = two() else { return };
    let shared = document(&over_ssh(&sites, "-t 5 -P 4 -l 64K -J").expect(0));
    let streams = list(&shared["end"]["streams"]);
    let bytes: Vec<f64> = streams.iter().map(|stream| number(&stream["receiver"]["bytes"])).collect();
    let (least, most) = (bytes.iter().copied().fold(f64::INFINITY, f64::min), bytes.iter().copied().fold(0.0, f64::max));
    assert!(bytes.len() == 4 && least > 0.0 && most - least <= (4.0 + 8.0) * BLOCK, "{bytes:?}");
}

#[test]
fn tcp_is_measured_in_the_same_way() {
    let Some(sites) = two() else { return };
    let tcp = document(&over_ssh(&sites, "-t 3 --tcp --congestion cubic -P 2 -J").expect(0));
    assert_sound(&tcp, 101.0);
    assert_eq!(
        (tcp["start"]["haul"]["transport"].as_str(), tcp["end"]["sender_tcp_congestion"].as_str()),
        (Some("tcp"), Some("cubic"))
    );
    for stream in list(&tcp["end"]["streams"]) {
        assert!(number(&stream["sender"]["mean_rtt"]) >= 19_000.0 && stream["sender"]["retransmits"].is_u64(), "{stream:#}");
    }
    let unknown = over_ssh(&sites, "-t 1 --tcp --congestion nonesuch").expect(2);
    assert!(unknown.stderr.contains("nonesuch") && unknown.stderr.contains("hint: this kernel has"), "{unknown}");
}

#[test]
fn a_server_for_anyone_serves_many_at_once_and_within_its_bounds() {
    let Some(sites) = two() else { return };
    let server = Server::start(&sites, "--max-time 20 --max-clients 3");
    let clients: Vec<Running> = (0..5)
        .map(|_| {
            let mut command = sites.haul(sites.site(1));
            command.args(["perf", "-c", "10.90.2.1", "-t", "4", "-J"]);
            Running::start(command)
        })
        .collect();
    let finished: Vec<Finished> = clients.into_iter().map(|client| client.wait(PATIENCE)).collect();
    let measured: Vec<&Finished> = finished.iter().filter(|client| client.code == Some(0)).collect();
    assert_eq!(measured.len(), 3, "{}", finished.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    for turned_away in finished.iter().filter(|client| client.code != Some(0)) {
        assert!(turned_away.code == Some(2) && turned_away.stderr.contains("as many clients as it takes"), "{turned_away}");
    }
    let rates: Vec<f64> =
        measured.iter().map(|client| number(&document(client)["end"]["sum_received"]["bits_per_second"])).collect();
    assert!(rates.iter().sum::<f64>() <= 101e6, "{rates:?}");
    let exact = document(&run(&sites, 1, "-c 10.90.2.1 -n 3000000 -i 0.1 -l 7000 -J").expect(0));
    assert_eq!(exact["end"]["sum_received"]["bytes"], 3_000_000);
    let slow = document(&run(&sites, 1, "-c 10.90.2.1:7701 -t 2 -b 5M -J").expect(0));
    assert!(number(&slow["end"]["sum_received"]["bits_per_second"]) <= 5.5e6, "{slow:#}");
    let streamed = run(&sites, 1, "-c 10.90.2.1 -t 1 -i 0.5 --json-stream").expect(0);
    assert!(
        number(&streamed.event("interval")["data"]["sum"]["bytes"]) > 0.0
            && streamed.event("start")["data"]["cookie"].is_string()
    );
    assert!(number(&streamed.event("end")["data"]["sum_received"]["bytes"]) > 0.0, "{streamed}");
    let titled = run(&sites, 1, "-c 10.90.2.1 -t 1 -T Q7").expect(0);
    assert!(String::from_utf8_lossy(&titled.stdout).lines().all(|line| line.starts_with("Q7:")), "{titled}");
    let long = run(&sites, 1, "-c 10.90.2.1 -t 21").expect(2);
    assert!(long.stderr.contains("20s are possible at most"), "{long}");
    let pinned = run(&sites, 1, &format!("-c 10.90.2.1 -t 1 --key SHA256:{}", "A".repeat(43))).expect(2);
    assert!(pinned.stderr.contains("its key is not the one given"), "{pinned}");
    let log = server.stop();
    assert!(log.code == Some(130) && String::from_utf8_lossy(&log.stdout).contains("turned away"), "{log}");
}

#[test]
fn either_end_may_be_killed() {
    let Some(sites) = two() else { return };
    let server = Server::start(&sites, "");
    let client = || {
        let mut command = sites.haul(sites.site(1));
        command.args(["perf", "-c", "10.90.2.1", "-t", "60"]);
        Running::start(command)
    };
    // Ctrl-C ends a measurement with the results so far.
    let interrupted = client();
    pause(Duration::from_secs(3));
    interrupted.signal(Signal::INT);
    let interrupted = interrupted.wait(Duration::from_secs(20));
    assert!(interrupted.code == Some(130) && String::from_utf8_lossy(&interrupted.stdout).contains("receiver"), "{interrupted}");
    // A client that was killed does not keep the server from serving others.
    let killed = client();
    pause(Duration::from_secs(1));
    drop(killed);
    assert_sound(&document(&run(&sites, 1, "-c 10.90.2.1 -t 1 -J").expect(0)), 101.0);
    let abandoned = client();
    pause(Duration::from_secs(2));
    server.stop();
    let abandoned = abandoned.wait(Duration::from_secs(30));
    assert!(abandoned.code == Some(2) && abandoned.stderr.contains("error:"), "{abandoned}");
    // Over ssh, the far side goes with the client.
    let mut command = sites.haul(sites.site(1));
    command.args(["perf", "-F"]).arg(sites.ssh_config()).args(["site2", "-t", "60"]);
    let over_ssh = Running::start(command);
    let there = || !sites.site(2).processes(&["haul remote"]).is_empty();
    assert!(eventually(Duration::from_secs(20), there));
    drop(over_ssh);
    assert!(eventually(Duration::from_secs(30), || !there()), "haul remote outlives its client");
}

#[test]
fn several_paths_go_to_the_servers_one_port_and_each_is_told() {
    let Some(sites) = two() else { return };
    // Below a bound of its own a server sends at a fixed rate to strangers.
    let server = Server::start(&sites, "--max-bitrate 100M");
    // At a rate that is fixed all paths carry, whatever they share.
    for args in ["--paths 2 --mode fixed:80M", "--paths 4 -R --mode fixed:80M"] {
        let document = document(&run(&sites, 1, &format!("-c 10.90.2.1 -t 3 -J {args}")).expect(0));
        assert_sound(&document, 101.0);
        let paths = list(&document["end"]["sum_sent"]["paths"]);
        assert_eq!(Some(paths.len() as u64), document["start"]["haul"]["paths"].as_u64(), "{document:#}");
        assert_eq!(paths.len(), if args.contains('4') { 4 } else { 2 }, "{document:#}");
        let intervals = list(&document["intervals"]);
        assert!(intervals.last().is_some_and(|last| list(&last["sum"]["paths"]).len() == paths.len()));
        for (index, path) in paths.iter().enumerate() {
            // A machine that stalls may find a path silent at the very end, not all the time.
            assert!(
                intervals.iter().any(|interval| interval["sum"]["paths"][index]["usable"] == true),
                "{path:#} {intervals:#?}"
            );
            assert!(number(&path["bytes"]) > 100_000.0, "{path:#}");
            assert!(number(&path["rtt"]) >= 19_000.0, "20 ms apart: {path:#}");
        }
    }
    let text = run(&sites, 1, "-c 10.90.2.1 -t 1 --paths 2").expect(0);
    let lines = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(lines.contains("\nPath 0 ") && lines.contains("\nPath 1 ") && !lines.contains("\nPath 2 "), "{text}");
    let one = document(&run(&sites, 1, "-c 10.90.2.1 -t 1 -J").expect(0));
    assert!(one["end"]["sum_sent"]["paths"].is_null() && one["start"]["haul"]["paths"] == 1, "{one:#}");
    server.stop();
}

#[test]
fn a_scheduler_is_chosen_by_its_name() {
    let Some(sites) = two() else { return };
    let server = Server::start(&sites, "");
    // What the paths have carried, in parts of what has arrived.
    let carried = |args: &str| {
        let document = document(&run(&sites, 1, &format!("-c 10.90.2.1 -t 3 -J --paths 2 --mode fixed:40M {args}")).expect(0));
        let paths = list(&document["end"]["sum_sent"]["paths"]).iter().map(|path| number(&path["bytes"])).sum::<f64>();
        paths / number(&document["end"]["sum_received"]["bytes"])
    };
    let (usual, redundant) = (carried(""), carried("--scheduler redundant"));
    assert!(usual < 1.3 && redundant > 1.6, "{usual} and {redundant}");
    let refused = run(&sites, 1, "-c 10.90.2.1 --scheduler best").expect(2);
    assert!(refused.stderr.contains("shortest-rtt"), "{refused}");
    server.stop();
}

#[test]
fn a_copy_runs_over_several_paths_to_one_port_of_the_far_side() {
    let Some(sites) = two() else { return };
    let (source, back) = (sites.scratch().join("source"), sites.scratch().join("back"));
    let there = sites.scratch().join("there");
    tree::write_random(&source, 10 << 20, &mut Random::seeded(64));
    let far = |path: &PathBuf| format!("site2:{}", path.display());
    let copies = [(source.display().to_string(), far(&there)), (far(&there), back.display().to_string())];
    for (from, to) in copies {
        let mut command = sites.haul(sites.site(1));
        command.arg("cp").arg("-F").arg(sites.ssh_config());
        command.args(["-v", "--paths", "2", "--udp-port", "7700", &from, &to]);
        let finished = Running::start(command).wait(PATIENCE).expect(0);
        assert!(finished.stderr.contains("2 paths: RTT"), "{finished}");
    }
    assert_eq!(tree::hash(&source), tree::hash(&there));
    assert_eq!(tree::hash(&source), tree::hash(&back));
}

#[test]
fn a_daemon_is_measured_by_those_it_knows() {
    let Some(sites) = two() else { return };
    let key = |site: usize, args: &[&str]| {
        let mut command = sites.haul(sites.site(site));
        command.arg("key").args(args);
        String::from_utf8(Running::start(command).wait(PATIENCE).expect(0).stdout).unwrap().trim().to_owned()
    };
    let (ours, theirs) = (key(1, &["show"]), key(2, &["show"]));
    key(1, &["trust", "10.90.2.1", &theirs]);
    let mut command = sites.haul(sites.site(2));
    command.args(["serve", "--listen", "10.90.2.1:7700", "--root"]).arg(format!("x={}", sites.scratch().display()));
    let _daemon = Running::start(command);
    let refused = || run(&sites, 1, "haul://10.90.2.1 -t 1");
    let is_named = eventually(Duration::from_secs(20), || refused().stderr.contains("not authorised"));
    assert!(is_named, "{}", refused());
    key(2, &["authorize", &ours]);
    assert_sound(&document(&run(&sites, 1, "haul://10.90.2.1 -t 2 -J").expect(0)), 101.0);
    assert_sound(&document(&run(&sites, 1, "haul://10.90.2.1 -t 2 --tcp -J").expect(0)), 101.0);
}

/// `--tcp-mode`: TCP with another congestion control stands where haul stands otherwise.
#[test]
fn a_mesh_of_tcp_against_tcp() {
    let Some(sites) = Sites::open(&[link(BitRate::mbps(200), 2, 0.0, 2), link(BitRate::mbps(200), 2, 0.0, 4)]) else { return };
    let out = sites.scratch().join("mesh");
    let mesh = |law: &str, out: &Path| {
        let mut command = sites.haul(sites.hub());
        command.args(["perf", "mesh", "-F"]).arg(sites.ssh_config()).args(["-t", "1", "--tcp-mode", law, "--out"]).arg(out);
        Running::start({
            command.args(["one=site1,10.90.1.1", "two=site2,10.90.2.1"]);
            command
        })
        .wait(Duration::from_secs(120))
    };
    let finished = mesh("reno", &out).expect(0);
    let table = String::from_utf8_lossy(&finished.stdout).into_owned();
    assert!(table.contains("TCP (reno) over TCP (cubic)"), "{table}");
    let text = std::fs::read_to_string(out.with_extension("json")).expect("the results");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((results["transport"].as_str(), results["mode"].as_str()), (Some("tcp"), Some("reno")));
    for pair in list(&results["pairs"]) {
        assert!(number(&pair["haul"]["bits_per_second"]) > 0.0 && number(&pair["tcp"]["bits_per_second"]) > 0.0, "{pair:#}");
    }
    let refused = mesh("nonesuch", &sites.scratch().join("refused")).expect(2);
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(said.contains("no congestion control `nonesuch`"), "which law is missing: {refused}");
}

/// Six sites like those of the field experiment: links of 1 and 10 Gbit/s, round trips of 2 to 18 ms, loss.
///
/// `MESH_SECONDS` measures longer, `MESH_OUT` keeps the results under that prefix, and with `MESH_TCP_MODE` the kernel's TCP in that mode stands in haul's place.
#[test]
fn a_mesh_of_six_sites() {
    let (one, ten) = (BitRate::gbps(1), BitRate::gbps(10));
    let links = [(ten, 1, 0.01), (one, 9, 0.1), (one, 9, 0.05), (ten, 3, 0.05), (ten, 1, 0.01), (one, 6, 0.1)];
    let links: Vec<LinkOptions> =
        links.iter().zip(1..).map(|(&(rate, rtt, loss), seed)| link(rate, rtt, loss, 2 * seed)).collect();
    let Some(sites) = Sites::open(&links) else { return };
    let watch = Stopwatch::start();
    let names = ["NICT", "Kyushu", "Ehime", "Kyoto", "Chiba", "Tsukuba"];
    let file_of_sites = sites.scratch().join("sites.txt");
    let lines = names.iter().zip(1..).map(|(name, number)| format!("{name} = site{number}, 10.90.{number}.1\n"));
    std::fs::write(&file_of_sites, format!("# name = ssh destination, address\n{}", lines.collect::<String>()))
        .expect("writing the list");
    let out = std::env::var_os("MESH_OUT").map_or_else(|| sites.scratch().join("mesh"), PathBuf::from);
    let seconds = std::env::var("MESH_SECONDS").unwrap_or_else(|_| "1".to_owned());
    let mut command = sites.haul(sites.hub());
    command.args(["perf", "mesh", "-F"]).arg(sites.ssh_config()).args(["-t", &seconds, "--interval", "0.25", "--out"]).arg(&out);
    // The seventh is not there.
    command.args(["-o", "ConnectTimeout=3"]).arg(&file_of_sites).arg("nobody=site7.invalid");
    if std::env::var_os("MESH_SECONDS").is_none() {
        command.args(["--at-once", "3"]);
    }
    let mode = std::env::var("MESH_TCP_MODE").ok();
    let _modes = mode.as_ref().map(|mode| {
        let modes = Modes::alone().expect("a mode of haul's");
        Modes::haul(&["on", mode]);
        modes
    });
    if let Some(mode) = &mode {
        command.args(["--tcp-mode", mode]);
    }
    let finished = Running::start(command).wait(Duration::from_secs(1800)).expect(1);
    println!("{finished}\nafter {:?}", watch.elapsed());
    let file =
        |ending: &str| std::fs::read_to_string(out.with_extension(ending)).unwrap_or_else(|error| panic!("{ending}: {error}"));
    let results: Value = serde_json::from_str(&file("json")).expect("JSON");
    let pairs = list(&results["pairs"]);
    assert_eq!(pairs.len(), 42);
    for pair in pairs {
        let involves = |name: &str| pair["from"] == name || pair["to"] == name;
        if involves("nobody") {
            assert!(!pair["error"].as_str().unwrap().is_empty(), "{pair:#}");
            continue;
        }
        let most = if ["Kyushu", "Ehime", "Tsukuba"].into_iter().any(involves) { 1e9 } else { 1e10 };
        for over in ["haul", "tcp"] {
            let bps = number(&pair[over]["bits_per_second"]);
            assert!(bps > 0.0 && bps <= most * 1.02, "{pair:#}");
            assert!(number(&pair[over]["idle_rtt_us"]) >= 2000.0, "{pair:#}");
        }
    }
    assert_eq!(file("csv").lines().count(), 43);
    let page = file("html");
    assert!(page.matches("<svg").count() == 30 && page.matches("class=\"x\"").count() == 12, "{page}");
    let table = String::from_utf8_lossy(&finished.stdout).into_owned();
    assert!(names.iter().all(|name| table.contains(name)) && table.contains("x  NICT to nobody"), "{table}");
    let left = || (1..=6).flat_map(|number| sites.site(number).processes(&["haul", "perf"])).collect::<Vec<_>>();
    assert!(eventually(Duration::from_secs(15), || left().is_empty()), "left behind: {:?}", left());
}
