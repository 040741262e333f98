//! `haul pace`, as its users type it. Needs root, and a kernel that takes programs at cgroups.

use std::process::{Command, Output};

/// Prints the pacing rate of a connection on loopback, in bytes a second of payload, and what was asked for beside it.
const PROGRAM: &str = r"
import socket
listener = socket.create_server(('127.0.0.1', 0))
near = socket.create_connection(listener.getsockname()); far = listener.accept()[0]
for _ in range(20):
    near.sendall(b'x' * 1000); far.recv(1000, socket.MSG_WAITALL); far.sendall(b'y'); near.recv(1)
print(near.getsockopt(socket.SOL_SOCKET, 47))
";

fn pace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_haul")).arg("pace").args(arguments).output().expect("haul")
}

fn printed(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Whether this machine lets us, which is an error in CI.
fn may() -> bool {
    let Err(error) = haul_tcp::obstacle() else { return true };
    skip::skip(error);
    false
}

#[test]
fn a_program_has_its_rate_and_its_exit_status() {
    if !may() {
        return;
    }
    let output = pace(&["--rate", "80M", "--", "python3", "-c", PROGRAM]);
    let (out, err) = printed(&output);
    assert!(output.status.success(), "{err}");
    let rate: u64 = out.trim().parse().expect("a rate");
    // Both ends are the program's: half of 10 MB/s each, less 90 bytes of a packet of loopback.
    assert!((4_900_000..=5_000_000).contains(&rate), "{rate}");
    let output = pace(&["--rate", "80M", "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    let groups = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let left: Vec<_> = groups.filter(|group| group.file_name().to_string_lossy().starts_with("haul-pace-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A network namespace with an interface `x`, which nobody else uses. It goes with what is on.
struct Own(String);

impl Own {
    fn new() -> Self {
        let own = Self(format!("haul-pace-cli-{}", std::process::id()));
        for arguments in [&["netns", "add", &own.0][..], &["-n", &own.0, "link", "add", "x", "type", "veth", "peer", "name", "y"]]
        {
            let output = Command::new("ip").args(arguments).output().expect("iproute2: `make setup` installs it");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        own
    }

    /// Not by `ip netns exec`, which has mounts of its own.
    fn pace(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let at = format!("--net=/run/netns/{}", self.0);
        let haul = [&[at.as_str(), env!("CARGO_BIN_EXE_haul"), "pace"], arguments].concat();
        let output = Command::new("nsenter").args(haul).output().expect("util-linux");
        let (out, err) = printed(&output);
        (output.status.code(), out, err)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = pace(&["off"]);
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

#[test]
fn the_queue_is_shown_with_what_holds_it() {
    let Some(_turn) = skip::kernel_tcp_turn(haul_tcp::obstacle()) else { return };
    assert!(printed(&pace(&["status"])).0.contains("nothing is on"), "haul pace is on: this test would put an end to that");
    let own = Own::new();
    let (status, _, err) = own.pace(&["--rate", "8M", "--queue", "x", "--queue-by", "fq", "--", "true"]);
    let has_fq = status == Some(0);
    let said = "this kernel cannot hold packets until their departure times: it has no fq";
    assert!(has_fq || err.contains(said) && err.contains("--queue-by htb"), "{err}");
    let usual = if has_fq { "departure times, fq" } else { "HTB" };
    for (way, by) in [(&[][..], usual), (&["--queue-by", "auto"], usual), (&["--queue-by", "htb"], "HTB")] {
        let (status, out, err) = own.pace(&[&["on", "--to", "10.93.1.0/24=8M", "--queue", "x"], way].concat());
        assert_eq!(status, Some(0), "{err}");
        let words = format!("through x in the network namespace {} waits in a queue there ({by})", own.0);
        assert!(out.contains(&words), "{out}");
        let told: serde_json::Value = serde_json::from_slice(&pace(&["status", "--json"]).stdout).expect("JSON");
        assert_eq!(told["queue"], serde_json::json!({ "interface": "x", "netns": own.0, "by": by }));
    }
    assert!(printed(&pace(&["off"])).0.contains("taken back"));
    assert!(printed(&pace(&["status"])).0.contains("nothing is on"));
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    for (arguments, words) in [
        (&["--rate", "80M"][..], "no program is named"),
        (&["--", "true"], "no rate is given for all connections"),
        (&["--to", "10.0.0.0/8", "--", "true"], "no rate is given for 10.0.0.0/8"),
        (&["--rate", "0", "--", "true"], "would let nothing pass"),
        (&["--rate", "fast", "--", "true"], "is not a rate"),
        (&["--rate", "1M", "--queue-by", "htb", "--", "true"], "--queue <INTERFACE>"),
        (&["--rate", "1M", "--queue", "lo", "--queue-by", "tbf", "--", "true"], "possible values: auto, fq, htb"),
        (&["--gaps", "eth0", "--rate", "1M", "--", "true"], "--to"),
        (&["--gaps", "lo", "--rate", "1M", "--to", "127.0.0.9", "--", "true"], "lo is no Ethernet interface"),
        (&["--gaps", "lo", "--to", "127.0.0.9", "--", "true"], "no rate is given for 127.0.0.9"),
        (&["--gaps", "lo", "--follow", "--to", "127.0.0.9", "--", "true"], "lo is no Ethernet interface"),
    ] {
        let output = pace(arguments);
        let (_, err) = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}
