//! Copies into stores that are no directories and out of them: a real Gfarm with three storage servers, the memory of a host.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Finished, Gfarm, Lab, Random, Running, Tmpfs, eventually};
use rustix::process::{Signal, kill_process};

/// Longest time that a copy of these tests may take.
const PATIENCE: Duration = Duration::from_secs(120);

fn far(path: &str) -> OsString {
    format!("far:{path}").into()
}

fn make_tree(at: &Path, random: &mut Random) {
    fs::create_dir_all(at.join("sub/empty directory")).unwrap();
    tree::write_random(&at.join("large"), 12 << 20, random);
    tree::write_random(&at.join("sub/small"), 3000, random);
    fs::write(at.join("sub/none"), "").unwrap();
    for name in ["new\nline", "-rf", "gfarm:", "ram:x", "*", "\u{202e}txt"] {
        fs::write(at.join(name), name).unwrap();
    }
    fs::hard_link(at.join("sub/small"), at.join("again")).unwrap();
    std::os::unix::fs::symlink("sub/small", at.join("link")).unwrap();
}

#[test]
fn a_tree_goes_into_gfarm_and_comes_back() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_far(&lab) else { return };
    let (source, back) = (lab.place("tree"), lab.place("back"));
    make_tree(&source, &mut Random::seeded(61));
    lab.run_cp([OsString::from("-rp"), source.clone().into(), far("gfarm:/")]).expect(0);
    assert_eq!(
        gfarm.program("gfls", &["-a", "/"]).lines().filter(|name| !matches!(*name, "." | "..")).collect::<Vec<_>>(),
        ["tree"]
    );
    lab.run_cp([OsString::from("-rp"), far("gfarm:/tree"), back.clone().into()]).expect(0);
    tree::assert_same(&source, &back.join("tree"), Exactness::Everything);
    // Patterns are expanded there, a new name is given there, and what is there is not sent again.
    let some = lab.place("some");
    lab.run_cp([far("gfarm:/tr*/su?/s*"), some.clone().into()]).expect(0);
    assert_eq!(tree::names(&some), ["small"]);
    lab.run_cp([source.join("large").into(), far("gfarm:/tree/other name")]).expect(0);
    assert!(gfarm.program("gfls", &["/tree"]).contains("other name"));
    let again = lab.run_cp([OsString::from("-rp"), "--json".into(), "--update".into(), source.into(), far("gfarm:/")]).expect(0);
    assert_eq!(again.event("summary")["files"], 0, "{again}");
}

#[test]
fn the_near_side_reads_and_writes_gfarm_too() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_near(&lab) else { return };
    let (source, there) = (lab.place("tree"), lab.place("there"));
    make_tree(&source, &mut Random::seeded(62));
    let run = |args: [OsString; 3]| {
        let mut command = lab.cp(args);
        command.env("GFARM_CONFIG_FILE", gfarm.config());
        Running::start(command).wait(PATIENCE)
    };
    let far_of = |path: &Path| far(path.to_str().unwrap());
    run(["-rp".into(), far_of(&source), "gfarm:/".into()]).expect(0);
    run(["-rp".into(), "gfarm:/tree".into(), far_of(&there)]).expect(0);
    tree::assert_same(&source, &there.join("tree"), Exactness::Everything);
    // All that is in the root, as `/.`; a local file of such a name is reached by ./
    run(["-r".into(), "gfarm:/".into(), far_of(&lab.place("all"))]).expect(0);
    let local = lab.place("local");
    fs::write(local.join("gfarm:"), "a file").unwrap();
    let mut command = lab.cp([OsString::from("./gfarm:"), far_of(&there)]);
    command.current_dir(&local);
    Running::start(command).wait(PATIENCE).expect(0);
    assert_eq!(fs::read(there.join("gfarm:")).unwrap(), b"a file");
}

/// Starts an upload over a slow link, and kills one of its sides when the receiver has some of it.
fn killed_upload(lab: &Lab, gfarm: &Gfarm<'_>, source: &Path, kill_far: bool) {
    let mut running = Running::start(lab.cp([source.into(), far("gfarm:/file")]));
    let stored = || gfarm.program("gfls", &["-aR", "/"]).contains("p1");
    assert!(eventually(PATIENCE, stored), "nothing arrives");
    e2e::pause(Duration::from_millis(600));
    assert!(running.runs(), "it was over too soon");
    if kill_far {
        for pid in lab.far.processes(&["haul remote"]) {
            let _ = kill_process(pid, Signal::KILL);
        }
    } else {
        running.signal(Signal::KILL);
    }
    running.wait(Duration::from_secs(30));
    lab.assert_no_process_left(Duration::from_secs(30));
}

#[test]
fn an_upload_goes_on_after_either_side_was_killed() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_far(&lab) else { return };
    lab.limit("60mbit");
    let (source, back) = (lab.place("source").join("file"), lab.place("back").join("file"));
    let size = 30 << 20;
    tree::write_random(&source, size, &mut Random::seeded(63));
    let before = lab.bytes_carried();
    for kill_far in [true, false] {
        killed_upload(&lab, &gfarm, &source, kill_far);
        assert!(!gfarm.program("gfls", &["/"]).contains("file"), "it has its name before it is whole");
    }
    let done = lab.run_cp([OsString::from("--json"), source.clone().into(), far("gfarm:/file")]).expect(0);
    let resumed = done.event("summary")["bytes_resumed"].as_u64().unwrap_or(0);
    assert!(resumed > 1 << 20, "{done}");
    // Three runs; what a kill costs is in flight, or not in the journal yet.
    let carried = lab.bytes_carried() - before;
    assert!(carried < size + (12 << 20), "{carried} bytes crossed the network");
    lab.run_cp([far("gfarm:/file"), back.clone().into()]).expect(0);
    assert_eq!(tree::hash(&source), tree::hash(&back));
    assert_eq!(gfarm.program("gfls", &["-a", "/"]).split_whitespace().collect::<Vec<_>>(), [".", "..", "file"]);
}

#[test]
fn a_storage_server_killed_in_mid_upload_costs_a_run_and_no_content() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_far(&lab) else { return };
    lab.limit("60mbit");
    let (source, back) = (lab.place("source").join("file"), lab.place("back").join("file"));
    tree::write_random(&source, 20 << 20, &mut Random::seeded(64));
    // Whichever server it writes to is killed, so all are, one after the other.
    let running = Running::start(lab.cp([source.clone().into(), far("gfarm:/file")]));
    assert!(eventually(PATIENCE, || gfarm.program("gfls", &["-aR", "/"]).contains("p1")), "nothing arrives");
    for n in [11, 12, 13] {
        gfarm.kill(&n.to_string());
        gfarm.restart(n);
    }
    let first = running.wait(PATIENCE);
    assert_ne!(first.code, Some(0), "{first}");
    assert!(!gfarm.program("gfls", &["/"]).contains("file"));
    lab.run_cp([source.clone().into(), far("gfarm:/file")]).expect(0);
    lab.run_cp([far("gfarm:/file"), back.clone().into()]).expect(0);
    assert_eq!(tree::hash(&source), tree::hash(&back));
}

#[test]
fn a_download_goes_on_where_servers_are_killed() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_far(&lab) else { return };
    let (source, back) = (lab.place("source").join("file"), lab.place("back"));
    tree::write_random(&source, 20 << 20, &mut Random::seeded(66));
    lab.run_cp([source.clone().into(), far("gfarm:/file")]).expect(0);
    gfarm.spread("/file", 3);
    lab.limit("60mbit");
    // Two of the three servers that have it.
    let reading = Running::start(lab.cp([far("gfarm:/file"), back.clone().into()]));
    let begun = || fs::read_dir(&back).is_ok_and(|mut entries| entries.next().is_some());
    assert!(eventually(PATIENCE, begun), "nothing arrives");
    gfarm.kill("11");
    gfarm.kill("12");
    reading.wait(PATIENCE).expect(0);
    assert_eq!(tree::hash(&source), tree::hash(&back.join("file")));
}

/// Two names of the far host: two members, each a client of the same Gfarm.
#[test]
fn a_fleet_writes_gfarm_and_reads_it() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_far(&lab) else { return };
    let (source, back) = (lab.place("data"), lab.place("back"));
    fs::create_dir_all(source.join("sub")).unwrap();
    for (name, size) in [("large", 12 << 20), ("sub/one", 3000), ("sub/two", 1 << 20), ("none", 0)] {
        tree::write_random(&source.join(name), size, &mut Random::seeded(67 + size));
    }
    let fleet = |what: &str, from: OsString, to: OsString| {
        let mut command = lab.haul(&lab.near);
        command.args(["fleet", what, "--json", "-H", "far,far6", "-F"]).arg(lab.ssh_config()).arg("-r").args([from, to]);
        Running::start(command).wait(PATIENCE).expect(0)
    };
    fleet("put", source.clone().into(), "gfarm:/".into());
    assert!(gfarm.program("gfls", &["-R", "/data"]).contains("two"));
    gfarm.spread("/data/large", 3);
    let got = fleet("get", "gfarm:/data".into(), back.clone().into());
    assert_eq!(got.event("summary")["files"], 4, "{got}");
    for name in ["large", "sub/one", "sub/two", "none"] {
        assert_eq!(tree::hash(&source.join(name)), tree::hash(&back.join("data").join(name)), "{name}");
    }
}

/// What a user sees who cannot use it; the word on the cause is the far side's own.
#[test]
fn what_is_missing_is_said() {
    let Some(lab) = Lab::open() else { return };
    let Some(gfarm) = Gfarm::on_near(&lab) else { return };
    let file = lab.place("file").join("file");
    fs::write(&file, "content").unwrap();
    let says = |run: Finished, words: &[&str]| {
        let run = run.expect(2);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}: {run}");
    };
    // There is no Gfarm on the far host.
    says(lab.run_cp([file.clone().into(), far("gfarm:/")]), &["far: gfarm: configuration:", "GFARM_CONFIG_FILE"]);
    says(lab.run_cp([far("gfarm:/a"), file.clone().into()]), &["far: gfarm: configuration:"]);

    // Its library is not one: as good as not installed.
    let libraries = std::process::Command::new("sh").args(["-c", "ls /usr/lib/*/libgfarm.so.1 /usr/lib/libgfarm.so.1"]).output();
    let library = String::from_utf8(libraries.unwrap().stdout).unwrap().trim().to_owned();
    let copy = lab.cp([OsString::from("gfarm:/a"), far("/tmp")]);
    let mut hidden = lab.near.command("unshare");
    hidden.args(["-m", "sh", "-c", r#"mount --bind /dev/null "$(readlink -f "$0")" && exec "$@""#, &library]);
    // After `ip netns exec NAME`, which the host puts before it.
    hidden.arg(e2e::haul_binary()).args(copy.get_args().skip_while(|arg| *arg != "cp"));
    for (name, value) in copy.get_envs() {
        hidden.env(name, value.unwrap_or_default());
    }
    says(Running::start(hidden).wait(PATIENCE), &["gfarm: needs libgfarm.so.1", "libgfarm1"]);

    // Nothing has the name; a directory is missing; sources of two stores.
    let run = |args: &[OsString]| {
        let mut command = lab.cp(args);
        command.env("GFARM_CONFIG_FILE", gfarm.config());
        Running::start(command).wait(PATIENCE)
    };
    let missing = run(&["gfarm:/nothing".into(), far("/tmp")]).expect(1);
    assert!(missing.stderr.contains("gfarm:/nothing: No such file or directory"), "{missing}");
    let nowhere = run(&[far(file.to_str().unwrap()), "gfarm:/no/such".into()]);
    says(nowhere, &["gfarm:/no/such: No such file or directory", "make the directory first"]);
    says(run(&["gfarm:/a".into(), file.into(), far("/tmp")]), &["must be in one store"]);
}

#[test]
fn the_memory_of_a_host_is_a_place_for_what_fits() {
    let Some(lab) = Lab::open() else { return };
    let (source, back) = (lab.place("source"), lab.place("back"));
    let name = format!("e2e-{}", std::process::id());
    tree::write_random(&source.join("file"), 2 << 20, &mut Random::seeded(65));
    fs::File::create(source.join("huge")).unwrap().set_len(8 << 40).unwrap();
    lab.run_cp([source.join("file").into(), far(&format!("ram:{name}"))]).expect(0);
    let there = format!("/dev/shm/haul-{}/{name}", rustix::process::geteuid().as_raw());
    assert_eq!(tree::hash(&source.join("file")), tree::hash(Path::new(&there)));
    lab.run_cp([far(&format!("ram:/{name}")), back.join("file").into()]).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&back.join("file")));
    let refused = lab.run_cp([source.join("huge").into(), far(&format!("ram:{name}-huge"))]).expect(2);
    assert!(refused.stderr.contains("no space left"), "{refused}");
    assert!(!Path::new(&format!("{there}-huge")).exists());
    let outside = lab.run_cp([far("ram:/../../etc/passwd"), back.clone().into()]);
    assert_ne!(outside.code, Some(0), "{outside}");
    fs::remove_file(there).unwrap();
}

/// Writes the list of places that the far login has.
fn list_places(lab: &Lab, places: &[&Path]) {
    let dir = lab.scratch().join("far-config/haul");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), format!("places = {places:?}\n")).unwrap();
}

/// What a run says of the place that was chosen.
fn chosen(run: &Finished) -> String {
    run.event("note")["note"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn where_no_store_is_named_the_far_machine_chooses_the_one_with_most_room() {
    let Some(lab) = Lab::open() else { return };
    let (source, back) = (lab.place("source"), lab.place("back"));
    let (one, two) = (Tmpfs::mount(&lab.place("one"), "16m"), Tmpfs::mount(&lab.place("two"), "32m"));
    let (one, two) = (one.path(), two.path());
    let file = source.join("file");
    tree::write_random(&file, 2 << 20, &mut Random::seeded(68));
    let put = |name: &str| lab.run_cp(["--json".into(), OsString::from(&file), far(&format!("any:{name}"))]);
    let refused = put("x").expect(2);
    assert!(refused.stderr.contains("any:x: there is no list of places on that machine"), "{refused}");

    list_places(&lab, &[one, two]);
    let first = put("x").expect(0);
    assert_eq!(chosen(&first), format!("any:x is {}: most room is there", two.join("x").display()), "{first}");
    assert_eq!(tree::hash(&two.join("x")), tree::hash(&file));
    // What is there already is where it goes again, though there is less room.
    fs::write(one.join("y"), "old").unwrap();
    let again = put("y").expect(0);
    assert_eq!(chosen(&again), format!("any:y is {}: it is there already", one.join("y").display()), "{again}");
    assert_eq!(tree::hash(&one.join("y")), tree::hash(&file));
    assert!(!two.join("y").exists(), "a second copy");
    for name in ["x", "y"] {
        lab.run_cp([far(&format!("any:{name}")), back.join(name).into()]).expect(0);
        assert_eq!(tree::hash(&back.join(name)), tree::hash(&file), "{name}");
    }
    let missing = lab.run_cp([far("any:nothing"), back.clone().into()]).expect(1);
    assert!(missing.stderr.contains("any:nothing: No such file"), "{missing}");

    fs::write(one.join("x"), "another").unwrap();
    for run in [put("x"), lab.run_cp([far("any:x"), back.clone().into()])] {
        let run = run.expect(2);
        assert!([one, two].iter().all(|place| run.stderr.contains(place.join("x").to_str().unwrap())), "{run}");
    }
    let outside = put("../../x").expect(2);
    assert!(outside.stderr.contains("no .."), "{outside}");
}

#[test]
fn here_a_store_is_named() {
    let Some(lab) = Lab::open() else { return };
    let here = lab.place("here");
    fs::write(here.join("any:x"), "a file").unwrap();
    let run = |mut command: std::process::Command| {
        Running::start({
            command.current_dir(&here);
            command
        })
        .wait(PATIENCE)
    };
    let fleet = || {
        let mut command = lab.haul(&lab.near);
        command.args(["fleet", "get", "-F"]).arg(lab.ssh_config()).args(["-H", "far", "/etc/hostname", "any:x"]);
        command
    };
    let copy = |from: &str, to: &str| lab.cp([from, to]);
    for command in [copy("any:x", "."), copy("any:x", "far:x"), copy("far:/etc/hostname", "any:x"), fleet()] {
        let refused = run(command).expect(2);
        assert!(refused.stderr.contains("write HOST:any:NAME; a file here that is called so is ./any:"), "{refused}");
    }
    let there = lab.place("there");
    run(lab.cp([OsString::from("./any:x"), far(there.to_str().unwrap())])).expect(0);
    assert_eq!(fs::read_to_string(there.join("any:x")).unwrap(), "a file");
    assert_eq!(fs::read_to_string(here.join("any:x")).unwrap(), "a file");
}

#[test]
fn a_copy_that_was_killed_goes_on_in_the_place_that_was_chosen() {
    let Some(lab) = Lab::open() else { return };
    let (first, other) = (Tmpfs::mount(&lab.place("first"), "64m"), Tmpfs::mount(&lab.place("other"), "48m"));
    list_places(&lab, &[other.path(), first.path()]);
    let file = lab.place("source").join("file");
    tree::write_random(&file, 16 << 20, &mut Random::seeded(69));
    lab.limit("60mbit");
    let before = lab.bytes_carried();
    let mut running = Running::start(lab.cp([OsString::from(&file), far("any:big")]));
    assert!(eventually(PATIENCE, || lab.bytes_carried() - before > 6 << 20), "nothing arrives");
    assert!(running.runs(), "it was over too soon");
    running.signal(Signal::KILL);
    running.wait(Duration::from_secs(30));
    lab.assert_no_process_left(Duration::from_secs(30));
    assert!(!first.path().join("big").exists() && tree::names(other.path()).is_empty());
    // By room alone it would be the other one now.
    first.resize("40m");
    let done = lab.run_cp(["--json".into(), OsString::from(&file), far("any:big")]).expect(0);
    assert!(chosen(&done).ends_with("it is there already"), "{done}");
    assert!(done.event("summary")["bytes_resumed"].as_u64() > Some(1 << 20), "{done}");
    assert_eq!(tree::hash(&first.path().join("big")), tree::hash(&file));
    assert!(tree::names(other.path()).is_empty());
}

#[test]
fn a_fleet_says_which_place_each_server_has_chosen() {
    let Some(lab) = Lab::open() else { return };
    let place = lab.place("place");
    list_places(&lab, &[&lab.scratch().join("no/such"), &place]);
    let source = lab.place("data");
    for at in 0..4 {
        tree::write_random(&source.join(format!("file{at}")), 1 << 20, &mut Random::seeded(70 + at));
    }
    let fleet = |what: &str, words: &[&str]| {
        let mut command = lab.haul(&lab.near);
        command.args(["fleet", what, "--json", "-F"]).arg(lab.ssh_config()).args(words);
        Running::start(command).wait(PATIENCE).expect(0)
    };
    let logs = lab.place("logs");
    let (source_text, logs_text) = (source.to_str().unwrap(), logs.to_str().unwrap());
    let put = fleet("put", &["-H", "far,far6", "--log", logs_text, "-r", source_text, "any:results"]);
    tree::assert_same(&source, &place.join("results/data"), Exactness::Content);
    let told = format!("any:results is {}: ", place.join("results").display());
    assert!(put.event("note")["member"].as_str().is_some_and(|member| member.starts_with("far")), "{put}");
    assert!(chosen(&put).starts_with(&told), "{put}");
    for member in ["member-00001.jsonl", "member-00002.jsonl"] {
        let log = fs::read_to_string(logs.join("job-00001").join(member)).unwrap();
        assert!(log.lines().any(|line| line.contains("\"note\"") && line.contains(&told)), "{member}: {log}");
    }
    let back = lab.place("back");
    fleet("get", &["-H", "far", "-r", "any:results/data", back.to_str().unwrap()]);
    tree::assert_same(&source, &back.join("data"), Exactness::Content);
    let status = fleet("status", &["-H", "far:any:"]);
    assert!(String::from_utf8_lossy(&status.stdout).contains(place.to_str().unwrap()), "{status}");
}
