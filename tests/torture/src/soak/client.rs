//! The honest clients: each sends a tree of its own to its daemon, fetches it again, compares all three, removes what was copied, and begins anew.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Host, Random, Running, Stopwatch, pause};
use rustix::process::Signal;

use super::Plan;
use super::ground::{Ground, at_home, haul_on, home};
use super::reading::Watch;

/// A client's tree: so much, and a few small files beside it.
const LARGE_BYTES: std::ops::Range<u64> = 256 << 10..3 << 20;
const SMALL_FILES: u64 = 12;
/// How often a client looks at its copy.
const LOOK: Duration = Duration::from_millis(25);
/// A run that takes longer hangs: the longest timer of haul's is 90 s, and all clients share the link.
const LONGEST: Duration = Duration::from_secs(240);
/// After a kill the daemon may believe for some seconds that the old copy is under way; so often the command is typed again.
const AGAIN: u32 = 10;
const BEFORE_AGAIN: Duration = Duration::from_secs(2);
/// What a client says that has not got through to the daemon in 5 s: it can only be called again.
const NOT_REACHED: [&str; 2] = ["no answer over UDP", "handshake was not completed in time"];

/// A copy that was brought to its end and compared.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Since the start of the soak.
    pub began: Duration,
    /// The same.
    pub ended: Duration,
    /// What it copied.
    pub bytes: u64,
}

/// All of them.
pub struct Clients {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    stop: AtomicBool,
    runs: AtomicU64,
    not_reached: AtomicU64,
    not_reached_in_peace: AtomicU64,
    under_way: Vec<Mutex<UnderWay>>,
    done: Mutex<Vec<Done>>,
    failure: Mutex<Option<String>>,
}

/// A client's copy.
#[derive(Default)]
struct UnderWay {
    copy: Option<Running>,
    /// Whether it was killed since it was last started undisturbed.
    killed: bool,
}

/// One client.
struct Client {
    host: Host,
    home: PathBuf,
    place: PathBuf,
    url: String,
    bytes: u64,
}

impl Clients {
    /// Starts them all.
    pub fn start(plan: &Plan, ground: &Ground, watch: &Arc<Watch>) -> Self {
        let mut random = Random::new(plan.seed ^ 0x50a4);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            not_reached: AtomicU64::new(0),
            not_reached_in_peace: AtomicU64::new(0),
            under_way: (0..plan.clients).map(|_| Mutex::default()).collect(),
            done: Mutex::default(),
            failure: Mutex::default(),
        });
        let threads = (0..plan.clients).map(|number| {
            let home = home(ground.scratch(), number);
            let source = home.join("source");
            fs::create_dir(&source).expect("making a tree");
            fs::create_dir(home.join("down")).expect("making a directory");
            tree::write_random(&source.join("large"), random.within(LARGE_BYTES), &mut random);
            tree::make_many(&source.join("small"), SMALL_FILES, &mut random);
            let bytes = tree::data_bytes(&source);
            let place = ground.scratch().join("exported").join(number.to_string());
            let client = Client { host: ground.near(), home, place, url: ground.url(number), bytes };
            let (shared, watch) = (Arc::clone(&shared), Arc::clone(watch));
            thread::spawn(move || {
                let live = || client.live(number, &shared, &watch);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(live)) {
                    let words =
                        panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a client's thread panicked".to_owned());
                    lock(&shared.failure).get_or_insert(format!("client {number}: {words}"));
                }
            })
        });
        let threads = threads.collect();
        Self { shared, threads: Mutex::new(threads) }
    }

    /// kill -9 of the copy of one of them; false if it had none.
    pub fn kill(&self, which: u64) -> bool {
        let mut under_way = lock(&self.shared.under_way[which as usize % self.shared.under_way.len()]);
        let UnderWay { copy, killed } = &mut *under_way;
        let Some(copy) = copy.as_mut() else { return false };
        let runs = copy.runs();
        if runs {
            copy.signal(Signal::KILL);
            *killed = true;
        }
        runs
    }

    /// Runs of the program; how many of them did not reach the daemon within their 5 s, and how many of those in windows without faults.
    pub fn runs(&self) -> (u64, u64, u64) {
        let Shared { runs, not_reached, not_reached_in_peace, .. } = &*self.shared;
        (runs.load(Ordering::Relaxed), not_reached.load(Ordering::Relaxed), not_reached_in_peace.load(Ordering::Relaxed))
    }

    /// The first thing that was wrong.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.failure).clone()
    }

    /// Lets all come to the end of what they do, and tells what was done.
    pub fn finish(&self) -> Vec<Done> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
        lock(&self.shared.done).clone()
    }
}

impl Client {
    /// Until it is told to stop; panics where something is wrong.
    fn live(&self, number: usize, shared: &Shared, watch: &Watch) {
        let (source, down) = (self.home.join("source"), self.home.join("down"));
        let (up, back) = (self.place.join("source"), down.join("source"));
        let url = format!("{}/source", self.url);
        while !shared.stop.load(Ordering::Relaxed) {
            for (from, to, arrived) in [(path(&source), self.url.clone() + "/", &up), (url.clone(), path(&down), &back)] {
                let began = watch.elapsed();
                self.copy(number, &from, &to, shared, watch);
                let ended = watch.elapsed();
                tree::assert_same(&source, arrived, Exactness::Everything);
                lock(&shared.done).push(Done { began, ended, bytes: self.bytes });
            }
            for (place, copied) in [(&self.place, &up), (&down, &back)] {
                assert_eq!(tree::names(place), ["source"], "something was left beside the copy");
                fs::remove_dir_all(copied).expect("removing what was copied");
            }
        }
    }

    /// Brings one copy to its end, however often it is killed.
    fn copy(&self, number: usize, from: &str, to: &str, shared: &Shared, windows: &Watch) {
        let mut again = 0;
        loop {
            let mut command = at_home(haul_on(&self.host), &self.home);
            command.args(["cp", "-rpq", from, to]);
            shared.runs.fetch_add(1, Ordering::Relaxed);
            lock(&shared.under_way[number]).copy = Some(Running::start(command));
            let (watch, began) = (Stopwatch::start(), windows.elapsed());
            let finished = loop {
                let mut under_way = lock(&shared.under_way[number]);
                // Reaped under the lock, so that nobody signals a process that has its number by then.
                if !under_way.copy.as_mut().is_some_and(Running::runs) || watch.elapsed() > LONGEST {
                    break under_way.copy.take().expect("it was started").wait(Duration::from_secs(1));
                }
                drop(under_way);
                pause(LOOK);
            };
            let killed = lock(&shared.under_way[number]).killed;
            assert!(!finished.stderr.contains("panicked at"), "{finished}");
            if finished.code == Some(0) {
                lock(&shared.under_way[number]).killed = false;
                return;
            }
            again += 1;
            let not_reached = NOT_REACHED.iter().any(|words| finished.stderr.contains(words));
            if not_reached {
                shared.not_reached.fetch_add(1, Ordering::Relaxed);
                shared.not_reached_in_peace.fetch_add(u64::from(!windows.had_faults_since(began)), Ordering::Relaxed);
            }
            assert!(killed || not_reached, "it failed, and nobody had killed it: {finished}");
            assert!(again < AGAIN, "not done after {again} runs: {finished}");
            pause(BEFORE_AGAIN);
        }
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
