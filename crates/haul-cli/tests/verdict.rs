//! What a copy says limited it, where the truth is known: over loopback, with one thing that is slow and nothing else. So these tests take turns, and `cargo xtask test` runs nothing beside them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[path = "cli/support.rs"]
#[expect(dead_code, reason = "what the tests of other things need besides")]
mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::support::{Bench, Daemon, Run, STAND_IN, noise};

const SIZE: usize = 12 << 20;
/// What is slow does this much, and then nothing for a while: some 40 Mbit/s.
const PORTION: usize = 256 << 10;
const WHILE: Duration = Duration::from_millis(50);

/// Held by the test whose turn it is: a processor that another one keeps busy would be one more thing that is slow.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn daemon() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    let root = format!("in={}:rw", server.path("in").display());
    server.file("in/file", SIZE);
    let daemon = Daemon::start(&server, &client, &[root]);
    (server, client, daemon)
}

fn start(client: &Bench, args: [&str; 3]) -> Child {
    let mut command = client.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The sentence.
#[track_caller]
fn verdict(run: &Run) -> &str {
    let is_verdict = |line: &&str| line.starts_with("limited by") || line.starts_with("what limited");
    run.stderr.lines().find(is_verdict).unwrap_or_else(|| panic!("no verdict: {}", run.stderr))
}

#[test]
fn a_target_that_takes_its_time_is_named() {
    let _turn = turn();
    let (server, client, daemon) = daemon();
    let mut child = start(&client, ["cp", &daemon.url("in/file"), "-"]);
    let mut pipe = child.stdout.take().unwrap();
    let mut arrived = Vec::new();
    while pipe.by_ref().take(PORTION as u64).read_to_end(&mut arrived).unwrap() > 0 {
        thread::park_timeout(WHILE);
    }
    let run = Run::from(child.wait_with_output().unwrap()).expect(0);
    assert!(arrived == fs::read(server.path("in/file")).unwrap());
    assert!(verdict(&run).starts_with("limited by the target's disk (writing took"), "{}", run.stderr);
}

#[test]
fn a_source_that_takes_its_time_is_named() {
    let _turn = turn();
    let (server, client, daemon) = daemon();
    let content = noise(SIZE);
    let mut child = start(&client, ["cp", "-", &daemon.url("in/got")]);
    let mut pipe = child.stdin.take().unwrap();
    for portion in content.chunks(PORTION) {
        pipe.write_all(portion).unwrap();
        thread::park_timeout(WHILE);
    }
    drop(pipe);
    let run = Run::from(child.wait_with_output().unwrap()).expect(0);
    assert!(content == fs::read(server.path("in/got")).unwrap());
    assert!(verdict(&run).starts_with("limited by the source's disk (reading took"), "{}", run.stderr);
}

#[test]
fn the_users_own_rate_is_named_each_way() {
    let _turn = turn();
    let (_server, client, daemon) = daemon();
    client.file("mine", SIZE);
    for (from, to) in [(&*daemon.url("in/file"), "got"), ("mine", &*daemon.url("in/"))] {
        let run = client.haul(["cp", "-l", "50M", from, to]).expect(0);
        assert_eq!(verdict(&run), "limited by the rate limit of 50.0 Mbit/s", "{from}");
    }
}

#[test]
fn a_login_that_takes_its_time_is_named() {
    let _turn = turn();
    let bench = Bench::new();
    fs::create_dir(bench.path("far")).unwrap();
    let ssh = bench.script("ssh", &STAND_IN.replace("echo \"Welcome", "sleep 3; echo \"Welcome"));
    bench.file("file", 100_000);
    let run = bench.haul(["cp", "-S", ssh.to_str().unwrap(), "file", "far:"]).expect(0);
    assert!(verdict(&run).starts_with("limited by the login: connecting took "), "{}", run.stderr);
}

/// Threads that never rest on a processor, until it is dropped.
struct Crowd {
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Crowd {
    /// So many on the first processor that this process may use; returns its number too.
    fn gather(number: usize) -> (Self, usize) {
        let allowed = sched_getaffinity(None).unwrap();
        let processor = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let spin = |_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                sched_setaffinity(None, &only(processor)).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..number).map(spin).collect();
        (Self { is_over, threads }, processor)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn only(processor: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(processor);
    set
}

/// A daemon that leaves its one processor to whoever else wants it: its threads are ready to run nearly all the time, whichever way the data goes.
#[test]
fn a_machine_without_a_processor_to_spare_is_named() {
    let _turn = turn();
    let (_server, client, daemon) = daemon();
    client.file("mine", SIZE);
    let (_crowd, processor) = Crowd::gather(2);
    for task in fs::read_dir(format!("/proc/{}/task", daemon.child.id())).unwrap() {
        let thread = Pid::from_raw(task.unwrap().file_name().to_str().unwrap().parse().unwrap());
        sched_setaffinity(thread, &only(processor)).unwrap();
        setpriority_process(thread, 19).unwrap();
    }
    let run = client.haul(["cp", "mine", &daemon.url("in/")]).expect(0);
    eprintln!("{}", run.stderr);
    assert!(verdict(&run).starts_with("limited by the target's processor"), "{}", run.stderr);
    let run = client.haul(["cp", &daemon.url("in/mine"), "got"]).expect(0);
    eprintln!("{}", run.stderr);
    assert!(verdict(&run).starts_with("limited by the source's processor"), "{}", run.stderr);
}
