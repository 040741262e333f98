//! The soak: a daemon that serves for an hour, honest clients that copy both ways again and again, and everything else that comes to a daemon meanwhile.
//!
//! ```text
//!   seed -> cycle: | calm | strangers | strangers | calm | calm | strangers | strangers | calm | faults |  and again
//!             calm       the clients alone
//!             strangers  hundreds at the port, random datagrams without end
//!             faults     clients killed, another daemon killed and started again, outages, strangers too
//! ```
//! What crosses the clients' link with strangers at the daemon is a ratio to what crosses it without, in the same run: the machine, the links and the clients are the same. Nothing but theirs goes over that link. The phases are
//! short and take turns, each kind as often before the other as after it, so that a machine that becomes slower or has more to do harms both alike.
//!
//! One daemon serves most clients and lives as long as the run, so that its memory can be watched; a second one serves the others and is killed now and then.

mod client;
mod ground;
mod reading;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use e2e::{Random, eventually, pause};
use haul_units::BitRate;
use hostile::Readings;

use self::client::{Clients, Done};
use self::ground::Ground;
use self::reading::{Sample, Watch};
use crate::journal::Journal;

/// How a soak is made.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Decides everything but the time that it takes.
    pub seed: u64,
    /// How long, cycles that have begun not cut short.
    pub time: Duration,
    /// Honest clients.
    pub clients: usize,
    /// What the clients share. Half a hundred of them that fill 100 Mbit/s with small trees keep two processors busy.
    pub rate: BitRate,
    /// How long each kind of window lasts in a cycle; the first two have it in `PAIRS` phases.
    pub window: Duration,
    /// Strangers in their window.
    pub strangers: usize,
}

/// What happens in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Window {
    /// The clients alone.
    Calm,
    /// And strangers.
    Strangers,
    /// And faults.
    Faults,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Copies that ended well and were compared.
    pub copies: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Runs of the program for them, those that were killed included.
    pub runs: u64,
    /// Those of them that did not reach the daemon within the 5 s that they try, and those outside of windows with faults.
    pub not_reached: [u64; 2],
    /// Clients that were killed.
    pub client_kills: u64,
    /// Kills of the daemon that is there for that.
    pub daemon_kills: u64,
    /// Times without a link.
    pub outages: u64,
    /// Random datagrams that were sent to the daemons.
    pub garbage: u64,
    /// Attempts of strangers that had their end, at most at once.
    pub strangers: usize,
    /// Bytes a second of the honest clients in each kind of window, from what was copied.
    pub rates: [(Window, f64); 3],
    /// Bytes a second on their link in calm phases and in those with strangers, and each pair's ratio.
    pub carried: Carried,
    /// The largest memory of the steady daemon in each quarter of the run, in bytes.
    pub memory_quarters: [u64; 4],
    /// The most threads and descriptors of it in each quarter.
    pub threads_quarters: [u64; 4],
    /// The same.
    pub descriptors_quarters: [u64; 4],
    /// When everybody had gone.
    pub at_rest: (u64, u64, u64),
    /// How long the run took.
    pub seconds: f64,
}

impl Outcome {
    /// Honest throughput with strangers, of that without, over the whole run.
    pub fn ratio(&self) -> f64 {
        self.carried.strangers / self.carried.calm.max(1.0)
    }

    /// For people, and for the repository.
    pub fn table(&self, plan: &Plan) -> String {
        let mib = |bytes: u64| bytes >> 20;
        let mut text = String::new();
        text.push_str("| what | figure |\n|---|---|\n");
        let mut row = |what: &str, figure: String| {
            let _ = writeln!(text, "| {what} | {figure} |");
        };
        row("seed, time, clients, their link", format!("{}, {:.0} s, {}, {}", plan.seed, self.seconds, plan.clients, plan.rate));
        row(
            "copies that were compared",
            format!("{} ({} MiB), in {} runs of the program", self.copies, mib(self.bytes), self.runs),
        );
        let [not_reached, in_peace] = self.not_reached;
        row("runs that did not reach a daemon in 5 s", format!("{not_reached}, {in_peace} of them where there were no faults"));
        row(
            "kills, outages",
            format!("{} of clients, {} of the second daemon; {} outages", self.client_kills, self.daemon_kills, self.outages),
        );
        row("strangers, garbage", format!("{} at a time; {} random datagrams", self.strangers, self.garbage));
        for (window, rate) in self.rates {
            row(&format!("honest clients, {window:?}").to_lowercase(), format!("{:.2} MB/s", rate / 1e6));
        }
        let Carried { calm, strangers, pairs } = &self.carried;
        row("their link, calm and with strangers", format!("{:.2} and {:.2} MB/s", calm / 1e6, strangers / 1e6));
        let (least, most) = pairs.iter().fold((f64::MAX, 0.0_f64), |(least, most), &pair| (least.min(pair), most.max(pair)));
        row(
            "with strangers, of without",
            format!(
                "{:.0} %; {:.0} to {:.0} % in {} pairs of phases",
                self.ratio() * 100.0,
                least.min(most) * 100.0,
                most * 100.0,
                pairs.len()
            ),
        );
        row("memory of the daemon, most in each quarter", format!("{:?} MiB", self.memory_quarters.map(mib)));
        row("threads, the same", format!("{:?}", self.threads_quarters));
        row("descriptors, the same", format!("{:?}", self.descriptors_quarters));
        let (rss, threads, descriptors) = self.at_rest;
        row("at rest afterwards", format!("{} MiB, {threads} threads, {descriptors} descriptors", mib(rss)));
        text
    }
}

/// Soaks; nothing where namespaces cannot be made. Panics where a copy is wrong, fails without having been disturbed, or leaves something behind.
pub fn soak(plan: &Plan) -> Option<Outcome> {
    let journal = Journal::begin(plan.seed);
    let mut random = Random::new(plan.seed);
    let mut ground = Ground::lay_out(plan, &journal)?;
    let watch = Arc::new(Watch::start(ground.steady()));
    let clients = Clients::start(plan, &ground, &watch);
    let mut tally = Tally::default();
    let end = plan.time;
    while watch.elapsed() < end {
        // A seed of its own each: what happened in one cycle does not change the next.
        let mut random = Random::new(random.number());
        for window in cycle() {
            watch.enter(window);
            tally.live(window, plan, &mut ground, &clients, &journal, &mut random);
            if let Some(failure) = clients.failure() {
                panic!("{failure}; seed {}; the daemon said: {}", plan.seed, ground.last_words());
            }
            journal.note(&watch.line(window));
        }
        ground.heal();
    }
    watch.leave();
    let seconds = watch.elapsed().as_secs_f64();
    let done = clients.finish();
    if let Some(failure) = clients.failure() {
        panic!("{failure}; seed {}; the daemon said: {}", plan.seed, ground.last_words());
    }
    let at_rest = ground.assert_nothing_left();
    let outcome = tally.outcome(&done, &watch, &clients, at_rest, seconds);
    journal.note(&format!("{outcome:?}"));
    Some(outcome)
}

/// The windows of a cycle, in pairs of which every other one begins with strangers.
fn cycle() -> Vec<Window> {
    let pair = |number: u32| {
        if number.is_multiple_of(2) { [Window::Calm, Window::Strangers] } else { [Window::Strangers, Window::Calm] }
    };
    (0..PAIRS).flat_map(pair).chain([Window::Faults]).collect()
}

/// What crossed the clients' link.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Carried {
    /// Bytes a second in calm phases.
    pub calm: f64,
    /// In those with strangers.
    pub strangers: f64,
    /// The ratio of each pair.
    pub pairs: Vec<f64>,
}

impl Carried {
    /// Of phases that come in pairs: bytes, and seconds.
    fn of(phases: &[(Window, f64, f64)]) -> Self {
        let rate = |phases: &[(Window, f64, f64)], window| {
            let of = || phases.iter().filter(|(of, ..)| *of == window);
            let (bytes, seconds): (f64, f64) = (of().map(|phase| phase.1).sum(), of().map(|phase| phase.2).sum());
            bytes / seconds.max(f64::EPSILON)
        };
        let both = |phases| (rate(phases, Window::Calm), rate(phases, Window::Strangers));
        let (calm, strangers) = both(phases);
        let ratio = |pair| {
            let (calm, strangers) = both(pair);
            strangers / calm.max(1.0)
        };
        Self { calm, strangers, pairs: phases.chunks_exact(2).map(ratio).collect() }
    }
}

/// What was done to them.
#[derive(Debug, Default)]
struct Tally {
    /// Windows without faults: what crossed the clients' link, and in how many seconds.
    phases: Vec<(Window, f64, f64)>,
    client_kills: u64,
    daemon_kills: u64,
    outages: u64,
    garbage: u64,
    strangers: usize,
}

impl Tally {
    /// One window, from its beginning to its end.
    fn live(
        &mut self,
        window: Window,
        plan: &Plan,
        ground: &mut Ground,
        clients: &Clients,
        journal: &Journal,
        random: &mut Random,
    ) {
        match window {
            Window::Calm => self.measured(window, plan, ground, |_, _, time| pause(time)),
            Window::Strangers => {
                ground.invite(plan.strangers);
                self.measured(window, plan, ground, |tally, ground, time| tally.throw_garbage(ground, time, random));
                self.strangers = self.strangers.max(ground.strangers_that_tried());
                ground.dismiss();
            }
            Window::Faults => {
                ground.invite(plan.strangers / 2);
                for _ in 0..FAULTS {
                    self.fault(ground, clients, journal, random);
                    pause(plan.window / FAULTS / 2);
                }
                ground.dismiss();
            }
        }
    }

    /// A phase in which `live` lasts as long as it is told to. What was under way before it has a fifth of it to come to its end.
    fn measured(
        &mut self,
        window: Window,
        plan: &Plan,
        ground: &mut Ground,
        mut live: impl FnMut(&mut Self, &mut Ground, Duration),
    ) {
        let phase = plan.window / PAIRS;
        live(self, ground, phase / 5);
        let (before, watch) = (ground.carried_bytes(), e2e::Stopwatch::start());
        live(self, ground, phase * 4 / 5);
        let (bytes, seconds) = (ground.carried_bytes() - before, watch.elapsed().as_secs_f64());
        self.phases.push((window, bytes as f64, seconds));
    }

    fn throw_garbage(&mut self, ground: &Ground, time: Duration, random: &mut Random) {
        let watch = e2e::Stopwatch::start();
        while watch.elapsed() < time {
            self.garbage += ground.throw_garbage(GARBAGE_AT_ONCE, random);
            pause(GARBAGE_EVERY);
        }
    }

    fn fault(&mut self, ground: &mut Ground, clients: &Clients, journal: &Journal, random: &mut Random) {
        match random.within(0..4) {
            0 | 1 => {
                let count = random.within(1..6);
                for _ in 0..count {
                    self.client_kills += u64::from(clients.kill(random.number()));
                }
                journal.note(&format!("kill -9 of up to {count} clients"));
            }
            2 => {
                self.daemon_kills += 1;
                journal.note("kill -9 of the second daemon");
                ground.restart_the_other();
            }
            _ => {
                let time = random.millis(500..6000);
                self.outages += 1;
                journal.note(&format!("no link for {time:?}"));
                ground.outage(time);
            }
        }
    }

    fn outcome(&self, done: &[Done], watch: &Watch, clients: &Clients, at_rest: Readings, seconds: f64) -> Outcome {
        let (runs, not_reached, in_peace) = clients.runs();
        let quarter = |most: fn(&Sample) -> u64| watch.quarters(most);
        Outcome {
            copies: done.len() as u64,
            bytes: done.iter().map(|done| done.bytes).sum(),
            runs,
            not_reached: [not_reached, in_peace],
            client_kills: self.client_kills,
            daemon_kills: self.daemon_kills,
            outages: self.outages,
            garbage: self.garbage,
            strangers: self.strangers,
            rates: [Window::Calm, Window::Strangers, Window::Faults].map(|window| (window, watch.rate(window, done))),
            carried: Carried::of(&self.phases),
            memory_quarters: quarter(|sample| sample.readings.rss_bytes),
            threads_quarters: quarter(|sample| sample.readings.threads),
            descriptors_quarters: quarter(|sample| sample.readings.descriptors),
            at_rest: (at_rest.rss_bytes, at_rest.threads, at_rest.descriptors),
            seconds,
        }
    }
}

/// Panics unless the figures are those of a daemon that could go on for ever. A run of a few minutes on a machine that does other things cannot tell: only its copies count.
pub fn assert_steady(outcome: &Outcome) {
    let [_, second, _, last] = outcome.memory_quarters;
    assert!(last <= second + second / 10, "memory grows: {:?} bytes", outcome.memory_quarters);
    let [_, second, _, last] = outcome.threads_quarters;
    assert!(last <= second + second / 10 + 4, "threads grow: {:?}", outcome.threads_quarters);
    let [_, second, _, last] = outcome.descriptors_quarters;
    assert!(last <= second + second / 10 + 8, "descriptors grow: {:?}", outcome.descriptors_quarters);
    let [_, in_peace] = outcome.not_reached;
    assert!(
        in_peace <= outcome.runs / 100,
        "{in_peace} of {} runs did not reach the daemon, and nothing was in their way",
        outcome.runs
    );
    assert!(outcome.ratio() >= 0.8, "with strangers {:.0} % of the throughput is left", outcome.ratio() * 100.0);
}

/// Waits for what has to become so.
fn becomes(what: &str, condition: impl FnMut() -> bool) {
    assert!(eventually(PATIENCE, condition), "{what}");
}

/// Longer than any timer of haul's.
const PATIENCE: Duration = Duration::from_secs(150);
/// Calm phases in a cycle, and as many with strangers.
const PAIRS: u32 = 4;
/// Faults in a window.
const FAULTS: u32 = 4;
/// 1000 datagrams a second of 700 bytes on average: 6 Mbit/s, not enough to fill the daemon's link.
const GARBAGE_AT_ONCE: u64 = 20;
const GARBAGE_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_phase_is_as_often_first() {
        let windows = cycle();
        let (phases, faults) = windows.split_at(2 * PAIRS as usize);
        assert_eq!(faults, [Window::Faults]);
        assert!(phases.chunks(2).all(|pair| pair[0] != pair[1]), "{windows:?}");
        let first = |window| phases.chunks(2).filter(|pair| pair[0] == window).count();
        assert_eq!(first(Window::Calm), first(Window::Strangers));
    }

    #[test]
    fn the_ratio_is_of_the_whole_run() {
        let phases = [
            (Window::Calm, 100.0, 10.0),
            (Window::Strangers, 30.0, 10.0),
            (Window::Strangers, 180.0, 10.0),
            (Window::Calm, 200.0, 20.0),
        ];
        let carried = Carried::of(&phases);
        assert_eq!((carried.calm, carried.strangers), (10.0, 10.5));
        assert_eq!(carried.pairs, [0.3, 1.8]);
    }
}
