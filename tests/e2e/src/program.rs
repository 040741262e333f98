//! Running `haul` on a host, and what came of it.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::clock::{Stopwatch, eventually};

/// The program under test: `HAUL_BIN`, else the one that cargo builds for the tests' own profile.
pub fn haul_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("HAUL_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

/// An example of one of the libraries: in `HAUL_EXAMPLES`, else built as the programs are.
pub fn example(name: &str) -> PathBuf {
    match std::env::var_os("HAUL_EXAMPLES") {
        Some(dir) => PathBuf::from(dir).join(name),
        None => cargo_build(&["--example", name]).join("examples").join(name),
    }
}

fn build() -> PathBuf {
    cargo_build(&["--bins"]).join("haul")
}

/// Builds what the whole workspace's tests would have built, so that nothing is compiled twice with other features. Returns where it is.
fn cargo_build(what: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("path of this test");
    let profile_dir = test.ancestors().nth(2).expect("target/PROFILE/deps/test").to_owned();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--workspace"]).args(what).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile_dir.ends_with("release") {
        command.arg("--release");
    }
    assert!(command.status().expect("running cargo").success(), "building the programs");
    profile_dir
}

/// A program that runs; killed with this value.
pub struct Running {
    child: Child,
    line: String,
    watch: Stopwatch,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How it was called.
    pub line: String,
    /// Its exit status; none if a signal ended it.
    pub code: Option<i32>,
    /// All that it wrote to standard output.
    pub stdout: Vec<u8>,
    /// All that it wrote to standard error, as text.
    pub stderr: String,
    /// How long it ran.
    pub took: Duration,
}

impl Running {
    /// Starts a command with nothing on its standard input; its output is collected.
    pub fn start(command: Command) -> Self {
        Self::start_with(command, Stdio::null())
    }

    /// Starts a command that reads from `stdin`.
    pub fn start_with(mut command: Command, stdin: Stdio) -> Self {
        let line = format!("{command:?}");
        let spawned = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{line}: {error}"));
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Self { child, line, watch: Stopwatch::start(), stdout, stderr }
    }

    /// Its process id: `ip netns exec` becomes the program, it does not stay as its parent.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether it has not ended yet.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Waits for its end; a panic with all that it printed if that takes longer than `limit`.
    pub fn wait(mut self, limit: Duration) -> Finished {
        let ended = eventually(limit, || !self.runs());
        let hangs_in = if ended { String::new() } else { whereabouts(self.pid()) };
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("waiting for a child");
        let finished = self.finish(status);
        assert!(ended, "still running after {limit:?}: {finished}\n{hangs_in}");
        finished
    }

    fn finish(&mut self, status: ExitStatus) -> Finished {
        let mut take = |which: fn(&mut Self) -> Option<JoinHandle<Vec<u8>>>| {
            which(self).and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        let stdout = take(|running| running.stdout.take());
        let stderr = String::from_utf8_lossy(&take(|running| running.stderr.take())).into_owned();
        Finished { line: self.line.clone(), code: status.code(), stdout, stderr, took: self.watch.elapsed() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Panics unless the exit status is this one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.stderr.contains("panicked at"), "{self}");
        self
    }

    /// The last JSON line on standard output of which `event` is this.
    #[track_caller]
    pub fn event(&self, event: &str) -> Value {
        let text = String::from_utf8_lossy(&self.stdout);
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.rfind(|value| value["event"] == event).unwrap_or_else(|| panic!("no event {event}: {self}"))
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        let tail = |text: &str| text.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
        write!(
            f,
            "{}\nexit status {:?} after {:.1} s\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.code,
            self.took.as_secs_f64(),
            tail(&stdout),
            tail(&self.stderr)
        )
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// What the threads of a process wait for, its children, and the TCP connections of its network, for a process that hangs; and the same of all processes in
/// other networks than ours: what it waits for may be there.
fn whereabouts(pid: Pid) -> String {
    let mut text = String::from("--- threads (system call and its arguments, where in the kernel), children, TCP\n");
    let pid = pid.as_raw_nonzero().get();
    describe(pid, 0, &mut text);
    let net = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = fs::read_link("/proc/self/ns/net").ok();
    let mut told = vec![net(pid)];
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<i32> = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    text += &connections(pid);
    for other in pids.into_iter().filter(|other| net(*other).is_some() && net(*other) != own && net(*other) != net(pid)) {
        if !told.contains(&net(other)) {
            told.push(net(other));
            text += &connections(other);
        }
        describe(other, 0, &mut text);
    }
    text
}

fn connections(pid: i32) -> String {
    let of = |family| fs::read_to_string(format!("/proc/{pid}/net/{family}")).unwrap_or_default();
    format!("--- TCP, as process {pid} sees it\n{}{}", of("tcp"), of("tcp6"))
}

fn describe(pid: i32, depth: usize, text: &mut String) {
    let read = |path: String| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ")).unwrap_or_default();
    let indent = "  ".repeat(depth);
    let _ = writeln!(text, "{indent}{pid}: {}", read(format!("/proc/{pid}/cmdline")));
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path().display().to_string()) {
        let of = |name: &str| read(format!("{task}/{name}")).trim().to_owned();
        let _ = writeln!(text, "{indent}  {}: {}, {}", of("comm"), of("syscall"), of("wchan"));
        for child in of("children").split_whitespace().filter_map(|child| child.parse().ok()) {
            describe(child, depth + 1, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_tells_where() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & trap \"kill $!\" TERM; wait"]);
        let running = Running::start(command);
        let told = || whereabouts(running.pid());
        assert!(eventually(Duration::from_secs(20), || told().contains(": sleep 600")), "{}", told());
        assert!(told().contains("local_address"));
        running.signal(Signal::TERM);
        running.wait(Duration::from_secs(20));
    }
}
