//! Two sites, a proxy on each, and what the tests do with the connections between them.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use e2e::{Finished, Host, Random, Running, Sites, eventually, tree};
use haul_lab::LinkOptions;
use haul_units::{BitRate, Ratio};
use rustix::process::Signal;
use serde_json::Value;

pub const PATIENCE: Duration = Duration::from_secs(60);
/// The least that `--dead-after` takes.
pub const DEAD_AFTER: &str = "8";

/// Clients at site 1, servers at site 2, 20 ms and 0.1 % loss between them.
pub fn two() -> Option<Sites> {
    Sites::open(&[link(1), link(3)])
}

/// The link of a site.
pub fn link(seed: u64) -> LinkOptions {
    LinkOptions {
        rate: BitRate::mbps(500),
        rtt: Duration::from_millis(10),
        loss: Ratio::percent(0.05),
        seed,
        ..LinkOptions::default()
    }
}

pub fn haul(sites: &Sites, site: usize, args: &str) -> Command {
    let mut command = sites.haul(sites.site(site));
    command.args(args.split_whitespace());
    command
}

pub fn key(sites: &Sites, site: usize, args: &str) -> String {
    let finished = Running::start(haul(sites, site, &format!("key {args}"))).wait(PATIENCE).expect(0);
    String::from_utf8_lossy(&finished.stdout).into_owned()
}

pub fn own_key(sites: &Sites, site: usize) -> String {
    key(sites, site, "show").split_whitespace().find(|word| word.starts_with("SHA256:")).expect("a fingerprint").to_owned()
}

/// Whether a port is listened on there: `-lun` for UDP, `-ltn` for TCP.
pub fn listens(host: &Host, kind: &str, port: u16) -> bool {
    let output = host.command("ss").args(["-H", kind, &format!("sport = :{port}")]).output();
    output.is_ok_and(|output| !output.stdout.is_empty())
}

pub fn serve(sites: &Sites, args: &str) -> Running {
    serve_by(sites, args, |command| command)
}

pub fn serve_by(sites: &Sites, args: &str, by: impl FnOnce(Command) -> Command) -> Running {
    let running = Running::start(by(haul(sites, 2, &format!("proxy serve --anyone --json {}", with_dead_after(args)))));
    assert!(eventually(PATIENCE, || listens(sites.site(2), "-lun", 7702)), "the proxy does not serve");
    running
}

pub fn connect(sites: &Sites, args: &str, port: u16) -> Running {
    connect_by(sites, args, port, |command| command)
}

pub fn connect_by(sites: &Sites, args: &str, port: u16, by: impl FnOnce(Command) -> Command) -> Running {
    let (key, address) = (own_key(sites, 2), &sites.site(2).address);
    let line = format!("proxy connect {address} --key {key} --json {}", with_dead_after(args));
    let running = Running::start(by(haul(sites, 1, &line)));
    assert!(eventually(PATIENCE, || listens(sites.site(1), "-ltn", port)), "the proxy does not listen");
    running
}

/// With the least `--dead-after`, unless there is one.
fn with_dead_after(args: &str) -> String {
    if args.contains("--dead-after") { args.to_owned() } else { format!("--dead-after {DEAD_AFTER} {args}") }
}

/// A command that may have so many files open, and cannot change that.
pub fn with_files(count: u64) -> impl FnOnce(Command) -> Command {
    move |command| {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nofile={count}:{count}")).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited
    }
}

/// The proxy over ssh.
pub fn over_ssh(sites: &Sites, args: &str) -> Running {
    let config = sites.ssh_config();
    Running::start(haul(sites, 1, &format!("proxy site2 --json -F {} {args}", config.display())))
}

pub fn stop(running: Running) -> Finished {
    running.signal(Signal::TERM);
    running.wait(PATIENCE).expect(0)
}

/// Events of one kind that a proxy has printed.
pub fn events(finished: &Finished, kind: &str) -> Vec<Value> {
    let text = String::from_utf8_lossy(&finished.stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|event| event["event"] == kind).collect()
}

/// A server on a host: each connection is for `work`, in a thread.
pub fn server(host: &Host, at: &str, work: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> u16 {
    let listener = host.run(|| TcpListener::bind(at)).expect("listening");
    let port = listener.local_addr().expect("its address").port();
    let work = Arc::new(work);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let work = Arc::clone(&work);
            let serving = thread::Builder::new().stack_size(128 << 10).spawn(move || work(client));
            serving.expect("a thread");
        }
    });
    port
}

pub fn echo(mut client: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match client.read(&mut buffer)? {
            0 => return Ok(()),
            read => client.write_all(&buffer[..read])?,
        }
    }
}

pub fn client(host: &Host, port: u16) -> TcpStream {
    let client = host.run(|| TcpStream::connect(("127.0.0.1", port))).expect("the proxy accepts");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    client.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    client
}

pub fn ask(client: &mut TcpStream, question: &[u8]) -> Vec<u8> {
    client.write_all(question).expect("writing");
    let mut answer = vec![0; question.len()];
    client.read_exact(&mut answer).expect("an answer");
    answer
}

/// How a connection ends that is not to be taken for complete.
#[track_caller]
pub fn assert_reset(client: &mut TcpStream) {
    let mut rest = Vec::new();
    let ended = client.read_to_end(&mut rest);
    assert_eq!(
        ended.as_ref().err().map(io::Error::kind),
        Some(ErrorKind::ConnectionReset),
        "{ended:?} after {} bytes",
        rest.len()
    );
}

/// Closes with a reset.
pub fn reset(client: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("SO_LINGER");
    drop(client);
}

/// A web server over a directory, as anybody has one at hand.
pub fn web(sites: &Sites, site: usize, at: &str, port: u16) -> Option<Running> {
    if Command::new("python3").arg("--version").output().is_err() || Command::new("curl").arg("--version").output().is_err() {
        skip::skip("python3 or curl is not installed (make setup)");
        return None;
    }
    let root = sites.scratch().join("www");
    let mut command = sites.site(site).command("python3");
    command.args(["-m", "http.server", "--bind", at, &port.to_string(), "--directory"]).arg(&root);
    let running = Running::start(command);
    assert!(eventually(PATIENCE, || listens(sites.site(site), "-ltn", port)), "the web server does not listen");
    Some(running)
}

pub fn place_files(sites: &Sites, small: usize) -> (blake3::Hash, Vec<u8>) {
    let (root, mut random) = (sites.scratch().join("www"), Random::seeded(81));
    fs::create_dir_all(&root).expect("making a directory");
    tree::write_random(&root.join("big"), 40 << 20, &mut random);
    let mut all = Vec::new();
    for number in 1..=small {
        let text = format!("this is file {number}\n").repeat(number);
        fs::write(root.join(format!("small{number}")), &text).expect("a file");
        all.extend(text.into_bytes());
    }
    (tree::hash(&root.join("big")), all)
}

pub fn curl(sites: &Sites, args: &str) -> Finished {
    let mut command = sites.site(1).command("curl");
    command.args(["-sS", "--fail", "--max-time", "60"]).args(args.split_whitespace());
    Running::start(command).wait(PATIENCE * 2)
}
