//! Words of rsync, as a user writes them: what each does is compared with rsync in haul-files; here it is what the command says and how it ends.

use std::fs;
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
    let log = fs::read_to_string(client.path("log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(" file: ")).count(), 4, "{log}");
    assert_eq!(log.lines().filter(|line| line.contains(" end: exit status 0; ")).count(), 2, "{log}");
    assert!(log.contains("src/two\\nlines"), "{log}");
}
