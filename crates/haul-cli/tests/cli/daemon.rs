//! Copies to and from a daemon.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::Signal;

use crate::support::{Bench, Daemon, Run, noise, signal};

/// A daemon with a read-only root `pub` and a writable one `in`, and a client that may use it.
fn pair() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    for name in ["pub", "in"] {
        fs::create_dir(server.path(name)).unwrap();
    }
    let roots = [format!("pub={}", server.path("pub").display()), format!("in={}:rw", server.path("in").display())];
    let daemon = Daemon::start(&server, &client, &roots);
    (server, client, daemon)
}

fn cp(client: &Bench, args: &[&str]) -> Run {
    client.haul([&["cp"], args].concat())
}

#[test]
fn a_file_there_and_back() {
    let (server, client, daemon) = pair();
    let original = fs::read(server.file("pub/dir/file", 3_000_000)).unwrap();
    cp(&client, &[&daemon.url("pub/dir/file"), "."]).expect(0).says(&["copied 1 file: 2.86 MiB", "; verified"]);
    assert_eq!(fs::read(client.path("file")).unwrap(), original);
    cp(&client, &["file", &daemon.url("in/renamed")]).expect(0);
    assert_eq!(fs::read(server.path("in/renamed")).unwrap(), original);
    daemon.logs("copied client=\"client\"");
}

#[test]
fn a_tree_with_everything_in_it() {
    let (server, client, daemon) = pair();
    for name in ["tree/a", "tree/sub/b", "tree/sub/deeper/c"] {
        client.file(name, 10_000);
    }
    fs::write(client.path("tree/empty"), "").unwrap();
    std::os::unix::fs::symlink("../nowhere", client.path("tree/link")).unwrap();
    cp(&client, &["-rp", "tree", &daemon.url("in/")]).expect(0).says(&["copied 4 files, 3 directories, 1 link"]);
    let mut diff = Command::new("diff");
    diff.args(["-r", "--no-dereference"]).args([client.path("tree"), server.path("in/tree")]);
    assert_eq!(Run::from(diff.output().unwrap()).expect(0).text(), "");
    cp(&client, &["-rp", "--update", "tree", &daemon.url("in/")]).expect(0).says(&["4 files skipped, there already"]);
    cp(&client, &["-rp", "--skip-same", "tree", &daemon.url("in/")]).expect(0).says(&["4 files skipped, there already"]);
    // What is newer there stays only with --update.
    fs::write(server.path("in/tree/a"), "newer").unwrap();
    cp(&client, &["-r", "--update", "tree", &daemon.url("in/")]).expect(0).says(&["1 file skipped, newer there"]);
    assert_eq!(fs::read_to_string(server.path("in/tree/a")).unwrap(), "newer");
    cp(&client, &["-r", "--skip-same", "tree", &daemon.url("in/")]).expect(0).says(&["copied 1 file"]);
    assert!(fs::read(server.path("in/tree/a")).unwrap() == fs::read(client.path("tree/a")).unwrap());
}

#[test]
fn what_was_verified_is_said() {
    let (server, client, daemon) = pair();
    server.file("pub/file", 100_000);
    let url = daemon.url("pub/file");
    cp(&client, &[&url, "."]).expect(0).says(&["; verified on arrival\n"]);
    cp(&client, &["--verify", "read-back", &url, "."]).expect(0).says(&["; verified on arrival and read back ("]);
    cp(&client, &["--no-verify", &url, "."]).expect(0).says(&["; not verified"]);
    let summary = |args: &[&str]| {
        let run = cp(&client, args).expect(0);
        serde_json::from_str::<serde_json::Value>(run.text().lines().last().unwrap()).unwrap()
    };
    let read_back = summary(&["--json", "--verify", "read-back", &url, "."]);
    let files = [&read_back["files_read_back_direct"], &read_back["files_read_back_uncached"]];
    assert_eq!((read_back["verified"].as_bool(), files.map(|n| n.as_u64().unwrap()).iter().sum()), (Some(true), 1_u64));
    assert_eq!(summary(&["--json", "--no-verify", &url, "."])["verified"].as_bool(), Some(false));
    summary(&["--json", "--skip-same", &url, "."]);
    let nothing = summary(&["--json", "--skip-same", &url, "."]);
    assert!(nothing["verified"].is_null() && nothing["verified_by"].is_null(), "{nothing}");
    assert_eq!(nothing["files_skipped"].as_u64(), Some(1));
}

#[test]
fn standard_streams() {
    let (server, client, daemon) = pair();
    let data = noise(500_000);
    client.haul_with_input(["cp", "-", &daemon.url("in/stream")], &data).expect(0);
    assert_eq!(fs::read(server.path("in/stream")).unwrap(), data);
    server.file("pub/x", 10);
    let run = cp(&client, &[&daemon.url("in/stream"), &daemon.url("pub/x"), "-"]).expect(0);
    assert_eq!(run.stdout, [data, noise(10)].concat());
}

#[test]
fn problems_of_single_files_do_not_stop_the_others() {
    let (server, client, daemon) = pair();
    server.file("pub/good", 100);
    server.file("pub/dir/inside", 100);
    let urls = ["pub/missing", "pub/dir", "pub/good"].map(|path| daemon.url(path));
    let run = cp(&client, &[&urls[0], &urls[1], &urls[2], "."]).expect(1);
    run.says(&["missing: No such file", "is a directory: not copied without -r", "hint: -r copies directories", "copied 1 file"]);
    assert!(client.path("good").exists() && !client.path("dir").exists());
    daemon.logs("missing: No such file");
}

#[test]
fn nothing_outside_the_roots_can_be_reached() {
    let (server, client, daemon) = pair();
    server.file("secret", 10);
    std::os::unix::fs::symlink(server.path("secret"), server.path("pub/way-out")).unwrap();
    for path in ["pub/../secret", "pub/%2e%2e/secret", "pub/way-out"] {
        let run = cp(&client, &[&daemon.url(path), "out"]);
        assert!(matches!(run.code, Some(1 | 2)), "{path}: {}", run.stderr);
        assert!(!client.path("out").exists(), "{path}");
    }
    client.file("x", 10);
    for path in ["in/../planted", "pub/planted"] {
        let run = cp(&client, &["x", &daemon.url(path)]);
        assert!(matches!(run.code, Some(1 | 2)), "{path}: {}", run.stderr);
    }
    assert!(!server.path("planted").exists() && !server.path("pub/planted").exists());
}

#[test]
fn patterns_are_expanded_inside_the_root() {
    let (server, client, daemon) = pair();
    for name in ["pub/dir/a.csv", "pub/dir/b.csv", "pub/dir/.c.csv", "pub/dir/d.txt", "secret/e.csv"] {
        server.file(name, 100);
    }
    std::os::unix::fs::symlink("../secret", server.path("pub/out")).unwrap();
    fs::create_dir(client.path("here")).unwrap();
    cp(&client, &[&daemon.url("pub/dir/*.csv"), "here"]).expect(0).says(&["copied 2 files"]);
    cp(&client, &[&daemon.url("pub/o*/*.csv"), "here"]).expect(1);
    cp(&client, &[&daemon.url("pub/*.none"), "here"]).expect(1).says(&["pub/*.none: no match"]);
    cp(&client, &[&daemon.url("pub/dir/[ab].csv"), "new"]).expect(2).says(&["new: is not a directory", "hint: "]);
    let mut names: Vec<_> = fs::read_dir(client.path("here")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.csv", "b.csv"]);
}

#[test]
fn an_address_without_a_root_is_answered_with_the_roots() {
    let (_server, client, daemon) = pair();
    let url = daemon.url("");
    client.haul(["cp", &url, "."]).expect(2).says(&["no root named", "hint: there are ", &format!("{url}pub")]);
}

#[test]
fn refusals_name_the_reason_and_the_way_out() {
    let (_server, client, daemon) = pair();
    client.file("x", 10);
    cp(&client, &["x", &daemon.url("pub/x")]).expect(2).says(&["error: haul://127.0.0.1", "read-only", "hint: ", ":rw"]);
    cp(&client, &[&daemon.url("nothing/x"), "."]).expect(2).says(&["nothing: no such root is exported", "hint: "]);
    cp(&client, &["x", "x", &daemon.url("in/no/such/")]).says(&["error:"]);
}

#[test]
fn a_stranger_is_turned_away_with_an_explanation_on_both_sides() {
    let (server, stranger) = (Bench::new(), Bench::new());
    let daemon = Daemon::start_unknown(&server, &[format!("pub={}", server.path("home").display())]);
    let key = stranger.key();
    // Not trusted yet: without a terminal nobody can be asked.
    let unknown = cp(&stranger, &[&daemon.url("pub/x"), "."]).expect(2);
    unknown.says(&["its key is not known", &daemon.key, "hint: if `haul key show`", "haul key trust 127.0.0.1"]);
    stranger.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
    let refused = cp(&stranger, &[&daemon.url("pub/x"), "."]).expect(2);
    refused.says(&["this user's key is not authorised there", &format!("haul key authorize {key}")]);
    daemon.logs(&format!("turned away: this key is not authorised (`haul key authorize {key}`"));
    // Authorised while the daemon runs.
    server.file("home/x", 10);
    server.haul(["key", "authorize", &key]).expect(0);
    cp(&stranger, &[&daemon.url("pub/x"), "."]).expect(0);
    server.haul(["key", "revoke", &key]).expect(0);
    cp(&stranger, &[&daemon.url("pub/x"), "."]).expect(2).says(&["not authorised"]);
}

#[test]
fn a_changed_key_is_refused_loudly() {
    let (_server, client, daemon) = pair();
    let other = Bench::new().key();
    client.haul(["key", "trust", &daemon.address, &other, "--replace"]).expect(0);
    let run = cp(&client, &[&daemon.url("pub/x"), "."]).expect(2);
    run.says(&["THE KEY OF THIS HOST HAS CHANGED", &other, &daemon.key, "--replace"]);
}

#[test]
fn many_clients_at_once() {
    let (server, client, daemon) = pair();
    let original = fs::read(server.file("pub/file", 2_000_000)).unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let (client, source, target) = (&client, daemon.url("pub/file"), format!("copy{number}"));
            scope.spawn(move || cp(client, &["-q", &source, &target]).expect(0));
        }
    });
    assert!((0..8).all(|number| fs::read(client.path(&format!("copy{number}"))).unwrap() == original));
}

/// `haul serve` on a port that it chooses, after the shell has set a limit.
fn serve_with(server: &Bench, limit: &str, options: &[&str]) -> Child {
    let plain = server.command([&["serve", "--listen", "127.0.0.1:0"], options].concat());
    let mut limited = Command::new("/bin/sh");
    limited.args(["-c", &format!(r#"{limit} && exec "$0" "$@""#)]).arg(plain.get_program()).args(plain.get_args());
    limited.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(plain.get_current_dir().unwrap()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The soft limit that a shell or systemd sets is for programs of another kind.
#[test]
fn a_daemon_takes_all_the_descriptors_that_it_may_have() {
    let server = Bench::new();
    server.file("home/x", 1);
    let mut child = serve_with(&server, "ulimit -S -n 200", &["--root", "pub=."]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening")));
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    signal(&child, Signal::TERM);
    child.wait().unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
}

/// Six trees at once that each have three times as many directories as the daemon may open.
#[test]
fn clients_with_wide_trees_share_what_a_daemon_may_open() {
    let (server, client) = (Bench::new(), Bench::new());
    fs::create_dir(server.path("in")).unwrap();
    server.haul(["key", "authorize", &client.key()]).expect(0);
    let mut child = serve_with(&server, "ulimit -n 128", &["--root", "in=in:rw"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let listening = lines.find(|line| line.contains("listening")).unwrap();
    let address = listening.split_whitespace().find_map(|word| word.strip_prefix("address=")).unwrap().to_owned();
    let log = thread::spawn(move || lines.collect::<Vec<_>>().join("\n"));
    client.haul(["key", "trust", &address, &server.key()]).expect(0);
    for n in 0..400 {
        client.file(&format!("tree/{n}/file"), 10 + n);
    }
    thread::scope(|scope| {
        for number in 0..6 {
            let (client, target) = (&client, format!("haul://{address}/in/copy{number}"));
            scope.spawn(move || cp(client, &["-qr", "tree", &target]).expect(0));
        }
    });
    signal(&child, Signal::TERM);
    child.wait().unwrap();
    let log = log.join().unwrap();
    assert!(!log.contains("Too many open files"), "{log}");
    for n in 0..400 {
        let original = fs::read(client.path(&format!("tree/{n}/file"))).unwrap();
        assert!((0..6).all(|number| fs::read(server.path(&format!("in/copy{number}/{n}/file"))).unwrap() == original), "{n}");
    }
}

#[test]
fn a_polite_end_on_sigterm() {
    let (_server, _client, mut daemon) = pair();
    signal(&daemon.child, Signal::TERM);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn two_daemons_cannot_share_a_port() {
    let (server, _client, daemon) = pair();
    let run = server.haul(["serve", "--root", "x=.", "--listen", &daemon.address]).expect(2);
    run.says(&[&daemon.address, "hint: ", "--listen"]);
}

#[test]
fn silence_on_udp_is_noticed() {
    let client = Bench::new();
    // Bound and never answered.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let run = cp(&client, &[&format!("haul://{address}/pub/x"), "."]).expect(2);
    run.says(&[&format!("error: no answer over UDP from {address}"), "hint: ", "haul serve"]);
    cp(&client, &["haul://no-such-host.invalid/pub/x", "."]).expect(2).says(&["no such host"]);
}

#[test]
fn quiet_says_nothing_and_json_says_everything() {
    let (server, client, daemon) = pair();
    server.file("pub/file", 100_000);
    let quiet = cp(&client, &["-q", &daemon.url("pub/file"), "."]).expect(0);
    assert_eq!((quiet.stderr.as_str(), quiet.stdout.as_slice()), ("", &b""[..]));
    let run = cp(&client, &["--json", &daemon.url("pub/file"), &daemon.url("pub/missing"), "."]).expect(1);
    let events: Vec<serde_json::Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"start"), Some(&"summary")));
    assert!(kinds.contains(&"file") && kinds.contains(&"problem"), "{kinds:?}");
    let summary = events.last().unwrap();
    assert_eq!(
        (summary["exit_status"].as_u64(), summary["files"].as_u64(), summary["bytes"].as_u64()),
        (Some(1), Some(1), Some(100_000))
    );
    // A failure as a whole is an event too.
    let run = cp(&client, &["--json", &daemon.url("nothing/x"), "."]).expect(2);
    let last: serde_json::Value = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    assert!(last["error"].as_str().unwrap().contains("no such root"), "{last}");
}

#[test]
fn names_that_are_not_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let (server, client, daemon) = pair();
    let name = std::ffi::OsStr::from_bytes(b"odd \xff\n name");
    fs::write(client.path("home").join(name), "x").unwrap();
    cp(&client, &["-r", "home", &daemon.url("in")]).expect(0);
    assert!(server.path("in/home").join(name).exists());
}
