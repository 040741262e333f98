//! Words of rsync, as a user writes them: what each does is compared with rsync in haul-files; here it is what the command says and how it ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Bench, Daemon, Run};

/// A daemon with a writable root `in`, and a client with a tree `src`.
fn pair() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    fs::create_dir(server.path("in")).unwrap();
    let daemon = Daemon::start(&server, &client, &[format!("in={}:rw", server.path("in").display())]);
    for name in ["src/a", "src/d/b", "src/d/e/c"] {
        client.file(name, 1000);
    }
    (server, client, daemon)
}

fn cp(client: &Bench, args: &[&str]) -> Run {
    client.haul([&["cp"], args].concat())
}

#[test]
fn what_differs_is_said_and_is_the_exit_status() {
    let (server, client, daemon) = pair();
    let to = daemon.url("in");
    cp(&client, &["-r", "--compare", "src/.", &to]).expect(1).says(&["would copy 3 files"]);
    assert_eq!(fs::read_dir(server.path("in")).unwrap().count(), 0);
    cp(&client, &["-r", "src/.", &to]).expect(0);
    assert_eq!(cp(&client, &["-r", "--compare", "src/.", &to]).expect(0).text(), "");
    fs::write(server.path("in/d/b"), vec![0; 1000]).unwrap();
    let said = cp(&client, &["-r", "--compare", "src/.", &to]).expect(1).text();
    assert_eq!(said.lines().collect::<Vec<_>>(), ["replace  /in/d/b (1000 B)"]);
    cp(&client, &["-r", "--compare", "--size-only", "src/.", &to]).expect(0);
    fs::write(server.path("in/more"), "").unwrap();
    fs::write(server.path("in/d/b"), fs::read(client.path("src/d/b")).unwrap()).unwrap();
    cp(&client, &["-r", "--compare", "src/.", &to]).expect(0);
    assert_eq!(cp(&client, &["-r", "--compare", "--delete", "src/.", &to]).expect(1).text(), "delete   /in/more\n");
}

#[test]
fn what_is_too_much_is_looked_at_before_it_is_removed() {
    let (server, client, daemon) = pair();
    let to = daemon.url("in");
    server.file("in/old/x", 10);
    server.file("in/kept.log", 10);
    let mirror = ["-r", "--delete", "--exclude", "*.log"];
    let said = cp(&client, &[&mirror[..], &["-n", "src/.", &to]].concat()).expect(0).says(&["2 names would be deleted"]).text();
    assert!(said.contains("delete   /in/old\n") && said.contains("delete   /in/old/x\n"), "{said}");
    let limited = [&mirror[..], &["--max-delete", "1", "src/.", &to]].concat();
    cp(&client, &limited).expect(1).says(&["more than 1 names that the source has not: none was deleted"]);
    assert!(server.path("in/old/x").exists());
    cp(&client, &[&mirror[..], &["-v", "src/.", &to]].concat()).expect(0).says(&["deleted /in/old/x", "2 names deleted"]);
    assert!(!server.path("in/old").exists() && server.path("in/kept.log").exists());
    // It is of one tree, so there must be one.
    cp(&client, &["--delete", "src/a", &to]).expect(2).says(&["--recursive"]);
    cp(&client, &["-r", "--delete", "haul://a/x", "haul://b/x", "."]).expect(2).says(&["--delete takes sources of one host"]);
}

#[test]
fn a_list_from_anywhere_and_nothing_outside_of_the_source() {
    let (server, client, daemon) = pair();
    let to = daemon.url("in");
    let listed = |args: &[&str], list: &[u8]| client.haul_with_input([&["cp", "--files-from", "-"], args].concat(), list);
    listed(&["-0", "src", &to], b"d/b\0").expect(0).says(&["copied 1 file"]);
    assert!(server.path("in/d/b").exists() && !server.path("in/a").exists());
    for list in [&b"../src/a"[..], b"d/../../x", b"a\n.."] {
        listed(&["src", &to], list).expect(2).says(&["leads out of the source", "without .."]);
    }
    listed(&["src", &to], b"a\nno\x1b[2J").expect(1).says(&["no\\u{1b}[2J: No such file"]);
    listed(&["src", "src", &to], b"a").expect(2).says(&["needs one source"]);
    listed(&["src", &to], b"# nothing\n").expect(2).says(&["lists no name"]);
    fs::write(client.path("list"), "d\n").unwrap();
    cp(&client, &["-r", "--files-from", "list", &to, "back"]).expect(0).says(&["copied 1 file"]);
    assert!(client.path("back/d/b").exists());
}

#[test]
fn what_was_copied_is_kept_as_a_list_and_as_a_log() {
    let (server, client, daemon) = pair();
    let to = daemon.url("in");
    fs::write(client.path("src/two\nlines"), "x").unwrap();
    for hash in ["sha256", "blake3"] {
        let list = client.path(hash);
        let list = list.to_str().unwrap();
        cp(&client, &["-r", "--skip-same", "--manifest", list, "--manifest-hash", hash, "--log-file", "log", "src", &to])
            .expect(0);
        assert_eq!(fs::read_to_string(list).unwrap().lines().count(), 4, "the second time nothing is copied, and all is listed");
    }
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict"]).arg(client.path("sha256")).current_dir(server.path("in"));
    assert!(Run::from(check.output().unwrap()).expect(0).text().contains("src/d/e/c: OK"));
    let mut check = Command::new("b3sum");
    check.arg("--check").arg(client.path("blake3")).current_dir(server.path("in"));
    match check.output() {
        Ok(done) => assert!(Run::from(done).expect(0).text().contains("src/d/e/c: OK")),
        Err(_) => skip::skip("b3sum is not installed (make setup)"),
    }
    let log = fs::read_to_string(client.path("log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(" file: ")).count(), 4, "{log}");
    assert_eq!(log.lines().filter(|line| line.contains(" end: exit status 0; ")).count(), 2, "{log}");
    assert!(log.contains("src/two\\nlines"), "{log}");
}

/// Names behind a word in lines of a program, in order.
fn named(text: &str, before: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| Some(line.split_once(before)?.1.split(" (").next()?.to_owned()));
    names.collect()
}

/// Two trees of which each name is there, in the same way, in another, or not at all.
fn grow(from: &Path, to: &Path, seed: u64) {
    for at in 0..27 {
        let name = format!("{}/{}", ["", "a", "a/b"][at % 3], ["x", "y y", "z"][at / 3 % 3]) + ["", ".o", ".c"][at / 9];
        let name = name.trim_start_matches('/');
        let fate = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> at) % 8;
        for (dir, content) in [
            (from, [b"1", b"1", b"1", b"1", b"1", b"1", b"0", b"0"][fate as usize]),
            (to, [b"1", b"1", b"2", b"0", b"1", b"1", b"1", b"0"][fate as usize]),
        ] {
            if content != b"0" {
                fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
                fs::write(dir.join(name), content.repeat(1 + at)).unwrap();
            }
        }
    }
}

/// What differs, what is listed and what is logged are the files that rsync names, on random trees.
#[test]
fn the_same_files_are_compared_listed_and_logged_as_with_rsync() {
    let (server, client, daemon) = pair();
    let rsync = |words: &[&str], from: &Path, to: &Path| {
        let mut rsync = Command::new("rsync");
        rsync.args(words).arg(from.join("")).arg(to.join(""));
        rsync.output().map(|done| Run::from(done).expect(0).text())
    };
    for seed in 1..=12_u64 {
        let (from, to) = (client.path(&format!("from{seed}")), server.path(&format!("in/to{seed}")));
        grow(&from, &to, seed);
        let (source, url) = (format!("from{seed}/."), daemon.url(&format!("in/to{seed}")));
        let Ok(said) = rsync(&["-rcn", "--out-format=%i /%n"], &from, &to) else {
            return skip::skip("rsync is not installed (make setup)");
        };
        let differ: BTreeSet<String> =
            said.lines().filter(|line| line.starts_with(">f")).map(|line| named(line, " /").pop_first().unwrap()).collect();
        assert!(!differ.is_empty());
        let ours = cp(&client, &["-r", "--compare", &source, &url]).expect(1).text();
        let below = format!("/in/to{seed}/");
        assert_eq!(
            named(&ours.lines().filter(|line| !line.starts_with("make")).collect::<Vec<_>>().join("\n"), &below),
            differ,
            "seed {seed}"
        );
        let (list, log, theirs) = (client.path("list"), client.path(&format!("log{seed}")), client.path(&format!("rsync{seed}")));
        let words = [
            "-r",
            "--checksum",
            "--manifest",
            "list",
            "--manifest-hash",
            "sha256",
            "--log-file",
            log.to_str().unwrap(),
            &source,
            &url,
        ];
        let apart = client.path("apart");
        assert!(Command::new("cp").arg("-r").args([&to, &apart]).status().unwrap().success());
        cp(&client, &words).expect(0);
        let logging = format!("--log-file={}", theirs.display());
        rsync(&["-rc", &logging, "--log-file-format=%i /%n"], &from, &apart).unwrap();
        fs::remove_dir_all(&apart).unwrap();
        let theirs = fs::read_to_string(theirs).unwrap();
        let theirs = theirs.lines().filter(|line| line.contains(" >f")).collect::<Vec<_>>().join("\n");
        assert_eq!(
            named(&fs::read_to_string(&log).unwrap(), &format!("file: from{seed}/./")),
            named(&theirs, " /"),
            "seed {seed}"
        );
        let all = rsync(&["-rn", "--out-format=%i /%n"], &from, &client.path("nothing")).unwrap();
        let all: Vec<&str> = all.lines().filter(|line| line.starts_with(">f")).collect();
        assert_eq!(named(&fs::read_to_string(list).unwrap(), "  "), named(&all.join("\n"), " /"), "seed {seed}");
        cp(&client, &["-r", "--compare", &source, &url]).expect(0);
    }
}

#[test]
fn rules_come_from_files_and_what_is_no_rule_is_named() {
    let (server, client, daemon) = pair();
    fs::write(client.path("rules"), "+ d/b\n- b\n- e/\n").unwrap();
    client.file("src/b", 10);
    cp(&client, &["-r", "--filter-from", "rules", "src", &daemon.url("in")]).expect(0);
    let there = |name: &str| server.path("in/src").join(name).exists();
    assert!(there("a") && there("d/b") && !there("b") && !there("d/e"));
    fs::write(client.path("more"), "- a\n. other\n").unwrap();
    cp(&client, &["-r", "--filter-from", "more", "src", &daemon.url("in")]).expect(2).says(&["more: line 2: `. other`"]);
}
