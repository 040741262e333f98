//! `haul fleet` as a user types it, with sshd on three hosts behind lines of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::{Finished, Lab, Random, Running, Sites, Tmpfs, eventually, tree};
use haul_lab::LinkOptions;
use haul_units::BitRate;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);

struct Fleet {
    sites: Sites,
}

impl Fleet {
    /// Three hosts with lines of these rates.
    fn open(mbps: [u64; 3]) -> Option<Self> {
        let link = |rate| LinkOptions { rate: BitRate::mbps(rate), rtt: Duration::from_millis(40), ..LinkOptions::default() };
        let fleet = Self { sites: Sites::open(&mbps.map(link))? };
        for site in 1..=3 {
            fs::create_dir(fleet.at(site)).expect("a directory");
        }
        Some(fleet)
    }

    /// Where a site's files are.
    fn at(&self, site: usize) -> PathBuf {
        self.sites.scratch().join(format!("disk{site}"))
    }

    /// All three, and where their files are.
    fn hosts(&self) -> String {
        (1..=3).map(|site| format!("site{site}:{}", self.at(site).display())).collect::<Vec<_>>().join(",")
    }

    fn command(&self, what: &str, hosts: &str, words: &[&str]) -> Command {
        let mut command = self.sites.haul(self.sites.hub());
        command.args(["fleet", what, "--json", "-F"]).arg(self.sites.ssh_config()).args(["-H", hosts]).args(words);
        command
    }

    fn run(&self, what: &str, words: &[&str]) -> Finished {
        Running::start(self.command(what, &self.hosts(), words)).wait(PATIENCE)
    }

    fn target(&self) -> PathBuf {
        self.sites.scratch().join("target")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn events(finished: &Finished, event: &str) -> Vec<Value> {
    let text = String::from_utf8_lossy(&finished.stdout);
    text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(|value| value["event"] == event).collect()
}

fn summary(finished: &Finished) -> Value {
    events(finished, "summary").pop().unwrap_or_else(|| panic!("no summary: {finished}"))
}

#[test]
fn a_data_set_that_lies_spread_over_servers_comes_whole_and_goes_back_in_replicas() {
    let Some(fleet) = Fleet::open([100, 100, 100]) else { return };
    let mut random = Random::seeded(81);
    for site in 1..=3 {
        let dir = fleet.at(site).join("set/sub");
        fs::create_dir_all(&dir).expect("directories");
        for file in 0..20 {
            tree::write_random(&dir.join(format!("of-{site}-{file}")), 1000 + file * 7000, &mut random);
        }
    }
    // One that all have.
    tree::write_random(&fleet.at(1).join("set/all"), 9 << 20, &mut random);
    for site in [2, 3] {
        let copied = Command::new("cp").arg("-p").arg(fleet.at(1).join("set/all")).arg(fleet.at(site).join("set/all")).status();
        assert!(copied.expect("cp").success());
    }
    let got = fleet.run("get", &["-rp", "set", text(&fleet.target())]).expect(0);
    for site in 1..=3 {
        for file in 0..20 {
            let name = format!("sub/of-{site}-{file}");
            assert_eq!(tree::hash(&fleet.target().join(&name)), tree::hash(&fleet.at(site).join("set").join(&name)), "{name}");
        }
    }
    assert_eq!(tree::hash(&fleet.target().join("all")), tree::hash(&fleet.at(2).join("set/all")));
    let told = summary(&got);
    assert_eq!((&told["files"], &told["problems"], &told["verified"]), (&61.into(), &0.into(), &true.into()), "{told}");
    let members = told["members"].as_array().expect("members");
    assert!(members.len() == 3 && members.iter().all(|member| member["bytes"].as_u64() > Some(0)), "{told}");
    // Again, nothing is transferred.
    let again = summary(&fleet.run("get", &["-rp", "--skip-same", "set/.", text(&fleet.target())]).expect(0));
    assert_eq!((&again["bytes"], &again["files_skipped"]), (&0.into(), &61.into()), "{again}");

    // What is excluded is neither listed there nor sent from here.
    let some = fleet.sites.scratch().join("some");
    fs::create_dir(&some).expect("a directory");
    let patterns = fleet.sites.scratch().join("patterns");
    fs::write(&patterns, "# as in a .gitignore\nof-1-*\n/set/all\n").expect("written");
    let from_file = ["--exclude-from", text(&patterns), "--exclude", "of-2-*", "--include", "of-1-7"];
    let excluding = summary(&fleet.run("get", &[&["-rp"], &from_file[..], &["set", text(&some)]].concat()).expect(0));
    // Each server says how many names it has left out.
    assert_eq!((&excluding["files"], &excluding["excluded"]), (&21.into(), &42.into()), "{excluding}");
    let names = tree::names(&some.join("set/sub"));
    assert!(names.iter().all(|name| name.starts_with("of-3-") || name == "of-1-7"), "{names:?}");
    let excluding = summary(&fleet.run("put", &["-rp", "--exclude", "of-3-*", text(&some), "few"]).expect(0));
    assert_eq!((&excluding["files"], &excluding["excluded"]), (&1.into(), &20.into()), "{excluding}");
    let wrong = fleet.run("put", &["-r", "--exclude", "[z-a]", text(&some), "few"]).expect(2);
    assert!(wrong.stderr.contains("[z-a]: not a pattern"), "{wrong}");

    // Back, each file to two of the three.
    fleet.run("put", &["-rp", "--replicas", "2", text(&fleet.target()), "back"]).expect(0);
    let stored = |site: usize| tree::names(&fleet.at(site).join("back/target/sub")).len();
    assert_eq!((1..=3).map(stored).sum::<usize>(), 120);
    for site in 1..=3 {
        for name in tree::names(&fleet.at(site).join("back/target/sub")) {
            let place = |root: &Path| tree::hash(&root.join("sub").join(&name));
            assert_eq!(place(&fleet.at(site).join("back/target")), place(&fleet.target()), "{name}");
        }
    }
}

#[test]
fn a_large_file_comes_from_all_its_replicas_and_survives_the_fastest() {
    let Some(fleet) = Fleet::open([20, 60, 120]) else { return };
    tree::write_random(&fleet.at(1).join("large"), 48 << 20, &mut Random::seeded(82));
    for site in [2, 3] {
        let copied = Command::new("cp").arg("-p").arg(fleet.at(1).join("large")).arg(fleet.at(site).join("large")).status();
        assert!(copied.expect("cp").success());
    }
    let running = Running::start(fleet.command("get", &fleet.hosts(), &["large", text(&fleet.target())]));
    // When it has sent something, the fastest is killed.
    assert!(eventually(PATIENCE, || fleet.sites.delivered_bytes(3) >= 3 << 20), "nothing has come from it");
    let remote = fleet.sites.site(3).processes(&["haul", "remote"]);
    assert!(!remote.is_empty(), "it is over already");
    for pid in remote {
        let _ = kill_process(pid, Signal::KILL);
    }
    let finished = running.wait(PATIENCE).expect(0);
    assert_eq!(tree::hash(&fleet.target()), tree::hash(&fleet.at(1).join("large")));
    let told = summary(&finished);
    let bytes = |at: usize| told["members"][at]["bytes"].as_u64().expect("bytes");
    assert!((0..3).all(|at| bytes(at) > 0), "{told}");
    // Nothing more was heard of it: what it had to send came from the others.
    let states = events(&finished, "progress").iter().map(|event| event["members"][2]["state"].clone()).collect::<Vec<_>>();
    assert!(states.iter().any(|state| state == "stalled" || state == "gone"), "{states:?}");
}

/// The client is killed in the middle, each way; the same command goes on where it was.
#[test]
fn a_killed_client_goes_on_when_it_is_called_again() {
    /// Of it each server has a few blocks of 1 MiB under way, which are lost.
    const SIZE: u64 = 96 << 20;
    let Some(fleet) = Fleet::open([100, 100, 100]) else { return };
    let mut random = Random::seeded(85);
    for file in ["set/a", "set/b", "set/c"] {
        fs::create_dir_all(fleet.at(1).join("set")).expect("a directory");
        tree::write_random(&fleet.at(1).join(file), SIZE / 3, &mut random);
    }
    for site in [2, 3] {
        let copied = Command::new("cp").args(["-rp", text(&fleet.at(1).join("set"))]).arg(fleet.at(site)).status();
        assert!(copied.expect("cp").success());
    }
    let whole = fleet.at(1).join("set");
    let (target, back) = (fleet.target(), fleet.sites.scratch().join("back"));
    let get = ["-rp", "set/.", text(&target)];
    let put = ["-rp", text(&whole), text(&back)];
    for (what, words) in [("get", &get[..]), ("put", &put)] {
        // What passes on the way to or from all servers.
        let carried = || (1..=3).map(|site| fleet.sites.delivered_bytes(site)).sum::<u64>();
        let before = carried();
        let running = Running::start(fleet.command(what, &fleet.hosts(), words));
        assert!(eventually(PATIENCE, || carried() - before >= SIZE / 2), "{what}: nothing comes");
        running.signal(Signal::KILL);
        assert_eq!(running.wait(PATIENCE).code, None, "{what} was over already");
        let again = summary(&fleet.run(what, words).expect(0));
        // What was here is either a whole file, which is skipped, or the beginning of one.
        let bytes = again["bytes"].as_u64().expect("bytes");
        assert!(bytes <= SIZE * 3 / 4, "{what}: {again}");
        assert!(carried() - before < SIZE * 3 / 2, "{what}: {} bytes for {SIZE}: {again}", carried() - before);
    }
    for file in ["a", "b", "c"] {
        assert_eq!(tree::hash(&whole.join(file)), tree::hash(&target.join(file)), "{file}");
        assert_eq!(tree::hash(&whole.join(file)), tree::hash(&back.join("set").join(file)), "{file}");
    }
    assert_eq!((tree::names(&target).len(), tree::names(&back).len()), (3, 1), "nothing else is left");
}

/// One server is there at once, one logs in for long, one never comes: files come from the first meanwhile, the second joins in, the third is named and left out.
#[test]
fn files_come_while_other_servers_are_still_on_their_way() {
    let Some(fleet) = Fleet::open([60, 60, 60]) else { return };
    let mut random = Random::seeded(84);
    for site in 1..=2 {
        fs::create_dir(fleet.at(site).join("set")).expect("a directory");
        tree::write_random(&fleet.at(site).join(format!("set/of-{site}")), 300_000, &mut random);
    }
    tree::write_random(&fleet.at(1).join("set/both"), 64 << 20, &mut random);
    let both = |site: usize| fleet.at(site).join("set/both");
    assert!(Command::new("cp").arg("-p").args([both(1), both(2)]).status().expect("cp").success());
    for (site, command) in [(2, r#"sleep 6; eval \"$SSH_ORIGINAL_COMMAND\""#), (3, "sleep 60")] {
        let dir = fleet.sites.scratch().join(format!("site{site}"));
        let key = fs::read_to_string(dir.join("user_key.pub")).expect("the user's key");
        fs::write(dir.join("authorized_keys"), format!("command=\"{command}\" {key}")).expect("written");
    }
    let got = fleet.run("get", &["-r", "--timeout", "20", "set", text(&fleet.target())]).expect(1);
    for (site, name) in [(1, "of-1"), (2, "of-2"), (2, "both")] {
        assert_eq!(tree::hash(&fleet.target().join(name)), tree::hash(&fleet.at(site).join("set").join(name)), "{name}");
    }
    let at = |event: &str, key: &str, what: &str| {
        let found = events(&got, event).into_iter().find(|value| value[key] == what);
        found.unwrap_or_else(|| panic!("no {event} of {what}: {got}"))["at_s"].as_f64().expect("a time")
    };
    assert!(at("ordered", "member", "site1") < at("up", "member", "site2"), "{got}");
    assert!(at("file", "path", "of-2") < at("absent", "member", "site3"), "{got}");
    let told = summary(&got);
    let bytes: Vec<u64> =
        told["members"].as_array().into_iter().flatten().filter_map(|member| member["bytes"].as_u64()).collect();
    assert!(bytes.len() == 2 && bytes[1] >= 4 << 20, "{told}");
    assert_eq!((&told["files"], &told["problems"], &told["unheard"][0]), (&3.into(), &0.into(), &"site3".into()), "{told}");
    assert!(got.stderr.contains("site3: left out: nothing was heard of it within 20 s"), "{got}");
}

/// A server's disk fills up, which nobody foresaw: it keeps what fits, and only what does not goes elsewhere.
#[test]
fn a_server_that_fills_up_keeps_what_fits() {
    let Some(fleet) = Fleet::open([100, 100, 100]) else { return };
    let source = fleet.sites.scratch().join("data");
    fs::create_dir(&source).expect("a directory");
    let mut random = Random::seeded(83);
    for file in 0..24 {
        tree::write_random(&source.join(format!("small{file}")), 100_000, &mut random);
    }
    for file in 0..3 {
        tree::write_random(&source.join(format!("large{file}")), 6 << 20, &mut random);
    }
    let disk = Tmpfs::mount(fleet.sites.scratch(), "4m");
    // Round robin gives it files of both sizes; it has room for none of the large ones.
    let hosts = format!("site1:{},site2:{}", disk.path().display(), fleet.at(2).display());
    let words = ["-r", "--policy", "round-robin", text(&source), "back"];
    let put = Running::start(fleet.command("put", &hosts, &words)).wait(PATIENCE).expect(0);
    let on = |root: &Path| tree::names(&root.join("back/data"));
    let (small, large): (Vec<_>, Vec<_>) = on(disk.path()).into_iter().partition(|name| name.starts_with("small"));
    assert!(small.len() >= 8 && large.is_empty(), "{small:?} {large:?} {put}");
    assert_eq!(small.len() + on(&fleet.at(2)).len(), 27, "{put}");
    for root in [disk.path(), &fleet.at(2)] {
        for name in on(root) {
            assert_eq!(tree::hash(&root.join("back/data").join(&name)), tree::hash(&source.join(&name)), "{name}");
        }
    }
    let told = summary(&put);
    assert_eq!((&told["files"], &told["problems"]), (&27.into(), &0.into()), "{told}");
}

#[test]
fn what_goes_wrong_is_said_in_words() {
    let Some(fleet) = Fleet::open([100, 100, 100]) else { return };
    for (site, content) in [(1, "one"), (2, "other")] {
        fs::write(fleet.at(site).join("name"), content).expect("written");
    }
    let conflict = fleet.run("get", &["--wait-for-all", "name", text(&fleet.target())]).expect(2);
    assert!(conflict.stderr.contains("site1") && conflict.stderr.contains("site2"), "{conflict}");
    assert!(conflict.stderr.contains("nothing of it was written") && !fleet.target().exists(), "{conflict}");
    // Where the first is not kept waiting, what is in place is what the error says.
    let conflict = fleet.run("get", &["name", text(&fleet.target())]).expect(2);
    match fs::read(fleet.target()) {
        Ok(content) => {
            let from = if content == b"one" { "site1" } else { "site2" };
            assert!(content == b"one" || content == b"other", "{content:?}");
            assert!(conflict.stderr.contains(&format!("it is in place here, whole, as {from} has it")), "{conflict}");
            fs::remove_file(fleet.target()).expect("removed");
        }
        Err(_) => assert!(!conflict.stderr.contains("in place here"), "{conflict}"),
    }

    // By hash, equal content with another time is one file.
    fs::write(fleet.at(2).join("name"), "one").expect("written");
    fleet.run("get", &["--replicas-by", "hash", "name", text(&fleet.target())]).expect(0);
    assert_eq!(fs::read(fleet.target()).expect("a file"), b"one");
    fs::remove_file(fleet.target()).expect("removed");

    let missing = fleet.run("get", &["nothing", text(&fleet.target())]).expect(1);
    assert!(missing.stderr.contains("nothing: No such file or directory"), "{missing}");

    // A host that nobody knows is left out, and the others do the work.
    let hosts = format!("{},no-such-host.invalid", fleet.hosts());
    let partly = Running::start(fleet.command("status", &hosts, &[])).wait(PATIENCE).expect(1);
    let lines: Vec<Value> =
        String::from_utf8_lossy(&partly.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.iter().filter(|line| line["status"]["places"][0]["total_bytes"].as_u64() > Some(0)).count(), 3, "{partly}");
    assert!(partly.stderr.contains("no-such-host.invalid: left out"), "{partly}");

    let nobody = Running::start(fleet.command("get", "node[1-", &["a", "b"])).wait(PATIENCE).expect(2);
    assert!(nobody.stderr.contains("a bracket is not closed"), "{nobody}");
    let too_many = fleet.run("put", &["--replicas", "4", text(&fleet.at(1).join("name")), "x"]).expect(2);
    assert!(too_many.stderr.contains("4 replicas on 3 members"), "{too_many}");
}

/// A host with several disks stands in the list once for each, and where most room is decides among disks as among hosts.
#[test]
fn a_host_with_several_disks_stores_where_there_is_room() {
    let Some(fleet) = Fleet::open([100, 100, 100]) else { return };
    let source = fleet.sites.scratch().join("data");
    fs::create_dir(&source).expect("a directory");
    for file in 0..6 {
        tree::write_random(&source.join(format!("file{file}")), 2 << 20, &mut Random::seeded(86 + file));
    }
    let disks = ["4m", "8m", "24m"].map(|size| {
        let at = fleet.sites.scratch().join(size);
        fs::create_dir(&at).expect("a directory");
        Tmpfs::mount(&at, size)
    });
    let hosts = disks.iter().map(|disk| format!("site1:{}", disk.path().display())).collect::<Vec<_>>().join(",");
    let put = fleet.command("put", &hosts, &["-r", "--policy", "space", text(&source), "."]);
    let told = summary(&Running::start(put).wait(PATIENCE).expect(0));
    let stored = disks.each_ref().map(|disk| tree::names(&disk.path().join("data")).len());
    // 12 MiB fit into the largest, which has most room until 8 MiB are left there.
    assert!(stored[2] >= 4 && stored[0] == 0 && stored.iter().sum::<usize>() == 6, "{stored:?} {told}");
    let got = fleet.command("get", &hosts, &["-r", "data", text(&fleet.target())]);
    Running::start(got).wait(PATIENCE).expect(0);
    for name in tree::names(&source) {
        assert_eq!(tree::hash(&fleet.target().join(&name)), tree::hash(&source.join(&name)), "{name}");
    }
}

/// Nothing is faster than it may be, or sooner: how much slower or later is the machine's affair.
#[test]
fn limits_rests_and_a_time_to_start_are_kept() {
    let Some(fleet) = Fleet::open([100, 100, 100]) else { return };
    let mut random = Random::seeded(91);
    for site in 1..=3 {
        fs::create_dir(fleet.at(site).join("set")).expect("a directory");
        for file in 0..4 {
            tree::write_random(&fleet.at(site).join(format!("set/of-{site}-{file}")), 500_000, &mut random);
        }
    }
    let taken = |what: &str, words: &[&str]| {
        let _ = fs::remove_dir_all(fleet.target());
        summary(&fleet.run(what, words).expect(0))["elapsed_s"].as_f64().expect("a time")
    };
    let get = |words: &[&str]| taken("get", &[words, &["-r", "set", text(&fleet.target())]].concat());
    let put = |words: &[&str]| {
        for site in 1..=3 {
            let _ = fs::remove_dir_all(fleet.at(site).join("back"));
        }
        taken("put", &[words, &["-r", text(&fleet.sites.scratch().join("source")), "back"]].concat())
    };
    // 2 MB of each server, of 20 Mbit/s a server or 60 for all: 0.8 s, of which a burst at the start may be missing. Without, they take half of it.
    for (words, least) in [(["--limit-each", "20M"], 0.7), (["-l", "60M"], 0.7), (["--pause", "300ms"], 0.9)] {
        let took = get(&words);
        assert!(took >= least, "get {words:?}: {took} s");
        let copied = Command::new("cp").args(["-r", text(&fleet.target())]).arg(fleet.sites.scratch().join("source")).status();
        assert!(copied.expect("cp").success());
        let took = put(&words);
        assert!(took >= least, "put {words:?}: {took} s");
        fs::remove_dir_all(fleet.sites.scratch().join("source")).expect("removed");
    }
    let date = |words: &[&str]| {
        let said = Command::new("date").arg("-u").args(words).output().expect("date");
        String::from_utf8(said.stdout).expect("UTF-8").trim().to_owned()
    };
    let seconds = |words: &[&str]| date(words).parse::<u64>().expect("seconds");
    let start = seconds(&["-d", "4 seconds", "+%s"]);
    let moment = date(&["-d", &format!("@{start}"), "+%Y-%m-%dT%H:%M:%SZ"]);
    get(&["--start-at", &moment]);
    assert!(seconds(&["+%s"]) >= start, "before {moment}");
}

/// The same command on a terminal of so many columns.
fn on_terminal(command: &Command, columns: usize) -> Command {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted: Vec<String> = words.map(|word| format!("'{}'", word.to_str().expect("UTF-8"))).collect();
    let mut script = Command::new("script");
    script.args(["-qefc", &format!("stty cols {columns} rows 24; exec {}", quoted.join(" ")), "/dev/null"]);
    script.env("TERM", "xterm");
    for (name, value) in command.get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    script
}

/// What stands on a line, without what moves the cursor or colours it.
fn letters(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        all + part.get(end..).unwrap_or_default()
    })
}

#[test]
fn a_terminal_has_a_row_for_each_server_and_keeps_the_result() {
    let Some(fleet) = Fleet::open([20, 20, 20]) else { return };
    for site in 1..=3 {
        let dir = fleet.at(site).join("set");
        fs::create_dir(&dir).expect("a directory");
        tree::write_random(&dir.join(format!("a-file-with-a-name-that-is-long-of-site{site}")), 6 << 20, &mut Random::seeded(83));
    }
    let mut plain = fleet.sites.haul(fleet.sites.hub());
    plain
        .args(["fleet", "get", "-F"])
        .arg(fleet.sites.ssh_config())
        .args(["-H", &fleet.hosts(), "-r", "set"])
        .arg(fleet.target());
    let finished = Running::start(on_terminal(&plain, 80)).wait(PATIENCE).expect(0);
    let shown = String::from_utf8_lossy(&finished.stdout).into_owned();
    let lines: Vec<String> = shown.split(['\r', '\n']).map(letters).collect();
    for site in 1..=3 {
        let host = format!("site{site}");
        let row = lines.iter().find(|line| line.contains(&host) && line.contains("bit/s"));
        assert!(row.is_some(), "no row of {host}: {lines:?}");
    }
    // The cursor was moved, so there were rows that changed; and at the end stands what was done.
    assert!(shown.contains("\u{1b}["), "{shown:?}");
    let last: Vec<&String> = lines.iter().filter(|line| !line.trim().is_empty()).rev().take(6).collect();
    assert!(last.iter().any(|line| line.contains("3 files")), "{last:?}");
}

#[test]
fn no_packet_is_longer_than_was_said() {
    let Some(lab) = Lab::open() else { return };
    let (data, here) = (lab.place("data"), lab.place("here"));
    let file = data.join("file");
    tree::write_random(&file, 4 << 20, &mut Random::seeded(87));
    for host in [&lab.near, &lab.far] {
        // What the system takes as one on its way through would be counted as one.
        let apart = host.command("ip").args(["link", "set", "dev", "wan", "gso_max_segs", "1"]).status();
        assert!(apart.expect("ip").success());
        // These lengths are with UDP's header.
        host.firewall("input", "udp length > 1308 counter; udp length > 1200 counter;");
    }
    let run = |what: &str, words: &[&str]| {
        let mut command = lab.haul(&lab.near);
        command.args(["fleet", what, "-F"]).arg(lab.ssh_config()).args(["-H", "far"]).args(words);
        Running::start(command).wait(PATIENCE).expect(0);
    };
    let said = ["--max-packet", "1300"];
    run("get", &[&said[..], &[text(&file), text(&here.join("got"))]].concat());
    run("put", &[&said[..], &[text(&file), text(&here.join("put"))]].concat());
    for host in [&lab.near, &lab.far] {
        let [longer, all] = host.counted_bytes()[..] else { panic!("two counters") };
        assert!(longer == 0 && all > 4 << 20, "{longer} bytes of {all} in packets that are longer");
    }
    // Without, they are as long as gets through.
    run("get", &[text(&file), text(&here.join("again"))]);
    let longer = lab.near.counted_bytes()[0];
    assert!(longer > 3 << 20, "{longer}");
}

#[test]
fn a_connection_holds_no_more_than_it_was_given() {
    const RTT: Duration = Duration::from_millis(200);
    const FILE: u64 = 64 << 20;
    let link = LinkOptions { rate: BitRate::mbps(400), rtt: RTT, ..LinkOptions::default() };
    let Some(sites) = Sites::open(&[link]) else { return };
    let at = |name: &str| sites.scratch().join(name);
    tree::write_random(&at("large"), FILE, &mut Random::seeded(88));
    let seconds = |what: &str, memory: &[&str], target: &str| {
        let mut command = sites.haul(sites.hub());
        command.args(["fleet", what, "--json", "-F"]).arg(sites.ssh_config()).args(["-H", "site1"]).args(memory);
        command.args([at("large"), at(target)]);
        let finished = Running::start(command).wait(PATIENCE).expect(0);
        summary(&finished)["elapsed_s"].as_f64().expect("a time")
    };
    // A round trip carries no more than what may be on its way.
    let least = FILE as f64 / f64::from(2 << 20) * RTT.as_secs_f64();
    for (what, target) in [("get", "got"), ("put", "put")] {
        let (held, free) = (seconds(what, &["--memory", "2M"], target), seconds(what, &[], &format!("{target}-freely")));
        assert!(held > 0.95 * least && free < 0.8 * held, "{what}: {held} s, without a bound {free} s, {least} s at least");
    }
}
