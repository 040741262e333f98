//! `haul lab` as a user runs it: a WAN between network namespaces, what crosses it, and that nothing is left of it, however it ends.
//!
//! Needs root, ping and iproute2; says so where they are missing, and fails there if `CI` is set.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod network;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const HAUL: &str = env!("CARGO_BIN_EXE_haul");

#[test]
fn packets_take_the_time_and_the_losses_that_were_asked_for() {
    let Some(()) = possible() else { return };
    let script = format!(
        "{HAUL} lab wan exec a -- ping -q -c 400 -i 0.005 $HAUL_LAB_B_ADDRESS; {HAUL} lab wan set --loss 0 --rtt 60ms; \
         {HAUL} lab wan exec a -- ping -q -c 20 -i 0.01 $HAUL_LAB_B_ADDRESS6; {HAUL} lab wan status --json; exit 7"
    );
    let output = haul(&["lab", "wan", "run", "--rate=1G", "--rtt=20ms", "--loss=10%", "--", "sh", "-c", &script]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(7), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines = |prefix: &str| text.lines().filter_map(|line| line.strip_prefix(prefix)).collect::<Vec<_>>();
    let smallest: Vec<f64> =
        lines("rtt ").iter().map(|line| line.split(" = ").nth(1).unwrap().split('/').next().unwrap().parse().unwrap()).collect();
    assert!((20.0..21.0).contains(&smallest[0]) && (60.0..61.0).contains(&smallest[1]), "{text}");
    // There and back: 1 - 0.9^2 = 19 %; four standard deviations of 400 pings are 8 %.
    let lost: f64 = text.split("% packet loss").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((11.0..27.0).contains(&lost), "{text}");
    let status: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let there = &status["directions"][0];
    assert_eq!(there["sent_pkts"], 420, "{status}");
    assert_eq!(there["lost_pkts"].as_u64().unwrap() + there["delivered_pkts"].as_u64().unwrap(), 420, "{status}");
    assert_eq!(
        (&there["queue_drops_pkts"], &there["unroutable_pkts"], &there["failed_writes"]),
        (&0.into(), &0.into(), &0.into())
    );
}

#[test]
fn hosts_have_lines_of_their_own() {
    let Some(()) = possible() else { return };
    let script = format!("for host in a1 a2 a3 b; do {HAUL} lab wan exec $host -- tc qdisc show dev wan0 root; done");
    let output = haul(&["lab", "wan", "run", "--hosts=3:1", "--rtt=100ms", "--access=1G,20Mx1", "--", "sh", "-c", &script]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("tbf") && lines[0].contains("rate 1Gbit burst"), "{text}");
    assert!(lines[1].contains("tbf") && lines[1].contains("rate 20Mbit"), "{text}");
    assert!(lines.len() == 4 && !lines[2].contains("tbf") && !lines[3].contains("tbf"), "{text}");
    let output = haul(&["lab", "wan", "run", "--access=1Gx2", "--", "true"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("lines for 2 hosts, and side a has 1"));
}

#[test]
fn bytes_of_tcp_arrive_unharmed_through_everything_that_a_link_can_do() {
    let Some(()) = possible() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let content: Vec<u8> = (0..8_000_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(20_000_000).collect();
    fs::write(path("sent"), &content).unwrap();
    let this = std::env::current_exe().unwrap();
    let end = format!("env {END}=$0 {} --exact an_end_of_a_connection --nocapture", this.display());
    for (mtu, address) in [("1500", "10.80.128.1"), ("9000", "[fd80::2:1]")] {
        let server = end.replace("$0", &format!("listen={}", path("received")));
        let client = end.replace("$0", &format!("{address}:5000={}", path("sent")));
        let script = format!("{HAUL} lab wan exec b -- {server} & {HAUL} lab wan exec a -- {client} && wait $!");
        let options =
            ["--rate=2G", "--rtt=4ms", "--loss=0.3%", "--reorder=1%", "--duplicate=1%", "--corrupt=0.1%", "--ecn=0.1bdp"];
        let words = [&["lab", "wan", "run", "--mtu", mtu], &options[..], &["--", "bash", "-c", &script]].concat();
        let output = haul(&words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read(path("received")).unwrap() == content, "other bytes arrived");
        fs::remove_file(path("received")).unwrap();
    }
}

/// Makes of this program an end of a connection: the next test does nothing else.
const END: &str = "HAUL_LAB_TEST_END";

/// Beside other tests a kernel's flow may stand still for a moment, and fall behind the model: what is wrong with the model or the emulator is wrong each time.
#[test]
fn the_simulator_s_tcp_is_as_fast_as_the_kernel_s() {
    const RUNS: usize = 3;
    let Some(()) = possible() else { return };
    let has_bbr = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap().contains("bbr");
    if !has_bbr {
        skip::skip_in_ci_too("this kernel has no bbr, beside which the simulator's is to be compared");
    }
    let mut said = Vec::new();
    let is_as_fast = (0..RUNS).any(|_| {
        let output = haul(&["lab", "wan", "check", "--model", "--quick", "--markdown"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let rows: Vec<Vec<&str>> =
            text.lines().filter(|line| line.contains("Mbit/s, ")).map(|line| line.split('|').map(str::trim).collect()).collect();
        let of = |algorithm: &str| rows.iter().filter(|row| row[1] == algorithm).count();
        assert_eq!((of("reno"), of("cubic"), of("bbr")), (2, 2, if has_bbr { 2 } else { 0 }), "{text}");
        assert_eq!(text.contains("this kernel has no bbr"), !has_bbr, "{text}");
        let ratios = rows.iter().map(|row| (row[6].parse::<f64>().expect("a ratio"), row[10]));
        let are_near = ratios.clone().all(|(ratio, _)| (0.6..1.6).contains(&ratio));
        assert!(ratios.into_iter().all(|(ratio, verdict)| verdict != "ok" || (0.84..1.16).contains(&ratio)), "{text}");
        said.push(text);
        are_near
    });
    assert!(is_as_fast, "{}", said.join("\n"));
}

#[test]
fn an_end_of_a_connection() {
    let Ok(role) = std::env::var(END) else { return };
    match role.split_once('=').unwrap() {
        ("listen", file) => {
            let listener = TcpListener::bind("[::]:5000").unwrap();
            std::io::copy(&mut listener.accept().unwrap().0, &mut fs::File::create(file).unwrap()).unwrap();
        }
        (address, file) => {
            let limit = now() + Duration::from_secs(20);
            let mut stream = loop {
                match TcpStream::connect(address) {
                    Ok(stream) => break stream,
                    // The other end is still starting.
                    Err(error) => assert!(now() < limit, "{error}"),
                }
            };
            std::io::copy(&mut fs::File::open(file).unwrap(), &mut stream).unwrap();
        }
    }
}

#[test]
fn nothing_is_left_when_the_runner_is_killed() {
    let Some(()) = possible() else { return };
    let mut lab = Running::start("nothing_is_left_when_the_runner_is_killed");
    lab.child.kill().unwrap();
    lab.child.wait().unwrap();
    lab.assert_gone();
}

#[test]
fn nothing_is_left_when_the_emulator_is_killed() {
    let Some(()) = possible() else { return };
    let mut lab = Running::start("nothing_is_left_when_the_emulator_is_killed");
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", lab.child.id())).unwrap();
    let is_emulator = |pid: &&str| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("emulate");
    let emulator: i32 = children.split_whitespace().find(is_emulator).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(emulator).unwrap(), Signal::KILL).unwrap();
    assert_eq!(lab.child.wait().unwrap().code(), Some(2));
    lab.assert_gone();
}

#[test]
fn nothing_is_left_when_the_runner_is_interrupted() {
    let Some(()) = possible() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let mut lab = Running::start("nothing_is_left_when_the_runner_is_interrupted");
        kill_process(Pid::from_child(&lab.child), signal).unwrap();
        assert_eq!(lab.child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        lab.assert_gone();
    }
}

#[test]
fn up_and_down_by_name() {
    let Some(()) = possible() else { return };
    let name = format!("test-{}", std::process::id());
    let wan = |words: &[&str]| haul(&[&["lab", "wan", words[0], "--name", &name], &words[1..]].concat());
    assert_eq!(wan(&["exec", "a", "--", "true"]).status.code(), Some(2));
    let up = wan(&["up", "--rate=1G", "--rtt=2ms", "--hosts=2:1", "--links=2"]);
    let said = String::from_utf8_lossy(&up.stdout);
    assert!(up.status.success(), "{said}{}", String::from_utf8_lossy(&up.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], format!("The WAN `{name}` is up: 1.00 Gbit/s, RTT 2 ms, loss 0 %, MTU 1500"));
    let words = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let hosts: Vec<String> = lines[1..lines.len() - 1].iter().map(words).collect();
    let asked = [
        "a1 10.80.0.1 fd80::1:1",
        "a1 10.81.0.1 fd81::1:1",
        "a2 10.80.0.2 fd80::1:2",
        "a2 10.81.0.2 fd81::1:2",
        "b 10.80.128.1 fd80::2:1",
        "b 10.81.128.1 fd81::2:1",
    ];
    assert_eq!(hosts, asked);
    let how = format!("Run programs by `haul lab wan exec --name {name} a -- CMD`, end it by `haul lab wan down --name {name}`.");
    assert_eq!(lines[lines.len() - 1], how);
    assert!(String::from_utf8_lossy(&wan(&["up"]).stderr).contains("already"));
    for address in ["10.80.128.1", "10.81.128.1", "fd81::2:1"] {
        let output = wan(&["exec", "a2", "--", "ping", "-c", "2", "-i", "0.01", address]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(wan(&["exec", "b", "--", "sh", "-c", "exit 3"]).status.code(), Some(3));
    let no_host = wan(&["exec", "c", "--", "true"]);
    assert!(String::from_utf8_lossy(&no_host.stderr).contains("a1, a2, b"));
    let marker = format!("1{}", std::process::id());
    assert!(wan(&["exec", "b", "--", "sh", "-c", &format!("setsid sleep {marker} >/dev/null 2>&1 &")]).status.success());
    // In the midst of its exec a process shows no command line.
    let limit = now() + Duration::from_secs(5);
    while processes_with(&marker).is_empty() {
        assert!(now() < limit, "what was started on b is not there");
    }
    assert!(wan(&["down"]).status.success());
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert_eq!(wan(&["status"]).status.code(), Some(2));
}

/// The blocks of docs/use/lab.md as root types them, one line after the other, on a WAN with a name of the test's own.
#[test]
fn what_the_page_says_works() {
    let Some(()) = network::possible("the commands of docs/use/lab.md", &["ip", "iperf3"]) else { return };
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/use/lab.md")).unwrap();
    let commands = typed_by_root(&page);
    let name = format!("page-{}", std::process::id());
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", Path::new(HAUL).parent().unwrap().display());
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("HAUL_LAB_NAME", &name).env("PATH", &path).stdin(Stdio::null()).output().unwrap()
    };
    let run = |command: &&str| {
        let output = shell(command);
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        if output.status.success() { None } else { Some(format!("{command}: {}\n{said}", output.status)) }
    };
    let failed = commands.iter().find_map(run);
    // The last command of the page ends the WAN; where another one has failed it is still there.
    let is_left = shell("haul lab wan status").status.success();
    shell("haul lab wan down");
    assert_eq!(failed, None);
    assert!(!is_left, "the page ends, and its WAN is there");
    assert!(commands.len() >= 6, "only {commands:?}");
}

/// What a page has root type: the lines of its console blocks that begin with `#`.
fn typed_by_root(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```console\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("# ")).collect()
}

/// A `haul lab wan run` whose command runs on, and has left a process on a host that nobody waits for.
struct Running {
    child: Child,
    marker: String,
    namespace: String,
    _output: BufReader<ChildStdout>,
}

impl Running {
    fn start(test: &str) -> Self {
        let marker = format!("9{}{}", std::process::id(), test.len());
        let script = format!(
            "{HAUL} lab wan exec b -- sh -c 'setsid sleep {marker} >/dev/null 2>&1 & readlink /proc/self/ns/net'; echo ready; sleep {marker}"
        );
        let mut command = Command::new(HAUL);
        command.args(["lab", "wan", "run", "--rtt=1ms", "--", "bash", "-c", &script]);
        // bash waits for the command it runs before it ends by a signal; a group of its own is not needed for the kernel to kill it.
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let namespace = line();
        assert!(namespace.starts_with("net:["), "{namespace}");
        assert_eq!(line(), "ready");
        assert!(!processes_with(&marker).is_empty() && !processes_in(&namespace).is_empty());
        Self { child, marker, namespace, _output: output }
    }

    #[track_caller]
    fn assert_gone(&self) {
        let left = || [processes_with(&self.marker), processes_in(&self.namespace)].concat();
        let limit = now() + Duration::from_secs(5);
        while !left().is_empty() && now() < limit {}
        assert_eq!(left(), Vec::<String>::new());
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let ours = |line: &&str| line.contains(" /run/netns ") && line.contains("size=64k");
        assert_eq!(mounts.lines().find(ours), None, "a mount is left");
    }
}

/// Command lines that contain a text, this process's apart.
fn processes_with(text: &str) -> Vec<String> {
    let line = |pid: &Path| fs::read(pid.join("cmdline")).ok().map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    pids().iter().filter_map(|pid| line(pid)).filter(|line| line.contains(text)).collect()
}

/// Processes in a network namespace.
fn processes_in(namespace: &str) -> Vec<String> {
    let is_in = |pid: &&std::path::PathBuf| fs::read_link(pid.join("ns/net")).is_ok_and(|link| link.as_os_str() == namespace);
    pids().iter().filter(is_in).map(|pid| pid.display().to_string()).collect()
}

fn pids() -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let is_pid = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_pid)).map(|entry| entry.path()).collect()
}

fn haul(words: &[&str]) -> Output {
    Command::new(HAUL).args(words).env_remove("HAUL_LAB_NAME").stdin(Stdio::null()).output().unwrap()
}

/// Nothing where these tests cannot run.
/// In namespaces of the test's own, where even a program that did all this would harm nothing else.
#[test]
fn the_emulator_typed_by_hand_refuses_and_touches_nothing() {
    let Some(()) = network::possible("tests of the emulator by hand", &["unshare"]) else { return };
    let by_hand = "lab wan emulate --name=by-hand --with-parent";
    // What each leaves: the mounts as they were, and a neighbour alive.
    let around = |run: &str| {
        format!(
            "cat /proc/self/mountinfo > before; sleep 300 & {run}; code=$?; cat /proc/self/mountinfo > after; \
             cmp before after && kill -0 $! && echo untouched $code; kill $!"
        )
    };
    let cases = [
        around(&format!("{HAUL} {by_hand} </dev/null")),
        // With something at the token's place.
        around(&format!("echo a line of somebody else | {HAUL} {by_hand} 3<&0 </dev/null")),
        around(&format!("{HAUL} {by_hand} 3</dev/zero </dev/null")),
        // As the first process of another process namespace.
        around(&format!("unshare --pid --fork {HAUL} {by_hand} </dev/null")),
    ];
    for script in cases {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount", "--net", "--fork", "--kill-child", "sh", "-c", &script]).current_dir(dir.path());
        let output = command.output().unwrap();
        let (said, heard) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(heard.contains("untouched 2"), "{script}\n{heard}\n{said}");
        assert!(said.contains("not for use by hand") && said.contains("hint: `haul lab wan up`"), "{said}");
    }
}

fn possible() -> Option<()> {
    network::possible("tests of the lab", &["ip", "ping"])
}

#[expect(clippy::disallowed_methods, reason = "these tests watch real processes")]
fn now() -> Instant {
    Instant::now()
}
