//! A directory with a home in it, the program run there, a stand-in for ssh, and what was printed.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// The program under test.
pub const HAUL: &str = env!("CARGO_BIN_EXE_haul");

/// A stand-in for ssh: takes its arguments apart, answers `-G`, greets as a login shell may, and runs the command in the far side's home.
pub const STAND_IN: &str = r#"
printf '%s\n' "$*" >> "$0.calls"
while [ "$1" != "--" ]; do [ "$1" = "-G" ] && explain=yes; shift; done
host=$2; shift 2
[ -n "$explain" ] && { echo "user me"; echo "hostname 127.0.0.1"; exit 0; }
echo "Welcome to $host!"
printf 'unfinished line'
HOME=$(dirname "$0")/../$host; export HOME
SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"; export SSH_CONNECTION
cd "$HOME" && exec /bin/sh -c "$*"
"#;

/// A place of its own for one test.
pub struct Bench {
    dir: TempDir,
}

/// How a run of the program ended.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self { code: output.status.code(), stdout: output.stdout, stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
    }
}

impl Run {
    /// The status that was expected, or the whole story.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", String::from_utf8_lossy(&self.stdout), self.stderr);
        self
    }

    /// Standard error has all of these.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in: {}", self.stderr);
        }
        self
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

impl Bench {
    pub fn new() -> Self {
        let bench = Self { dir: TempDir::new().unwrap() };
        for name in ["home", "config", "bin", "run"] {
            fs::create_dir(bench.path(name)).unwrap();
        }
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file with content that does not repeat.
    pub fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, noise(len)).unwrap();
        path
    }

    /// The program, in this place: its own home, no ssh agent, nothing of the user's.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(HAUL);
        let path = format!("{}:/usr/bin:/bin", Path::new(HAUL).parent().unwrap().display());
        command.args(args).current_dir(self.dir.path()).env_clear().env("PATH", path);
        command.env("HOME", self.path("home")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn haul<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        self.command(args).output().unwrap().into()
    }

    /// Runs the program with this as standard input.
    pub fn haul_with_input<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
        let mut child = self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let run = child.wait_with_output().unwrap().into();
        writer.join().unwrap();
        run
    }

    /// A program in this place, for instance a stand-in for ssh.
    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The fingerprint of this place's own key.
    pub fn key(&self) -> String {
        self.haul(["key", "show"]).expect(0).text().trim().to_owned()
    }
}

/// A running `haul serve`; ended when dropped.
pub struct Daemon {
    pub child: Child,
    pub address: String,
    pub key: String,
    pub log: mpsc::Receiver<String>,
}

impl Daemon {
    /// With `server` as its place and these roots; authorises and is trusted by `client`.
    pub fn start(server: &Bench, client: &Bench, roots: &[String]) -> Self {
        server.haul(["key", "authorize", &client.key(), "--name", "client"]).expect(0);
        let daemon = Self::start_unknown(server, roots);
        client.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
        daemon
    }

    /// With `server` as its place; nobody is authorised, nobody trusts it.
    pub fn start_unknown(server: &Bench, roots: &[String]) -> Self {
        let roots = roots.iter().flat_map(|root| ["--root", root]);
        Self::start_with(server, &roots.collect::<Vec<_>>())
    }

    /// The same, with these options.
    pub fn start_with(server: &Bench, options: &[&str]) -> Self {
        Self::start_at(server, "127.0.0.1:0", options)
    }

    /// The same, at this address.
    pub fn start_at(server: &Bench, address: &str, options: &[&str]) -> Self {
        let key = server.key();
        let mut command = server.command(["serve", "--listen", address]);
        command.args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let listening = lines.find(|line| line.contains("listening")).expect("the daemon says where it listens");
        let address = listening.split("address=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let (sender, log) = mpsc::channel();
        // Somebody must read the log, or the daemon would block on a full pipe.
        thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        Self { child, address, key, log }
    }

    /// An address on it.
    pub fn url(&self, path: &str) -> String {
        format!("haul://{}/{path}", self.address)
    }

    /// Waits until the log has a line with this.
    #[track_caller]
    pub fn logs(&self, text: &str) {
        let mut seen = Vec::new();
        while let Ok(line) = self.log.recv_timeout(Duration::from_secs(20)) {
            if line.contains(text) {
                return;
            }
            seen.push(line);
        }
        panic!("no `{text}` in the log: {seen:#?}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ended when dropped.
pub struct Held(pub Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program's standard error, once it has said this; somebody must read the rest, or it would block on a full pipe.
pub fn says(bench: &Bench, args: &[&str], text: &str) -> (Held, mpsc::Receiver<String>) {
    let mut child = bench.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    let held = Held(child);
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains(text)) {
        seen.push(receiver.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("no `{text}`: {seen:?}")));
    }
    (held, receiver)
}

/// Sends a signal to a child.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, signal).unwrap();
}

/// Bytes that do not repeat (xorshift64).
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ len as u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}
