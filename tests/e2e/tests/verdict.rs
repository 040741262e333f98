//! What a copy says limited it, on emulated paths where the truth is known.

use std::time::Duration;

use e2e::{Random, Running, Sites, eventually, tree};
use haul_lab::LinkOptions;
use haul_units::BitRate;

const PATIENCE: Duration = Duration::from_secs(120);

/// Two sites with links of this rate, so far apart.
fn two(rate: BitRate, rtt_ms: u64) -> Option<Sites> {
    let link = |seed| LinkOptions { rate, rtt: Duration::from_millis(rtt_ms / 2), seed, ..LinkOptions::default() };
    Sites::open(&[link(1), link(3)])
}

/// Copies so many bytes from site 1 to a daemon with these options on site 2; what the summary says.
fn verdict(sites: &Sites, bytes: u64, serve: &[&str], cp: &[&str]) -> String {
    let key = |site: usize, args: &[&str]| {
        let mut command = sites.haul(sites.site(site));
        command.arg("key").args(args);
        String::from_utf8(Running::start(command).wait(PATIENCE).expect(0).stdout).expect("text").trim().to_owned()
    };
    let (ours, theirs) = (key(1, &["show"]), key(2, &["show"]));
    key(1, &["trust", "10.90.2.1", &theirs]);
    key(2, &["authorize", &ours]);
    let (file, root) = (sites.scratch().join("file"), sites.scratch().join("root"));
    tree::write_random(&file, bytes, &mut Random::seeded(80));
    std::fs::create_dir(&root).expect("making a root");
    let mut command = sites.haul(sites.site(2));
    command.args(["serve", "--listen", "10.90.2.1:7700", "--root"]).arg(format!("in={}:rw", root.display())).args(serve);
    let _daemon = Running::start(command);
    let listens = || {
        let output = sites.site(2).command("ss").args(["-Hlun", "sport = :7700"]).output();
        output.is_ok_and(|output| !output.stdout.is_empty())
    };
    assert!(eventually(Duration::from_secs(10), listens), "haul serve does not listen");
    let mut command = sites.haul(sites.site(1));
    command.args(["cp", "--json"]).args(cp).arg(&file).arg("haul://10.90.2.1/in/");
    let finished = Running::start(command).wait(PATIENCE).expect(0);
    assert_eq!(tree::hash(&file), tree::hash(&root.join("file")));
    let summary = finished.event("summary");
    // The figures that it rests on, for who reads of a failure.
    println!("{summary}");
    summary["verdict"].as_str().expect("a sentence").to_owned()
}

/// An eighth of what the path would hold: once the start is over the sender stands still until the receiver has room, round trip after round trip.
#[test]
fn a_daemon_without_memory_for_the_path_is_named() {
    let Some(sites) = two(BitRate::mbps(500), 300) else { return };
    let said = verdict(&sites, 120 << 20, &["--max-memory", "16M"], &[]);
    assert!(said.contains("limited by memory"), "{said}");
}

/// Ten seconds of a line that is too slow for them: its queue stands. An emulator that has to wait for a processor is another limit, so what one run says may be something else.
#[test]
fn a_slow_line_is_named() {
    const RUNS: usize = 3;
    let mut said = Vec::new();
    while said.len() < RUNS {
        let Some(sites) = two(BitRate::mbps(40), 40) else { return };
        said.push(verdict(&sites, 40 << 20, &[], &[]));
        if said.last().is_some_and(|said| said.contains("limited by the path: full at 3")) {
            return;
        }
    }
    panic!("{said:#?}");
}

/// Above 50 Mbit/s the hub drops what comes from site 1, of a line that could carry ten times that. A machine whose own timing is uneven shows queues that are none; then the path is blamed
/// without the policer (the cases beside `judge` tell the two apart), or nobody is, but never disks, memory, processors or the start.
#[test]
fn a_policer_is_the_paths_doing() {
    let Some(sites) = two(BitRate::mbps(500), 40) else { return };
    let rule = "table inet policer { chain forward { type filter hook forward priority 0; \
                iifname site1 meta l4proto udp limit rate over 6250 kbytes/second burst 256 kbytes drop; }; }";
    let done = sites.hub().command("nft").arg(rule).status().expect("nft");
    assert!(done.success(), "nft {rule}");
    let said = verdict(&sites, 60 << 20, &[], &[]);
    let is_careful = said.contains("limited by the path") || said.contains("what limited the speed is not known");
    assert!(is_careful && said.contains("without a queue"), "{said}");
}
