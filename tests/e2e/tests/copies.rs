//! What `haul cp` copies arrives as it was: over ssh and through a daemon, both ways.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Daemon, Lab, Random, Running, Sites, example};
use haul_lab::LinkOptions;
use rustix::fs::{XattrFlags, getxattr, setxattr};

/// `far:PATH`
fn far(path: &Path) -> OsString {
    on("far", path)
}

fn on(host: &str, path: &Path) -> OsString {
    let mut operand = OsString::from(format!("{host}:"));
    operand.push(path);
    operand
}

/// Panics unless the place holds nothing but what was to be copied there.
#[track_caller]
fn assert_only(place: &Path, names: &[&str]) {
    assert_eq!(tree::names(place), names);
    assert_eq!(
        tree::names(place.parent().expect("a place has a parent")).len(),
        1,
        "something was left beside {}",
        place.display()
    );
}

#[test]
fn a_tree_goes_over_ssh_and_back_with_all_its_metadata() {
    let Some(lab) = Lab::open() else { return };
    let (source, there, back) = (lab.place("tree"), lab.place("there"), lab.place("back"));
    tree::make_varied(&source, &mut Random::seeded(1));

    lab.run_cp([OsString::from("-rp"), source.clone().into(), far(&there)]).expect(0);
    tree::assert_same(&source, &there.join("tree"), Exactness::Everything);
    tree::assert_as_sparse(&source, &there.join("tree"));
    assert_only(&there, &["tree"]);

    lab.run_cp([OsString::from("-rp"), far(&there.join("tree")), back.clone().into()]).expect(0);
    tree::assert_same(&source, &back.join("tree"), Exactness::Everything);
    tree::assert_as_sparse(&source, &back.join("tree"));
    assert_only(&back, &["tree"]);
    lab.assert_no_process_left(Duration::from_secs(5));
}

#[test]
fn a_tree_goes_through_the_daemon_and_back_with_all_its_metadata() {
    let Some(lab) = Lab::open() else { return };
    let (source, root, back) = (lab.place("tree"), lab.place("root"), lab.place("back"));
    tree::make_varied(&source, &mut Random::seeded(2));
    let daemon = Daemon::start(&lab, &root);

    lab.run_cp([OsString::from("-rp"), source.clone().into(), daemon.url("").into()]).expect(0);
    tree::assert_same(&source, &root.join("tree"), Exactness::Everything);
    tree::assert_as_sparse(&source, &root.join("tree"));
    assert_only(&root, &["tree"]);

    lab.run_cp([OsString::from("-rp"), daemon.url("tree").into(), back.clone().into()]).expect(0);
    tree::assert_same(&source, &back.join("tree"), Exactness::Everything);
    assert_only(&back, &["tree"]);
    daemon.stop().expect(0);
    lab.assert_no_process_left(Duration::from_secs(5));
}

#[test]
fn without_p_content_and_names_are_kept() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("tree"), lab.place("there"));
    tree::make_varied(&source, &mut Random::seeded(3));
    lab.run_cp([OsString::from("-r"), source.clone().into(), far(&there)]).expect(0);
    tree::assert_same(&source, &there.join("tree"), Exactness::Content);
}

#[test]
fn a_target_that_is_not_there_becomes_the_copy() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("tree"), lab.place("there"));
    let mut random = Random::seeded(4);
    tree::make_many(&source, 60, &mut random);
    lab.run_cp([OsString::from("-r"), source.clone().into(), far(&there.join("new"))]).expect(0);
    tree::assert_same(&source, &there.join("new"), Exactness::Content);

    tree::write_random(&source.join("one"), 10_000, &mut random);
    lab.run_cp([source.join("one").into(), far(&there.join("renamed"))]).expect(0);
    assert_eq!(tree::hash(&source.join("one")), tree::hash(&there.join("renamed")));
    assert_only(&there, &["new", "renamed"]);
}

#[test]
fn several_sources_go_into_one_directory() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    let mut random = Random::seeded(5);
    for name in ["a", "b"] {
        tree::write_random(&source.join(name), 50_000, &mut random);
    }
    tree::make_many(&source.join("dir"), 20, &mut random);
    let from = |name: &str| OsString::from(source.join(name));
    lab.run_cp(["-r".into(), from("a"), from("dir"), from("b"), far(&there)]).expect(0);
    tree::assert_same(&source, &there, Exactness::Content);
}

#[test]
fn an_existing_file_is_replaced_in_one_step() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    let mut random = Random::seeded(6);
    tree::write_random(&source.join("file"), 3_000_000, &mut random);
    tree::write_random(&there.join("file"), 5_000_000, &mut random);
    let before = File::open(there.join("file")).expect("the old file");
    lab.run_cp([source.join("file").into(), far(&there)]).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
    assert_eq!(before.metadata().expect("metadata").size(), 5_000_000, "whoever had the old file open still has it whole");
    assert_only(&there, &["file"]);
}

#[test]
fn ipv6_and_the_letters_of_scp() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), 1_000_000, &mut Random::seeded(7));
    let args =
        ["-6".into(), "-v".into(), "-o".into(), "Compression=no".into(), source.join("file").into(), on("root@far6", &there)];
    lab.run_cp(args).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
}

#[test]
fn standard_input_and_output() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("file"), 7_000_001, &mut Random::seeded(8));
    let input = File::open(source.join("file")).expect("the file above");
    let limit = Duration::from_secs(60);
    Running::start_with(lab.cp(["-".into(), far(&there.join("file"))]), Stdio::from(input)).wait(limit).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));

    let output = lab.run_cp([far(&there.join("file")), "-".into()]).expect(0);
    assert_eq!(output.stdout, fs::read(source.join("file")).expect("the file above"));
}

#[test]
fn two_terabytes_of_hole_take_neither_time_nor_space() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    let size = 2 << 40;
    let data = [(0, b"start"), (1_234_567_890_123, b"midst"), (size - 5, b"close")];
    let file = File::create(source.join("huge")).expect("making a file");
    file.set_len(size).expect("making it long");
    for (at, text) in data {
        file.write_all_at(text, at).expect("writing");
    }
    let finished = lab.run_cp([source.join("huge").into(), far(&there)]).expect(0);
    assert!(finished.took < Duration::from_secs(30), "{finished}");
    let meta = fs::metadata(there.join("huge")).expect("the copy");
    assert_eq!(meta.len(), size);
    assert!(meta.blocks() * 512 < 10_000_000, "takes {} bytes on disk", meta.blocks() * 512);
    let copy = File::open(there.join("huge")).expect("the copy");
    for (at, text) in data {
        let mut found = [0; 5];
        copy.read_exact_at(&mut found, at).expect("reading");
        assert_eq!(&found, text, "at {at}");
    }
}

#[test]
fn thirty_copies_at_once_are_each_what_they_should_be() {
    let Some(lab) = Lab::open() else { return };
    let (source, root, back) = (lab.place("source"), lab.place("root"), lab.place("back"));
    let daemon = Daemon::start(&lab, &root);
    let mut random = Random::seeded(12);
    let count = 30;
    // Every other one comes from the far side, and every sixth goes there by ssh: sshd lets ten log in at once.
    let is_pull = |n: usize| n % 2 == 1;
    for n in 0..count {
        let name = n.to_string();
        let tree = if is_pull(n) { root.join(&name) } else { source.join(&name) };
        tree::make_many(&tree, 20, &mut random);
        tree::write_random(&tree.join("big"), 1_000_000 + 10_000 * n as u64, &mut random);
    }
    let copies: Vec<Running> = (0..count)
        .map(|n| {
            let name = n.to_string();
            Running::start(if is_pull(n) {
                lab.cp([OsString::from("-rp"), daemon.url(&name).into(), back.join(&name).into()])
            } else {
                let target = if n % 6 == 0 { far(&root) } else { daemon.url("").into() };
                lab.cp([OsString::from("-rp"), source.join(&name).into(), target])
            })
        })
        .collect();
    for copy in copies {
        copy.wait(Duration::from_secs(120)).expect(0);
    }
    for n in 0..count {
        let name = n.to_string();
        let (from, to) = if is_pull(n) { (&root, &back) } else { (&source, &root) };
        tree::assert_same(&from.join(&name), &to.join(&name), Exactness::Everything);
    }
    let mut all: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    all.sort();
    assert_eq!(tree::names(&root), all, "and nothing else");
    daemon.stop().expect(0);
    lab.assert_no_process_left(Duration::from_secs(5));
}

#[test]
fn many_small_files_do_not_cost_a_round_trip_each() {
    let rtt = Duration::from_millis(100);
    let Some(sites) = Sites::open(&[LinkOptions { rtt, ..LinkOptions::default() }]) else { return };
    let count = 5_000;
    let [source, there, back] = ["source", "there", "back"].map(|name| sites.scratch().join(name));
    tree::make_many(&source, count, &mut Random::seeded(9));
    let on_site = |path: &Path| OsString::from(format!("site1:{}", path.display()));
    for (from, to, copy) in [(source.clone().into(), on_site(&there), &there), (on_site(&source), back.clone().into(), &back)] {
        let mut command = sites.haul(sites.hub());
        command.arg("cp").arg("-F").arg(sites.ssh_config()).args([OsString::from("-rp"), from, to]);
        let finished = Running::start(command).wait(Duration::from_secs(300)).expect(0);
        tree::assert_same(&source, copy, Exactness::Everything);
        // A round trip each would take 500 s, however fast the machine is.
        assert!(finished.took < rtt * (count as u32 / 8), "{finished}");
    }
}

#[test]
fn update_sends_only_what_changed() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("tree"), lab.place("there"));
    let mut random = Random::seeded(10);
    tree::make_many(&source, 200, &mut random);
    tree::write_random(&source.join("big"), 20_000_000, &mut random);
    lab.run_cp([OsString::from("-rp"), source.clone().into(), far(&there)]).expect(0);

    tree::write_random(&source.join("dir1/new"), 5_000, &mut random);
    let before = lab.bytes_carried();
    lab.run_cp([OsString::from("-rp"), "--update".into(), source.clone().into(), far(&there)]).expect(0);
    let carried = lab.bytes_carried() - before;
    tree::assert_same(&source, &there.join("tree"), Exactness::Everything);
    assert!(carried < 1_000_000, "{carried} bytes crossed the network for 5000 new ones");
}

#[test]
fn the_library_copies_a_tree_to_an_ssh_host() {
    let Some(lab) = Lab::open() else { return };
    let (from, to) = (lab.place("from"), lab.place("to"));
    tree::make_varied(&from, &mut Random::seeded(14));
    let copy_tree = |target: OsString| {
        let mut command = lab.near.command(example("copy_tree"));
        command.arg(&from).arg(target).arg(lab.ssh_config()).env("HOME", lab.scratch());
        Running::start(command).wait(Duration::from_secs(60))
    };
    let finished = copy_tree(far(&to)).expect(0);
    assert!(String::from_utf8_lossy(&finished.stdout).contains("0 problems"), "{finished}");
    tree::assert_same(&from, &to.join("from"), Exactness::Content);

    let nowhere = copy_tree("far".into()).expect(1);
    assert!(nowhere.stderr.contains("HOST:PATH"), "{nowhere}");
    lab.assert_no_process_left(Duration::from_secs(10));
}

/// By the command: to an account, back, and to a daemon; what differs in nothing else is said and made right.
#[test]
fn attributes_and_acls_go_with_a_tree_and_a_difference_in_them_is_one() {
    let Some(lab) = Lab::open() else { return };
    let (source, there, back, root) = (lab.place("tree"), lab.place("there"), lab.place("back"), lab.place("root"));
    tree::make_varied(&source, &mut Random::seeded(1310));
    // Owner rw, user 1000 r, group none, mask r, others none.
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 4, 1000), (4, 0, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let entry = |(tag, rights, id): (u16, u16, u32)| [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat();
    let acl = [vec![2, 0, 0, 0], entries.map(entry).concat()].concat();
    let file = source.join("noted");
    fs::write(&file, "noted").expect("written");
    let given = |path: &Path, name: &str, value: &[u8]| setxattr(path, name, value, XattrFlags::empty());
    if given(&file, "user.note", b"a word").is_err() || given(&file, "system.posix_acl_access", &acl).is_err() {
        return skip::skip("the file system of the temporary directory has no attributes and ACLs");
    }
    given(&source, "user.dir", b"").expect("set");
    let has = |path: &Path, name: &str| {
        let mut value = Vec::with_capacity(1000);
        getxattr(path, name, rustix::buffer::spare_capacity(&mut value)).ok().map(|_| value.clone())
    };
    let assert_has = |copy: &Path| {
        assert_eq!(has(&copy.join("noted"), "user.note").as_deref(), Some(&b"a word"[..]), "{}", copy.display());
        assert_eq!(has(&copy.join("noted"), "system.posix_acl_access").as_deref(), Some(&acl[..]), "{}", copy.display());
        assert!(has(copy, "user.dir").is_some(), "{}", copy.display());
    };
    let run = |words: &str, from: OsString, to: OsString| lab.run_cp([OsString::from(words), from, to]);
    run("-rpXA", source.clone().into(), far(&there)).expect(0);
    run("-rpXA", far(&there.join("tree")), back.clone().into()).expect(0);
    let daemon = Daemon::start(&lab, &root);
    run("-rpXA", source.clone().into(), daemon.url("").into()).expect(0);
    for copy in [there.join("tree"), back.join("tree"), root.join("tree")] {
        tree::assert_same(&source, &copy, Exactness::Everything);
        assert_has(&copy);
    }
    // Of one thing alone, in nothing else.
    let noted = there.join("tree/noted");
    given(&noted, "user.note", b"another").expect("set");
    let compare = |words: &[&str]| {
        let words = words.iter().map(OsString::from).chain([source.join(".").into(), far(&there.join("tree"))]);
        lab.run_cp([OsString::from("-r"), "--compare".into()].into_iter().chain(words))
    };
    compare(&[]).expect(0);
    let found = compare(&["-X"]).expect(1);
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(said.lines().filter(|line| line.starts_with("update ")).count(), 1, "{found}");
    assert!(said.contains("noted (attributes)"), "{found}");
    let same = |words: &str| lab.run_cp([words.into(), "--skip-same".into(), source.join(".").into(), far(&there.join("tree"))]);
    let again = same("-rpX").expect(0);
    assert!(again.stderr.contains("copied 0 files, "), "{again}");
    assert_has(&there.join("tree"));
    compare(&["-X", "-A"]).expect(0);
}
