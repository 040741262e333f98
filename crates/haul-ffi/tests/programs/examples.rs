//! The programs in `examples/c`, as their users run them, over loopback.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

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
        let built = place.compile(&format!("examples/c/{program}.c"), Build::Sanitized);
        let mut child = place.command(&built).args(arguments).stdout(Stdio::piped()).spawn().expect("a server");
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
