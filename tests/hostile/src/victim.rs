//! The real program, listening, and what /proc tells of it; an honest client to serve meanwhile.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use e2e::{Finished, Running, eventually, haul_binary};
use haul_proto::identity::Identity;
use rustix::process::Signal;
use tempfile::TempDir;

/// What can be listened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// `haul serve`, with a root `pub` to read and a root `in` to write.
    Serve,
    /// `haul pipe -l -k`.
    Pipe,
    /// `haul proxy serve`, for a target that says `WORD` and closes.
    Proxy,
    /// `haul perf -s`.
    Perf,
}

impl Listener {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Serve, Self::Pipe, Self::Proxy, Self::Perf];

    /// Its application protocol.
    pub const fn protocol(self) -> &'static [u8] {
        match self {
            Self::Serve => b"haul-cp/1",
            Self::Pipe => b"haul-tunnel/2",
            Self::Proxy => b"haul-proxy/1",
            Self::Perf => b"haul-perf/1",
        }
    }
}

/// What the target of a proxy says.
const WORD: &[u8] = b"served";

/// A listening program; ends with this value.
pub struct Victim {
    listener: Listener,
    child: Child,
    place: TempDir,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its fingerprint.
    pub key: String,
    said: Arc<Mutex<Vec<u8>>>,
}

/// What a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    /// Resident memory.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Processor time used so far.
    pub cpu: Duration,
}

/// Somebody with a home, a key and the victim's key.
pub struct Client {
    place: TempDir,
}

impl Victim {
    /// Starts one, authorises `friends` there, and waits until it listens.
    pub fn start(listener: Listener, friends: &[&str]) -> Self {
        Self::start_with(listener, friends, &[])
    }

    /// Starts one that lets anyone in as far as it can be told to: all but `haul serve`.
    pub fn start_open(listener: Listener) -> Self {
        let anyone: &[&str] = if matches!(listener, Listener::Pipe | Listener::Proxy) { &["--anyone"] } else { &[] };
        Self::start_with(listener, &[], anyone)
    }

    /// Starts one with these options.
    pub fn start_with(listener: Listener, friends: &[&str], options: &[&str]) -> Self {
        let place = TempDir::new().expect("a scratch directory");
        for dir in ["home", "config", "pub", "in"] {
            fs::create_dir(place.path().join(dir)).expect("making a directory");
        }
        fs::write(place.path().join("pub/file"), vec![7; 100_000]).expect("writing");
        for friend in friends {
            run(haul_in(&place, &["key", "authorize", friend]));
        }
        let address = free_port();
        let (port, root) = (address.port().to_string(), |name: &str| format!("{name}={}", place.path().join(name).display()));
        let mut command = match listener {
            Listener::Serve => haul_in(
                &place,
                &["serve", "--listen", &address.to_string(), "--root", &root("pub"), "--root", &format!("{}:rw", root("in"))],
            ),
            Listener::Pipe => haul_in(&place, &["pipe", "-l", "-k", "-d", "-s", "127.0.0.1", &port]),
            Listener::Proxy => {
                haul_in(&place, &["proxy", "serve", "-B", "127.0.0.1", "-p", &port, "--to", &target().to_string()])
            }
            Listener::Perf => haul_in(&place, &["perf", "-s", "-B", "127.0.0.1", "-p", &port]),
        };
        let mut child = command
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starting haul");
        let said = Arc::new(Mutex::new(Vec::new()));
        keep(child.stdout.take().expect("a pipe"), Arc::clone(&said));
        keep(child.stderr.take().expect("a pipe"), Arc::clone(&said));
        let key = match listener {
            Listener::Perf => String::new(),
            _ => String::from_utf8_lossy(&run(haul_in(&place, &["key", "show"])).stdout).trim().to_owned(),
        };
        let mut victim = Self { listener, child, place, address, key, said };
        let listens = || victim.said().to_lowercase().contains("listening");
        assert!(eventually(Duration::from_secs(30), listens), "{listener:?} does not listen: {}", victim.said());
        if listener == Listener::Perf {
            let found = || victim.said().split_whitespace().find(|word| word.starts_with("SHA256:")).map(str::to_owned);
            assert!(eventually(Duration::from_secs(10), || found().is_some()), "no key: {}", victim.said());
            victim.key = found().unwrap_or_default();
        }
        victim
    }

    /// All that it printed, raw.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// A file of its own: `pub` has what may be read, `in` what was written.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it holds at this moment.
    pub fn readings(&self) -> Readings {
        Readings::of(self.child.id())
    }

    /// A client comes, is served or not, and goes.
    pub fn visit(&self, client: &Client, limit: Duration) -> Finished {
        let (host, port) = ("127.0.0.1", self.address.port().to_string());
        let command = match self.listener {
            Listener::Serve => {
                client.haul(&["cp", &format!("haul://{}/pub/file", self.address), &client.path("got").display().to_string()])
            }
            Listener::Pipe => client.haul(&["pipe", "--key", &self.key, host, &port]),
            Listener::Proxy => return self.visit_proxy(client, limit),
            Listener::Perf => client.haul(&["perf", "-c", host, "-p", &port, "-n", "100K"]),
        };
        Running::start(command).wait(limit)
    }

    /// The same through a proxy: one TCP connection to its target, whose word is heard. A client that hears nothing ends as one that was killed.
    fn visit_proxy(&self, client: &Client, limit: Duration) -> Finished {
        let local = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let connect = ["proxy", "connect", &self.address.to_string(), "--key", &self.key, "--listen", &local.to_string()];
        let mut running = Running::start(client.haul(&connect));
        let hears = || {
            let mut heard = Vec::new();
            let asked = TcpStream::connect(local).and_then(|mut stream| {
                stream.set_read_timeout(Some(limit))?;
                stream.read_to_end(&mut heard)
            });
            asked.is_ok() && heard == WORD
        };
        let mut has_heard = false;
        eventually(limit, || {
            has_heard = hears();
            has_heard || !running.runs()
        });
        running.signal(if has_heard { Signal::TERM } else { Signal::KILL });
        running.wait(limit)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let said = self.said();
            let tail: Vec<_> = said.lines().rev().take(20).collect();
            println!("the last that {:?} printed: {}", self.listener, tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}

impl Readings {
    /// What a process holds at this moment; nothing if there is none.
    pub fn of(process: u32) -> Self {
        let proc = PathBuf::from(format!("/proc/{process}"));
        let status = fs::read_to_string(proc.join("status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
        // After the name, which may hold anything: utime and stime are fields 14 and 15 of proc(5), in ticks of 10 ms.
        let ticks = stat.rsplit(')').next().map_or(0, |rest| {
            rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>()
        });
        Self {
            rss_bytes: field("VmRSS:") << 10,
            threads: field("Threads:"),
            descriptors: fs::read_dir(proc.join("fd")).map_or(0, |fds| fds.count() as u64),
            cpu: Duration::from_millis(ticks * 10),
        }
    }
}

impl Client {
    /// With a key of its own.
    pub fn new() -> Self {
        let place = TempDir::new().expect("a scratch directory");
        for dir in ["home", "config"] {
            fs::create_dir(place.path().join(dir)).expect("making a directory");
        }
        Self { place }
    }

    /// Its fingerprint.
    pub fn key(&self) -> String {
        String::from_utf8_lossy(&run(self.haul(&["key", "show"])).stdout).trim().to_owned()
    }

    /// Trusts a server.
    pub fn trust(&self, address: SocketAddr, key: &str) {
        run(self.haul(&["key", "trust", &address.to_string(), key, "--replace"]));
    }

    /// The program, as this user.
    pub fn haul(&self, args: &[&str]) -> Command {
        haul_in(&self.place, args)
    }

    /// A file of its own.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// The fingerprint of a key that a peer made itself.
pub(crate) fn fingerprint(identity: &Identity) -> String {
    identity.public_key().fingerprint().to_string()
}

impl Victim {
    /// Authorises the key of a peer, as an operator does who has been deceived.
    pub fn authorize(&self, identity: &Identity) {
        run(haul_in(&self.place, &["key", "authorize", &fingerprint(identity)]));
    }
}

fn haul_in(place: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(haul_binary());
    let path = |name: &str| place.path().join(name);
    command.args(args).current_dir(place.path()).env_clear().env("PATH", "/usr/bin:/bin");
    command.env("HOME", path("home")).env("XDG_CONFIG_HOME", path("config")).env("XDG_STATE_HOME", path("config"));
    command
}

fn run(command: Command) -> Finished {
    Running::start(command).wait(Duration::from_secs(30)).expect(0)
}

/// A server of TCP that says [`WORD`] to everyone.
fn target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || listener.incoming().flatten().for_each(|mut client| drop(client.write_all(WORD))));
    address
}

/// A port that was free a moment ago.
fn free_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port")
}

/// Keeps what a pipe brings, line by line.
fn keep(pipe: impl Read + Send + 'static, said: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            said.lock().unwrap_or_else(PoisonError::into_inner).append(&mut line);
        }
    });
}
