//! Copies that run are listed, and told to go slower, wait, go on and end.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Daemon, signal};

const SIZE: usize = 12 << 20;

struct Copy<'a> {
    client: &'a Bench,
    child: Child,
}

impl<'a> Copy<'a> {
    /// Begins, and has brought something.
    fn start(client: &'a Bench, source: &str, target: &str) -> Self {
        Self::of(client, client.command(["cp", "-l", "16M", source, target]))
    }

    /// Another command, the same.
    fn of(client: &'a Bench, mut command: Command) -> Self {
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut copy = Self { client, child };
        while copy.status().is_none_or(|status| status["bytes"] == 0) {
            assert!(copy.child.try_wait().unwrap().is_none(), "it was over, and was never listed");
            thread::park_timeout(Duration::from_millis(20));
        }
        copy
    }

    fn status(&self) -> Option<Value> {
        let listed = self.client.haul(["ctl", "list", "--json"]).expect(0);
        let listed = listed.text();
        let mut listed = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        listed.find(|status| status["pid"] == self.child.id())
    }

    fn tell(&self, order: &str, more: &[&str]) -> String {
        self.client.haul([&["ctl", order, &self.child.id().to_string()], more].concat()).expect(0).text()
    }

    /// It is told something that it does not do.
    fn refuses(&self, order: &str, more: &[&str], why: &str) {
        let before = self.status().unwrap();
        self.client.haul([&["ctl", order, &self.child.id().to_string()], more].concat()).expect(2).says(&[why]);
        let after = self.status().unwrap();
        assert_eq!((&before["limit_bps"], &before["paused"]), (&after["limit_bps"], &after["paused"]));
    }

    /// Ends within half a minute.
    fn end_soon(mut self) -> (i32, String) {
        for _ in 0..1500 {
            if self.child.try_wait().unwrap().is_some() {
                return self.end();
            }
            thread::park_timeout(Duration::from_millis(20));
        }
        self.child.kill().unwrap();
        panic!("it goes on: {:?}", self.end());
    }

    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code().unwrap(), said)
    }
}

/// One whose test has failed would go on without an end.
impl Drop for Copy<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What has arrived once nothing more comes: the same in three looks half a second apart.
fn settled(copy: &Copy<'_>) -> u64 {
    let bytes = || copy.status().unwrap()["bytes"].as_u64().unwrap();
    let mut looks = [0, 1, bytes()];
    while looks[0] != looks[2] || looks[1] != looks[2] {
        thread::park_timeout(Duration::from_millis(500));
        looks = [looks[1], looks[2], bytes()];
    }
    looks[2]
}

/// Waits until what comes in half a second is as much as is wanted, in half a minute at most.
fn until(copy: &Copy<'_>, wanted: impl Fn(u64) -> bool) {
    let bytes = || copy.status().expect("it runs")["bytes"].as_u64().unwrap();
    let mut before = bytes();
    for _ in 0..60 {
        thread::park_timeout(Duration::from_millis(500));
        let now = bytes();
        if wanted(now - before) {
            return;
        }
        before = now;
    }
    panic!("the rate is not what it was told: {:?}", copy.status());
}

/// What sends without an end is held to next to nothing, and let go to 40 Mbit/s: 2.5 MB in half a second.
fn is_limited(copy: &Copy<'_>) {
    assert!(copy.tell("limit", &["8K"]).contains("carried; limit 8"));
    until(copy, |bytes| bytes < 100_000);
    assert!(copy.tell("limit", &["40M"]).contains("carried; limit 40"));
    until(copy, |bytes| bytes > 1_000_000);
}

fn daemon() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    let root = format!("home={}:rw", server.path("home").display());
    let daemon = Daemon::start(&server, &client, &[root]);
    (server, client, daemon)
}

fn is_paused_and_goes_on(client: &Bench, source: &str, target: &str) {
    let copy = Copy::start(client, source, target);
    let status = copy.status().unwrap();
    assert_eq!((&status["limit_bps"], &status["paused"], &status["total"]), (&16_000_000.into(), &false.into(), &SIZE.into()));
    let said = copy.tell("pause", &[]);
    assert!(said.contains("paused") && said.contains(source) && said.contains(target), "{said}");
    assert!(settled(&copy) < SIZE as u64, "it was over before it could wait");
    assert!(copy.tell("limit", &["none"]).contains("no limit"));
    assert!(settled(&copy) < SIZE as u64, "a limit that is lifted is no order to go on");
    copy.tell("resume", &[]);
    let (code, said) = copy.end();
    assert_eq!(code, 0, "{said}");
    for words in ["haul ctl: paused", "haul ctl: goes on", "haul ctl: no limit"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn an_upload_waits_and_goes_on() {
    let (server, client, daemon) = daemon();
    let original = fs::read(client.file("file", SIZE)).unwrap();
    is_paused_and_goes_on(&client, "file", &daemon.url("home/copy"));
    assert_eq!(fs::read(server.path("home/copy")).unwrap(), original);
    assert_eq!(client.haul(["ctl", "list"]).expect(0).text(), "no command of this user that takes orders runs here\n");
}

#[test]
fn a_download_waits_and_goes_on() {
    let (server, client, daemon) = daemon();
    let original = fs::read(server.file("home/file", SIZE)).unwrap();
    is_paused_and_goes_on(&client, &daemon.url("home/file"), "copy");
    assert_eq!(fs::read(client.path("copy")).unwrap(), original);
}

#[test]
fn one_that_waits_can_be_stopped_and_the_same_command_goes_on() {
    let (server, client, daemon) = daemon();
    let original = fs::read(client.file("file", SIZE)).unwrap();
    let url = daemon.url("home/copy");
    let copy = Copy::start(&client, "file", &url);
    copy.tell("pause", &[]);
    copy.tell("stop", &[]);
    let (code, said) = copy.end();
    assert_eq!(code, 130, "{said}");
    client.haul(["cp", "file", &url]).expect(0).says(&["were there from an interrupted copy"]);
    assert_eq!(fs::read(server.path("home/copy")).unwrap(), original);
}

#[test]
fn a_limit_holds_for_what_is_fetched_too() {
    let (server, client, daemon) = daemon();
    server.file("home/file", SIZE);
    let copy = Copy::start(&client, &daemon.url("home/file"), "copy");
    // So slow that the rest would take hours: nothing of note comes any more, in whatever time.
    assert!(copy.tell("limit", &["8K"]).contains("limit 8"));
    let bytes = settled(&copy);
    assert!(bytes < SIZE as u64, "{bytes}");
    copy.tell("stop", &[]);
    assert_eq!(copy.end().0, 130);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the command goes by the time of day")]
fn a_limit_follows_local_time_and_is_changed_with_it() {
    let (server, client, daemon) = daemon();
    client.file("up", SIZE);
    server.file("home/down", SIZE);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // Five hours east of Greenwich, for whoever counts hours by UTC to be wrong.
    let time = |minutes: u64| format!("{:02}:{:02}", (now / 3600 + 5 + minutes / 60) % 24, minutes % 60);
    let limit = format!("{}-{}=16M,otherwise=1G", time(0), time(90));
    for (source, target) in [("up", daemon.url("home/copy")), (&*daemon.url("home/down"), "copy".into())] {
        let mut command = client.command(["cp", "-l", &limit, source, &target]);
        let child = command.env("TZ", "EAST-5").stderr(Stdio::piped()).spawn().unwrap();
        let copy = Copy { client: &client, child };
        while copy.status().is_none_or(|status| status["bytes"] == 0) {
            thread::park_timeout(Duration::from_millis(20));
        }
        assert_eq!(copy.status().unwrap()["limit_bps"], 16_000_000, "{limit}");
        thread::park_timeout(Duration::from_millis(500));
        assert!(copy.status().is_some(), "12 MiB at 16 Mbit/s take 6 s, and at 1 Gbit/s no time");
        copy.tell("stop", &[]);
        assert_eq!(copy.end().0, 130);
    }
    client.haul(["cp", "-l", "8:00-18:00=1M", "up", "copy"]).expect(2).says(&["8:00-18:00=1M", "08:00-18:00=100M"]);
}

#[test]
fn the_mode_of_an_upload_changes_and_that_of_a_download_is_the_other_side_s() {
    let (server, client, daemon) = daemon();
    client.file("up", SIZE);
    server.file("home/down", SIZE);
    let trace = client.path("trace");
    let url = daemon.url("home/copy");
    let mut command = client.command(["cp", "-l", "16M", "up", &url]);
    let child = command.env("HAUL_TRACE", &trace).stderr(Stdio::piped()).spawn().unwrap();
    let copy = Copy { client: &client, child };
    while copy.status().is_none_or(|status| status["bytes"] == 0) {
        thread::park_timeout(Duration::from_millis(20));
    }
    let before = copy.status().unwrap()["mode"].as_str().unwrap().to_owned();
    assert_ne!(before, "reno");
    assert!(copy.tell("mode", &["reno"]).contains("mode reno"));
    thread::park_timeout(Duration::from_secs(1));
    copy.tell("limit", &["none"]);
    let (code, said) = copy.end();
    assert!(code == 0 && said.contains("haul ctl: mode reno"), "{said}");
    let trace = fs::read_to_string(trace).unwrap();
    assert!(
        trace.contains("\"algorithm\":\"reno\"") && !trace.lines().next().unwrap().contains("reno"),
        "the transport has changed"
    );
    let copy = Copy::start(&client, &daemon.url("home/down"), "copy");
    assert!(copy.status().unwrap()["mode"].is_null());
    let pid = copy.child.id().to_string();
    client.haul(["ctl", "mode", &pid, "reno"]).expect(2).says(&["haul cp: it fetches"]);
    client.haul(["ctl", "mode", &pid, "fastest"]).expect(2).says(&["fastest"]);
    copy.tell("stop", &[]);
    assert_eq!(copy.end().0, 130);
}

/// A pipe, a remote shell, a fleet: at 1 Mbit/s they would take a minute and a half.
#[test]
fn what_is_no_copy_is_listed_limited_and_stopped() {
    let bench = crate::ssh::bench();
    let ssh = bench.path("bin/ssh").display().to_string();
    let original = fs::read(bench.file("file", SIZE)).unwrap();
    let input = || fs::File::open(bench.path("file")).unwrap();
    let begin = |words: &[&str]| {
        let (command, rest) = words.split_first().unwrap();
        let mut command: Command = bench.command([*command].iter().chain(rest));
        command.stdin(input());
        Copy::of(&bench, command)
    };
    let pipe = begin(&["pipe", "-S", &ssh, "--limit", "1M", "far", "--", "cat >piped"]);
    let status = pipe.status().unwrap();
    assert_eq!(
        (&status["command"], &status["what"], &status["limit_bps"]),
        (&"pipe".into(), &"far cat >piped".into(), &1_000_000.into())
    );
    pipe.refuses("pause", &[], "haul pipe: only copies wait");
    pipe.refuses("mode", &["modest"], "haul pipe: its mode stays");
    assert!(pipe.tell("limit", &["none"]).contains("carried; no limit"));
    let (code, said) = pipe.end_soon();
    assert!(code == 0 && said.contains("haul ctl: no limit"), "{said}");
    assert_eq!(fs::read(bench.path("far/piped")).unwrap(), original);
    let put = begin(&["fleet", "put", "-S", &ssh, "-H", "far,other", "-l", "1M", "file", "."]);
    let status = put.status().unwrap();
    assert_eq!((&status["command"], &status["what"], &status["total"]), (&"fleet put".into(), &"file .".into(), &SIZE.into()));
    put.refuses("resume", &[], "haul fleet put: only copies wait");
    put.tell("limit", &["none"]);
    let (code, said) = put.end_soon();
    assert!(code == 0 && said.contains("haul ctl: no limit"), "{said}");
    let holder = if bench.path("far/file").exists() { "far" } else { "other" };
    assert_eq!(fs::read(bench.path(&format!("{holder}/file"))).unwrap(), original);
    let get = || begin(&["fleet", "get", "-S", &ssh, "-H", holder, "-l", "1M", "file", "got"]);
    let stopped = get();
    stopped.tell("stop", &[]);
    assert_eq!(stopped.end_soon().0, 130);
    let again = get();
    again.tell("limit", &["none"]);
    let (code, said) = again.end_soon();
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read(bench.path("got")).unwrap(), original);
    let shell = begin(&["rsh", "--ssh", &ssh, "far", "cat >shelled"]);
    assert_eq!(shell.status().unwrap_or_default()["limit_bps"], Value::Null);
    assert_eq!(shell.end_soon().0, 0);
    assert_eq!(fs::read(bench.path("far/shelled")).unwrap(), original);
}

#[test]
fn a_remote_shell_is_limited_and_stopped() {
    let bench = crate::ssh::bench();
    let ssh = bench.path("bin/ssh").display().to_string();
    let mut command = bench.command(["rsh", "--ssh", &ssh, "far", "cat >/dev/null"]);
    command.stdin(fs::File::open("/dev/zero").unwrap());
    let shell = Copy::of(&bench, command);
    assert_eq!(shell.status().unwrap()["what"], "far cat >/dev/null");
    shell.refuses("pause", &[], "haul rsh: only copies wait");
    is_limited(&shell);
    shell.tell("stop", &[]);
    let (code, said) = shell.end_soon();
    assert!(code == 255 && said.contains("haul ctl: limit 8"), "{code} {said}");
}

/// All its connections share a limit; what is on its way goes on when the limit is lifted.
#[test]
fn a_proxy_is_listed_limited_and_stopped() {
    let bench = crate::ssh::bench();
    let ssh = bench.path("bin/ssh").display().to_string();
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let forward = format!("0:127.0.0.1:{}", target.local_addr().unwrap().port());
    let mut command = bench.command(["proxy", "-S", &ssh, "--json", "--limit", "1M", "far", "-L", &forward]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let listening = events.find(|event| event["event"] == "listening").expect("it listens");
    let address = listening["address"].as_str().unwrap().to_owned();
    let original = fs::read(bench.file("file", SIZE)).unwrap();
    let sender = thread::spawn({
        let original = original.clone();
        move || TcpStream::connect(address).unwrap().write_all(&original).unwrap()
    });
    let mut received = Vec::new();
    let mut incoming = target.accept().unwrap().0;
    let proxy = Copy { client: &bench, child };
    let status = proxy.status().unwrap();
    assert_eq!((&status["command"], &status["limit_bps"]), (&"proxy".into(), &1_000_000.into()));
    assert!(status["what"].as_str().unwrap().starts_with("far port "), "{status}");
    proxy.refuses("pause", &[], "haul proxy: only copies wait");
    proxy.refuses("mode", &["modest"], "haul proxy: its mode stays");
    assert!(proxy.tell("limit", &["none"]).contains("carried; no limit"));
    incoming.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == original, "{} bytes", received.len());
    proxy.tell("stop", &[]);
    let (code, said) = proxy.end_soon();
    assert!(code == 0 && said.contains("haul ctl: no limit"), "{code} {said}");
}

/// A measurement of ten minutes is over when it is told so, with its results so far.
#[test]
fn a_measurement_is_listed_limited_and_stopped() {
    let bench = crate::ssh::bench();
    let ssh = bench.path("bin/ssh").display().to_string();
    let begin = |words: &[&str]| {
        let mut command = bench.command([&["perf", "-S", &ssh, "-t", "600", "far"], words].concat());
        command.stdout(Stdio::piped());
        Copy::of(&bench, command)
    };
    let end = |mut measurement: Copy<'_>| {
        measurement.tell("stop", &[]);
        let mut results = measurement.child.stdout.take().unwrap();
        let (code, said) = measurement.end_soon();
        let mut text = String::new();
        results.read_to_string(&mut text).unwrap();
        assert!(code == 130 && text.contains("receiver"), "{code} {said} {text}");
        said
    };
    let up = begin(&[]);
    let status = up.status().unwrap();
    assert_eq!((&status["command"], &status["what"], &status["limit_bps"]), (&"perf".into(), &"far".into(), &Value::Null));
    up.refuses("pause", &[], "haul perf: only copies wait");
    is_limited(&up);
    assert!(end(up).contains("haul ctl: limit 40"));
    let down = begin(&["-R"]);
    down.refuses("limit", &["1M"], "haul perf: the other side sends");
    end(down);
    let held = begin(&["-b", "1M", "-P", "2"]);
    assert_eq!(held.status().unwrap()["limit_bps"], 2_000_000, "of each stream");
    held.refuses("limit", &["5M"], "haul perf: its rate is that of -b");
    end(held);
    let tcp = begin(&["--tcp"]);
    tcp.refuses("limit", &["1M"], "haul perf: the kernel's TCP is not held back");
    end(tcp);
}

#[test]
fn who_is_not_there_is_told_nothing() {
    let client = Bench::new();
    client.haul(["ctl", "pause", "1"]).expect(2).says(&["no command of this user", "process 1", "haul ctl list"]);
    client.haul(["ctl", "limit", "1", "fast"]).expect(2).says(&["fast"]);
    // Where others could put a socket, nobody is asked.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(client.path("run/haul"), open).unwrap();
    client.haul(["ctl", "list"]).expect(2).says(&["run/haul", "not a directory of this user alone", "chmod 700"]);
    // A copy goes on all the same.
    let (_server, client, daemon) = daemon();
    client.file("file", 10);
    fs::create_dir(client.path("run/haul")).unwrap();
    fs::set_permissions(client.path("run/haul"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    client.haul(["cp", "file", &daemon.url("home/copy")]).expect(0);
}

#[test]
fn one_that_was_killed_is_not_listed() {
    let (_server, client, daemon) = daemon();
    client.file("file", SIZE);
    let mut copy = Copy::start(&client, "file", &daemon.url("home/copy"));
    signal(&copy.child, Signal::KILL);
    copy.child.wait().unwrap();
    assert_eq!(client.haul(["ctl", "list"]).expect(0).text(), "no command of this user that takes orders runs here\n");
    assert_eq!(fs::read_dir(client.path("run/haul")).unwrap().count(), 0, "its socket is gone");
}
