//! The programs in `examples/c`, as their users run them, over loopback and, as root, over an emulated WAN that loses packets.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use haul_lab::{LinkOptions, Wan, WanSpec};
use haul_units::{BitRate, Ratio};

use crate::support::{Build, Workshop, run};

/// A server that has said where it listens.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    port: String,
    key: String,
}

impl Server {
    fn start(place: &Workshop, program: &str, arguments: &[&str]) -> Self {
        Self::start_by(place, program, arguments, |mut command| command.spawn().expect("a server"))
    }

    fn start_by(place: &Workshop, program: &str, arguments: &[&str], spawn: impl FnOnce(Command) -> Child) -> Self {
        let built = place.compile(&format!("examples/c/{program}.c"), Build::Sanitized);
        let mut command = place.command(&built);
        command.args(arguments).stdout(Stdio::piped());
        let mut child = spawn(command);
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let (port, key) =
            line.trim().strip_prefix("listening on port ").and_then(|rest| rest.split_once(", key ")).expect("where it listens");
        Self { port: port.into(), key: key.into(), child, output }
    }

    /// What else it says until it ends.
    fn end(&mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("its output");
        assert!(self.child.wait().expect("its end").success());
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn application_server_and_clients() {
    let place = Workshop::open();
    let mut server = Server::start(&place, "appserver", &["0", "2"]);
    let client = place.compile("examples/c/appclient.c", Build::Sanitized);
    // A client that is told another key does not talk to it.
    let other = "SHA256:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
    let output = place.command(&client).args(["localhost", &server.port, other]).output().expect("a client");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("is not trusted: its key is") && words.contains(&server.key), "{words}");
    for megabytes in ["3", "30"] {
        let mut command = place.command(&client);
        command.args(["localhost", &server.port, &server.key, megabytes]);
        let output = String::from_utf8(run(command).stdout).expect("text");
        assert!(output.ends_with(&format!("the server has received {megabytes}000000 bytes\n")), "{output}");
    }
    assert_eq!(server.end(), "received 3000000 bytes\nreceived 30000000 bytes\n");
}

#[test]
fn words_that_are_no_numbers() {
    let place = Workshop::open();
    let key = "SHA256:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
    for (program, wrong) in [
        ("appserver", &[&["port"][..], &["70000"], &["-1"], &["0", "some"], &["0", "1", "2"]][..]),
        ("appclient", &[&["localhost", "9", key, "much"], &["localhost", "9", key, "0"], &["localhost", "9"]]),
        ("sendfile", &[&["/", "port"], &["/", "0", "all"], &[]]),
        ("recvfile", &[&["localhost", "9", key, "name"]]),
    ] {
        let built = place.compile(&format!("examples/c/{program}.c"), Build::Sanitized);
        for words in wrong {
            let output = place.command(&built).args(*words).output().expect("a program");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.code() == Some(2) && said.starts_with(&format!("usage: {program}")),
                "{program} {words:?}: {said}"
            );
        }
    }
}

#[test]
fn files_are_fetched() {
    let place = Workshop::open();
    let content: Vec<u8> = (0..5_000_000u32).map(|at| (at ^ at >> 9) as u8).collect();
    let (from, to) = (place.path("from"), place.path("to"));
    fs::create_dir(&from).expect("a directory");
    fs::write(from.join("data"), &content).expect("a file");
    fs::write(place.path("secret"), "secret").expect("a file");
    std::os::unix::fs::symlink(place.path("secret"), from.join("link")).expect("a link");
    let mut server = Server::start(&place, "sendfile", &[from.to_str().expect("text"), "0", "4"]);
    let client = place.compile("examples/c/recvfile.c", Build::Sanitized);
    let (port, key) = (server.port.clone(), server.key.clone());
    let fetch = |name: &str| {
        let mut command = place.command(&client);
        command.args(["localhost", &port, &key, name]).arg(&to);
        command
    };
    run(fetch("data"));
    assert!(fs::read(&to).expect("the file") == content);
    for name in ["missing", "../secret", "link"] {
        let output = fetch(name).output().expect("a client");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains("no such file"), "{name}: {words}");
    }
    assert_eq!(server.end(), "sent data, 5000000 bytes\n");
}

/// `bench/udt-bulk` by the table of docs/reference/c.md. The sender ends when all has arrived.
#[test]
fn a_program_of_udt_s_ported_by_the_table() {
    let place = Workshop::open();
    let program = place.compile("../../bench/haul-bulk/main.cpp", Build::Sanitized);
    let port = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("its address").port().to_string();
    let mut receiver = place.command(&program);
    receiver.args(["receive", "127.0.0.1", &port, "--bytes", "20000000"]).stdout(Stdio::piped());
    let mut receiver = receiver.spawn().expect("a receiver");
    let mut told = BufReader::new(receiver.stdout.take().expect("its output"));
    let mut line = String::new();
    told.read_line(&mut line).expect("a line");
    assert_eq!(line, "listening\n");
    let mut sender = place.command(&program);
    sender.args(["send", "127.0.0.1", &port, "--bytes", "20000000"]);
    let sender = sender.stderr(Stdio::piped()).spawn().expect("a sender");
    let mut rest = String::new();
    told.read_to_string(&mut rest).expect("its output");
    let arrived = rest.lines().filter_map(|line| line.strip_prefix("interval ")?.split(' ').nth(1)?.parse::<u64>().ok());
    assert_eq!(arrived.sum::<u64>(), 20_000_000, "{rest}");
    assert!(receiver.wait().expect("its end").success());
    let sender = sender.wait_with_output().expect("its end");
    let errors = String::from_utf8_lossy(&sender.stderr).into_owned();
    // The receiver goes as soon as it has all, perhaps before the sender has heard of it.
    let heard = sender.status.success() || errors.contains("flush: ") && !errors.contains("Sanitizer");
    assert!(heard, "{errors}");
}

/// Starts a program on a host of the WAN.
fn spawn_on(host: &haul_lab::Host, mut command: Command) -> Child {
    let namespace = host.as_fd().as_raw_fd();
    let enter_and_spawn = move || {
        // SAFETY: the descriptor is open as long as the WAN is up, and only this thread, which ends at once, changes its namespace.
        assert_eq!(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
        command.spawn().expect("a program")
    };
    std::thread::scope(|scope| scope.spawn(enter_and_spawn).join()).expect("a thread")
}

fn run_on(host: &haul_lab::Host, mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = spawn_on(host, command).wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn two_hosts_across_a_wan() {
    let link = LinkOptions {
        rate: BitRate::mbps(200),
        rtt: Duration::from_millis(100),
        loss: Ratio::percent(0.5),
        seed: 19,
        ..LinkOptions::default()
    };
    let wan = match Wan::up(WanSpec { link, ..WanSpec::default() }) {
        Ok(wan) => wan,
        Err(error) => return skip::skip(format_args!("this test needs root: {error}")),
    };
    let (near, far) = (wan.host("a").expect("a host"), wan.host("b").expect("a host"));
    let address = far.addresses.first().expect("an address").v4.to_string();
    let place = Workshop::open();

    let mut server = Server::start_by(&place, "appserver", &["0", "1"], |command| spawn_on(far, command));
    let mut client = place.command(&place.compile("examples/c/appclient.c", Build::Sanitized));
    client.args([&address, &server.port, &server.key, "10"]);
    let said = String::from_utf8(run_on(near, client).stdout).expect("text");
    assert!(said.ends_with("the server has received 10000000 bytes\n"), "{said}");
    assert_eq!(server.end(), "received 10000000 bytes\n");

    let content: Vec<u8> = (0..7_654_321u32).map(|at| (at ^ at >> 7) as u8).collect();
    fs::create_dir(place.path("from")).expect("a directory");
    fs::write(place.path("from/data"), &content).expect("a file");
    let directory = place.path("from").into_os_string().into_string().expect("text");
    let mut server = Server::start_by(&place, "sendfile", &[&directory, "0", "1"], |command| spawn_on(far, command));
    let mut client = place.command(&place.compile("examples/c/recvfile.c", Build::Sanitized));
    client.args([&address, &server.port, &server.key, "data"]).arg(place.path("to"));
    run_on(near, client);
    assert!(fs::read(place.path("to")).expect("the file") == content);
    assert_eq!(server.end(), "sent data, 7654321 bytes\n");

    let lost: u64 = wan.stats().iter().flatten().map(|direction| direction.link.lost_pkts).sum();
    assert!(lost > 10, "the WAN has lost {lost} packets: it was not one");
}
