//! Every ordered pair of a list of hosts, haul against TCP.
//!
//! ```text
//!   this machine --ssh--> each site: haul perf -s
//!   for each pair, never two at once on a site:  --ssh--> from: haul perf -c to (haul), then the same with --tcp
//! ```
//!
//! The sites need haul; what is said about it there is in [`haul_peer::SshOptions`].

mod files;
mod hosts;
mod matrix;
mod page;
mod remote;
mod table;

pub use self::files::{FilesError, ResultFiles};
pub use self::hosts::{NotAHost, Site, SitesError, sites, ssh_host};
pub use self::matrix::{Cell, Matrix, MatrixDocument, Measured, Pair, PairRecord, Run, RunRecord};
pub use self::page::megabits;
pub use self::remote::{PairError, RunError, StartError};
pub use self::table::table;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_peer::{SshOptions, quoted_word};
use haul_units::Cancel;

use self::remote::Server;
use crate::plan::{Amount, MAX_TIME, Plan, PlanError};
use crate::sample::micros;

/// What a measurement may take beyond its own time: a login, a handshake, the last word.
const OVERHEAD: Duration = Duration::from_secs(60);

/// What is measured of each pair, and how; the defaults are those of `haul perf mesh`.
#[derive(Debug, Clone)]
pub struct MeshSettings {
    /// Length of each measurement; 10 s unless it is said.
    pub time: Duration,
    /// Time at the beginning of each that does not count; none unless it is said.
    pub omit: Duration,
    /// Time between two points of the series; 1 s unless it is said.
    pub interval: Duration,
    /// Streams in parallel; 1 unless it is said.
    pub parallel: u16,
    /// haul's congestion control.
    pub mode: ControllerChoice,
    /// Another one of TCP's, as `haul tcp` brings it: TCP with it takes haul's place. None unless it is said.
    pub tcp_mode: Option<String>,
    /// TCP's; cubic unless it is said.
    pub congestion: String,
    /// Port of the servers, UDP and TCP; any free one for 0, the default.
    pub server_port: u16,
    /// Pairs measured at once, of different hosts; 1 unless it is said, for sites may share a link.
    pub at_once: usize,
    /// How ssh is called.
    pub ssh: SshOptions,
}

impl Default for MeshSettings {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            omit: Duration::ZERO,
            interval: Duration::from_secs(1),
            parallel: 1,
            mode: ControllerChoice::default(),
            tcp_mode: None,
            congestion: "cubic".to_owned(),
            server_port: 0,
            at_once: 1,
            ssh: SshOptions::default(),
        }
    }
}

impl MeshSettings {
    /// Whether they can be followed: what no client would do is known before anything is started.
    pub fn check(&self) -> Result<(), PlanError> {
        let plan = Plan {
            streams: self.parallel,
            amount: Amount::Time(micros(self.time)),
            omit_us: micros(self.omit),
            // As with `haul perf`: no reports but the last.
            interval_us: micros(if self.interval.is_zero() { MAX_TIME } else { self.interval }),
            ..Plan::default()
        };
        plan.check(MAX_TIME)
    }

    /// The longest measurement that the servers are to allow.
    fn longest(&self) -> Duration {
        self.time + self.omit
    }

    /// What is measured beside TCP, and its mode.
    fn measured(&self) -> Measured {
        match &self.tcp_mode {
            None => Measured { transport: "haul", mode: self.mode.to_string() },
            Some(congestion) => Measured { transport: "tcp", mode: congestion.clone() },
        }
    }
}

/// Hears of a mesh while it is measured, in several threads.
pub trait MeshListener: Sync {
    /// There is no server at a site: its pairs will not be measured.
    fn no_server(&self, site: &Site, why: &StartError);
    /// A pair has been tried; so many are left.
    fn tried(&self, from: &Site, to: &Site, measured: &Result<Pair, PairError>, left: usize);
}

/// Nobody hears of it.
impl MeshListener for () {
    fn no_server(&self, _site: &Site, _why: &StartError) {}
    fn tried(&self, _from: &Site, _to: &Site, _measured: &Result<Pair, PairError>, _left: usize) {}
}

/// Measures every ordered pair. Once `cancel` is cancelled what is under way is cut short, and the rest is not tried.
pub fn measure(sites: &[Site], settings: &MeshSettings, cancel: &Cancel, listener: &impl MeshListener) -> Matrix {
    let servers = start_servers(sites, settings, listener);
    let names = sites.iter().map(|site| site.name.clone()).collect();
    let mesh = Mesh {
        settings,
        sites,
        servers: &servers,
        cancel,
        state: Mutex::new(State {
            matrix: Matrix::new(names, settings.measured(), settings.congestion.clone()),
            waiting: pairs(sites.len()),
            busy: vec![false; sites.len()],
        }),
        freed: Condvar::new(),
    };
    thread::scope(|scope| {
        for _ in 0..settings.at_once.min(sites.len() / 2).max(1) {
            scope.spawn(|| mesh.work(listener));
        }
    });
    mesh.state.into_inner().unwrap_or_else(PoisonError::into_inner).matrix
}

/// One a site, all at once; a site without one is left out of the measurements, not the mesh.
fn start_servers(sites: &[Site], settings: &MeshSettings, listener: &impl MeshListener) -> Vec<Result<Server, Arc<StartError>>> {
    let started = thread::scope(|scope| {
        let starting: Vec<_> = sites
            .iter()
            .map(|site| scope.spawn(|| Server::start(site, &settings.ssh, settings.server_port, settings.longest())))
            .collect();
        starting.into_iter().map(|thread| thread.join().unwrap_or(Err(StartError::Lost))).collect::<Vec<_>>()
    });
    for (site, server) in sites.iter().zip(&started) {
        if let Err(why) = server {
            listener.no_server(site, why);
        }
    }
    started.into_iter().map(|server| server.map_err(Arc::new)).collect()
}

/// Every ordered pair, so that neighbours in the list have different hosts where they can.
fn pairs(count: usize) -> Vec<(usize, usize)> {
    let mut pairs: Vec<_> = (1..count).flat_map(|step| (0..count).map(move |from| (from, (from + step) % count))).collect();
    // They are taken from the end.
    pairs.reverse();
    pairs
}

struct Mesh<'a> {
    settings: &'a MeshSettings,
    sites: &'a [Site],
    servers: &'a [Result<Server, Arc<StartError>>],
    cancel: &'a Cancel,
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    matrix: Matrix,
    waiting: Vec<(usize, usize)>,
    /// Sites that take part in a measurement.
    busy: Vec<bool>,
}

impl State {
    /// A pair of which neither site is busy; both are then.
    fn take(&mut self) -> Option<(usize, usize)> {
        let index = self.waiting.iter().rposition(|&(from, to)| !self.busy[from] && !self.busy[to])?;
        let (from, to) = self.waiting.remove(index);
        (self.busy[from], self.busy[to]) = (true, true);
        Some((from, to))
    }
}

impl Mesh<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures pairs until there are none left.
    fn work(&self, listener: &impl MeshListener) {
        loop {
            let (from, to) = {
                let mut state = self.lock();
                loop {
                    if state.waiting.is_empty() || self.cancel.is_cancelled() {
                        return;
                    }
                    if let Some(pair) = state.take() {
                        break pair;
                    }
                    let waited = self.freed.wait_timeout(state, Duration::from_millis(200));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            };
            let measured = self.pair(from, to);
            let mut state = self.lock();
            listener.tried(&self.sites[from], &self.sites[to], &measured, state.waiting.len());
            // What was cut short was not tried.
            if !(measured.is_err() && self.cancel.is_cancelled()) {
                state.matrix.cells[from][to] = Some(measured);
            }
            (state.busy[from], state.busy[to]) = (false, false);
            drop(state);
            self.freed.notify_all();
        }
    }

    fn pair(&self, from: usize, to: usize) -> Result<Pair, PairError> {
        let settings = self.settings;
        let name = |site: usize| self.sites[site].name.clone();
        let server = match &self.servers[to] {
            Ok(server) => server,
            Err(why) => return Err(PairError::NoServer { site: name(to), why: Arc::clone(why) }),
        };
        if let Err(why) = &self.servers[from] {
            return Err(PairError::NotReached { site: name(from), why: Arc::clone(why) });
        }
        let common = format!(
            "-t {} -O {} -i {} -P {}",
            settings.time.as_secs_f64(),
            settings.omit.as_secs_f64(),
            settings.interval.as_secs_f64(),
            settings.parallel
        );
        let limit = settings.longest() + OVERHEAD;
        let one = |options: &str, what: &'static str| {
            let document = remote::measure(&self.sites[from], &settings.ssh, server, options, limit, self.cancel);
            document
                .and_then(|document| Run::from_json(&document).ok_or(RunError::Nonsense))
                .map_err(|why| PairError::Run { what, why })
        };
        let over_tcp = |congestion: &str| format!("{common} --tcp --congestion {}", quoted_word(congestion));
        let haul = match &settings.tcp_mode {
            None => one(&format!("{common} --mode {}", quoted_word(&settings.mode.to_string())), "haul")?,
            Some(congestion) => one(&over_tcp(congestion), "TCP in haul's mode")?,
        };
        let tcp = one(&over_tcp(&settings.congestion), "TCP")?;
        Ok(Pair { haul, tcp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_client_would_do_is_known_before() {
        let settings = MeshSettings::default;
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        for sound in [
            settings(),
            MeshSettings { interval: Duration::ZERO, ..settings() },
            MeshSettings { time: hours(2), omit: hours(1), ..settings() },
        ] {
            assert_eq!(sound.check(), Ok(()));
        }
        for wrong in [
            MeshSettings { parallel: 0, ..settings() },
            MeshSettings { interval: Duration::from_millis(1), ..settings() },
            MeshSettings { time: Duration::ZERO, ..settings() },
            MeshSettings { time: hours(23), omit: hours(2), ..settings() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_ordered_pair_once_and_never_two_at_one_site() {
        let mut state = State {
            matrix: Matrix::new(Vec::new(), MeshSettings::default().measured(), String::new()),
            waiting: pairs(6),
            busy: vec![false; 6],
        };
        let mut distinct = state.waiting.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() == 30 && distinct.iter().all(|(from, to)| from != to));
        let taken: Vec<_> = std::iter::from_fn(|| state.take()).collect();
        let mut hosts: Vec<_> = taken.iter().flat_map(|&(from, to)| [from, to]).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, [0, 1, 2, 3, 4, 5], "three pairs at once, no site in two: {taken:?}");
        let (from, to) = taken[0];
        (state.busy[from], state.busy[to]) = (false, false);
        let next = state.take();
        assert!(next.is_none_or(|pair| pair == (to, from)), "{next:?}");
    }
}
