//! Runs programs in lanes and collects what they say. A program that fails stops nothing.

use std::collections::VecDeque;
use std::io::{Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs::File, io};

use super::lanes::{Lane, Plan, at_once};
use super::programs::{Program, cargo};

/// What came of a program.
#[derive(Debug)]
pub struct Ended {
    pub name: String,
    pub lane: Lane,
    pub success: bool,
    /// Its exit status in words.
    pub how: String,
    /// All that it said, both ways in the order of its writing.
    pub output: String,
    pub took: Duration,
}

/// Programs that wait take turns with each other, so that two are under way; a third would be one more that wants the cores at the wrong moment.
const WAITING_AT_ONCE: usize = 2;

/// How far programs that only want the processor stand back behind those that watch real time.
const STANDING_BACK: &str = "10";

/// Runs them all; each one's output is printed whole as it ends.
pub fn all(plan: &Plan, environment: &[(&'static str, PathBuf)]) -> Vec<Ended> {
    let ended = Mutex::new(Vec::new());
    let lane = |lane: Lane, queue: &Mutex<VecDeque<Program>>| {
        while let Some(program) = next(queue) {
            let one = one(&program, lane, environment);
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            println!("\n== {} ({}, {:.1} s)\n{}", one.name, one.how, one.took.as_secs_f64(), one.output.trim_end());
            ended.push(one);
        }
    };
    let (processor, waiting, alone) = (plan.queue(Lane::Processor), plan.queue(Lane::Waiting), plan.queue(Lane::Alone));
    std::thread::scope(|scope| {
        scope.spawn(|| lane(Lane::Processor, &processor));
        for _ in 0..WAITING_AT_ONCE {
            scope.spawn(|| lane(Lane::Waiting, &waiting));
        }
    });
    lane(Lane::Alone, &alone);
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next(queue: &Mutex<VecDeque<Program>>) -> Option<Program> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

pub fn one(program: &Program, lane: Lane, environment: &[(&'static str, PathBuf)]) -> Ended {
    let clock = Clock::start();
    let (status, output) = match collect(command(program, lane).envs(environment.iter().map(|(name, path)| (name, path)))) {
        Ok((status, output)) => (Some(status), output),
        Err(error) => (None, format!("cannot run {}: {error}", program.run.join(" "))),
    };
    let how = status.map_or_else(|| "not run".to_owned(), |status| status.to_string());
    let success = status.is_some_and(|status| status.success());
    Ended { name: program.name.clone(), lane, success, how, output, took: clock.elapsed() }
}

fn command(program: &Program, lane: Lane) -> Command {
    let (first, rest) = program.run.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let first = if first == "cargo" { cargo().get_program().to_owned() } else { first.into() };
    let mut command = match lane {
        Lane::Processor => Command::new("nice"),
        Lane::Waiting | Lane::Alone => Command::new(&first),
    };
    if lane == Lane::Processor {
        command.args(["-n", STANDING_BACK]).arg(&first);
    }
    if let Some(tests) = at_once(&program.name) {
        command.env("RUST_TEST_THREADS", tests.to_string()).env("HAUL_E2E_AT_ONCE", tests.to_string());
    }
    command.args(rest).current_dir(&program.dir).stdin(Stdio::null());
    command
}

/// Both of its outputs go to one file, not to a pipe: what a test leaves behind may hold a pipe open for ever.
fn collect(command: &mut Command) -> io::Result<(ExitStatus, String)> {
    let mut file = scratch()?;
    let status = command.stdout(file.try_clone()?).stderr(file.try_clone()?).status()?;
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

/// A file without a name.
fn scratch() -> io::Result<File> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("xtask-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Time since a start.
pub struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "says how long programs took")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> Program {
        let run = ["sh", "-c", script].map(String::from).to_vec();
        Program { name: name.into(), run, dir: std::env::temp_dir() }
    }

    #[test]
    fn a_failure_stops_nothing_and_keeps_its_words() {
        let programs = vec![
            shell("haul-cc/simulated", "echo before; echo beside >&2; echo after; exit 3"),
            shell("e2e/kills", "echo $HAUL_BIN"),
            shell("hostile/strangers", "exit 0"),
            shell("unknown/one", "kill -9 $$"),
            Program { name: "unknown/two".into(), run: vec!["/nonexistent".into()], dir: std::env::temp_dir() },
        ];
        let mut ended = all(&Plan::of(programs), &[("HAUL_BIN", "/t/haul".into())]);
        ended.sort_by(|one, other| one.name.cmp(&other.name));
        let found: Vec<_> = ended.iter().map(|one| (one.name.as_str(), one.success, one.output.trim())).collect();
        assert_eq!(found[0], ("e2e/kills", true, "/t/haul"));
        assert_eq!(found[1], ("haul-cc/simulated", false, "before\nbeside\nafter"));
        assert_eq!(found[2], ("hostile/strangers", true, ""));
        assert_eq!((found[3].0, found[3].1), ("unknown/one", false));
        assert_eq!((found[4].0, found[4].1), ("unknown/two", false));
        assert!(ended[3].how.contains('9') && ended[1].how.contains('3'), "{ended:?}");
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let ended = all(&Plan::of(vec![shell("e2e/lab", "sleep 30 & echo $!")]), &[]);
        let left = ended[0].output.trim().to_owned();
        assert!(Command::new("kill").arg(&left).status().is_ok_and(|status| status.success()), "{left} was waited for");
    }
}
