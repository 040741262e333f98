//! `haul perf mesh`: every ordered pair of a list of hosts, haul against TCP.
//!
//! ```text
//!   this machine --ssh--> each site: haul perf -s
//!   for each pair, never two at once on a site:  --ssh--> from: haul perf -c to (haul), then the same with --tcp
//! ```

mod hosts;
mod matrix;
mod page;
mod remote;

use std::fs;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul_peer::quoted_word;

use self::hosts::{Site, sites};
use self::matrix::{Matrix, Pair, Run, megabits};
use self::remote::{Server, measure};
use crate::args::MeshArgs;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// What a measurement may take beyond its own time: a login, a handshake, the last word.
const OVERHEAD: Duration = Duration::from_secs(60);

/// Runs the command.
pub fn run(args: &MeshArgs) -> Result<Exit, Failure> {
    let sites = sites(&args.hosts)?;
    let servers: Vec<Result<Server, Failure>> = start_servers(&sites, args);
    let names = sites.iter().map(|site| site.name.clone()).collect();
    let mesh = Mesh {
        args,
        sites: &sites,
        servers: &servers,
        state: Mutex::new(State {
            matrix: Matrix::new(names, args.mode.to_string(), args.congestion.clone()),
            waiting: pairs(sites.len()),
            busy: vec![false; sites.len()],
        }),
        freed: Condvar::new(),
    };
    thread::scope(|scope| {
        for _ in 0..args.at_once.clamp(1, sites.len() / 2) {
            scope.spawn(|| mesh.work());
        }
    });
    let matrix = mesh.state.into_inner().unwrap_or_else(PoisonError::into_inner).matrix;
    drop(servers);
    write_files(&matrix, args)?;
    output::out_lines(&matrix.text());
    output::print_out("");
    let all = sites.len() * (sites.len() - 1);
    Ok(match matrix.measured() {
        _ if interrupt::requested() => Exit::Interrupted,
        0 => Exit::Failed,
        some if some < all => Exit::Partial,
        _ => Exit::Done,
    })
}

/// One a site, all at once; a site without one is left out of the measurements, not the mesh.
fn start_servers(sites: &[Site], args: &MeshArgs) -> Vec<Result<Server, Failure>> {
    let started = thread::scope(|scope| {
        let starting: Vec<_> = sites
            .iter()
            .map(|site| scope.spawn(|| Server::start(site, &args.ssh.options(false, false), args.server_port)))
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::new("starting it failed"))))
            .collect::<Vec<_>>()
    });
    for (site, server) in sites.iter().zip(&started) {
        if let Err(failure) = server {
            output::print_error(&format!("{}: {}", site.name, failure.message));
        }
    }
    started
}

/// Every ordered pair, so that neighbours in the list have different hosts where they can.
fn pairs(count: usize) -> Vec<(usize, usize)> {
    let mut pairs: Vec<_> = (1..count).flat_map(|step| (0..count).map(move |from| (from, (from + step) % count))).collect();
    // They are taken from the end.
    pairs.reverse();
    pairs
}

struct Mesh<'a> {
    args: &'a MeshArgs,
    sites: &'a [Site],
    servers: &'a [Result<Server, Failure>],
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
    fn work(&self) {
        loop {
            let (from, to) = {
                let mut state = self.lock();
                loop {
                    if state.waiting.is_empty() || interrupt::requested() {
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
            output::print_line(&self.progress(from, to, &measured, state.waiting.len()));
            // What the user has cut short was not tried.
            if !(measured.is_err() && interrupt::requested()) {
                state.matrix.cells[from][to] = Some(measured);
            }
            (state.busy[from], state.busy[to]) = (false, false);
            drop(state);
            self.freed.notify_all();
        }
    }

    fn progress(&self, from: usize, to: usize, measured: &Result<Pair, String>, left: usize) -> String {
        let what = match measured {
            Ok(pair) => format!("{:.2} ({} / {} Mbit/s)", pair.ratio(), megabits(pair.haul.rate), megabits(pair.tcp.rate)),
            Err(why) => format!("x ({why})"),
        };
        format!("{} to {}: {what}, {left} left", self.sites[from].name, self.sites[to].name)
    }

    fn pair(&self, from: usize, to: usize) -> Result<Pair, String> {
        let args = self.args;
        let server =
            self.servers[to].as_ref().map_err(|failure| format!("no server at {}: {}", self.sites[to].name, failure.message))?;
        if let Err(failure) = &self.servers[from] {
            return Err(format!("{} is not reached: {}", self.sites[from].name, failure.message));
        }
        let common = format!(
            "-t {} -O {} -i {} -P {}",
            args.time.as_secs_f64(),
            args.omit.as_secs_f64(),
            args.interval.as_secs_f64(),
            args.parallel
        );
        let limit = args.time + args.omit + OVERHEAD;
        let one = |options: &str, what: &str| {
            let document = measure(&self.sites[from], &args.ssh.options(false, false), server, options, limit)
                .map_err(|why| format!("{what}: {why}"))?;
            Run::from_json(&document).ok_or_else(|| format!("{what}: its results make no sense"))
        };
        let haul = one(&format!("{common} --mode {}", quoted_word(&args.mode.to_string())), "haul")?;
        let tcp = one(&format!("{common} --tcp --congestion {}", quoted_word(&args.congestion)), "TCP")?;
        Ok(Pair { haul, tcp })
    }
}

fn write_files(matrix: &Matrix, args: &MeshArgs) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(&matrix.json()).unwrap_or_default() + "\n";
    for (ending, content) in [("csv", matrix.csv()), ("json", json), ("html", page::page(matrix))] {
        let mut path = args.out.clone().into_os_string();
        path.push(format!(".{ending}"));
        fs::write(&path, content)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint("name another place with --out PREFIX"))?;
        output::print_line(&format!("wrote {}", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ordered_pair_once_and_never_two_at_one_site() {
        let mut state =
            State { matrix: Matrix::new(Vec::new(), String::new(), String::new()), waiting: pairs(6), busy: vec![false; 6] };
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
