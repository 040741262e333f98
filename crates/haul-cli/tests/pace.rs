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

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    for (arguments, words) in [
        (&["--rate", "80M"][..], "no program is named"),
        (&["--", "true"], "no rate is given for all connections"),
        (&["--to", "10.0.0.0/8", "--", "true"], "no rate is given for 10.0.0.0/8"),
        (&["--rate", "0", "--", "true"], "would let nothing pass"),
        (&["--rate", "fast", "--", "true"], "is not a rate"),
        (&["--gaps", "eth0", "--rate", "1M", "--", "true"], "--to"),
        (&["--gaps", "lo", "--rate", "1M", "--to", "127.0.0.9", "--", "true"], "lo is no Ethernet interface"),
    ] {
        let output = pace(arguments);
        let (_, err) = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}
