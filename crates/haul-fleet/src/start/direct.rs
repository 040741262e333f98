//! The client reaches each host itself: by ssh, or where a daemon runs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use haul_peer::{Connector, Host, ReachError, SshError, Tell};
use haul_units::Cancel;

use super::error::{AbsentError, Report};
use super::hosts::HostSpec;
use super::named::Named;
use super::spec::{FAN_OUT, StartSpec, Way};
use crate::clock;
use crate::member::Member;

/// How often to look for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// How long those who are told to give up may take to say so.
const GIVING_UP: Duration = Duration::from_secs(2);

/// Logins under way at once, whatever the hosts: each is a process, with the work of a key exchange.
const AT_ONCE: usize = 64;

/// Whose turn it is: the first that waits and whose machine is not asked by [`FAN_OUT`] others already.
struct Turns {
    /// The machine of each host: what has one name is one.
    machines: Vec<String>,
    waiting: VecDeque<usize>,
    asked: HashMap<String, usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Of(usize),
    /// All that wait are at machines that are asked by enough others.
    Later,
    /// Nobody waits.
    Over,
}

impl Turns {
    fn of(hosts: &[HostSpec]) -> Self {
        let machines: Vec<String> = hosts.iter().map(|host| host.host.to_ascii_lowercase()).collect();
        Self { waiting: (0..machines.len()).collect(), machines, asked: HashMap::new() }
    }

    fn next(&mut self) -> Turn {
        if self.waiting.is_empty() {
            return Turn::Over;
        }
        let is_free = |host: &usize| self.asked.get(&self.machines[*host]).is_none_or(|asked| *asked < FAN_OUT);
        let Some(host) = self.waiting.iter().position(is_free).and_then(|at| self.waiting.remove(at)) else { return Turn::Later };
        *self.asked.entry(self.machines[host].clone()).or_default() += 1;
        Turn::Of(host)
    }

    fn done(&mut self, host: usize) {
        if let Some(asked) = self.asked.get_mut(&self.machines[host]) {
            *asked -= 1;
        }
    }
}

/// Reaches these hosts, some at a time; says what comes of each, by its place among them.
pub(super) fn reach(spec: &StartSpec, hosts: &[HostSpec], tell: &Arc<dyn Tell>, cancel: &Cancel, told: &Report<'_>) {
    let give_up = Cancel::new();
    let deadline = clock::now() + spec.timeout;
    let turns = Arc::new(Mutex::new(Turns::of(hosts)));
    let (report, reports) = mpsc::channel();
    let connectors: Arc<Vec<(Connector, Host)>> =
        Arc::new(hosts.iter().map(|host| connector(spec, host, tell, &give_up)).collect());
    for _ in 0..hosts.len().min(AT_ONCE) {
        let (turns, report, give_up, connectors) = (Arc::clone(&turns), report.clone(), give_up.clone(), Arc::clone(&connectors));
        thread::spawn(move || {
            let lock = || turns.lock().unwrap_or_else(PoisonError::into_inner);
            while !give_up.is_cancelled() {
                let turn = lock().next();
                let next = match turn {
                    Turn::Of(next) => next,
                    Turn::Later => {
                        thread::park_timeout(LOOK);
                        continue;
                    }
                    Turn::Over => return,
                };
                let Some((connector, host)) = connectors.get(next) else { return };
                let result = connector.connect(host);
                lock().done(next);
                // Whoever waits has given up if nobody hears it; the connection ends with the value.
                let _ = report.send((next, result));
            }
        });
    }
    drop(report);
    let silent = || Err(AbsentError::Silent { waited: spec.timeout });
    let mut waiting: HashSet<usize> = (0..hosts.len()).collect();
    let mut until = deadline;
    while !waiting.is_empty() {
        match reports.recv_timeout(LOOK) {
            Ok((index, result)) => {
                let Some(host) = hosts.get(index).filter(|_| waiting.remove(&index)) else { continue };
                let outcome = match result {
                    // It was told to give up because its time was over.
                    Err(ReachError::Interrupted | ReachError::Ssh(SshError::Interrupted)) if !cancel.is_cancelled() => silent(),
                    result => result.map(|connected| Member::reached(&host.name, connected)).map_err(AbsentError::from),
                };
                told(index, outcome);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if !give_up.is_cancelled() && (cancel.is_cancelled() || clock::now() >= deadline) {
            give_up.cancel();
            until = clock::now() + GIVING_UP;
        }
        if give_up.is_cancelled() && clock::now() >= until {
            break;
        }
    }
    for index in waiting {
        told(index, silent());
    }
}

fn connector(spec: &StartSpec, host: &HostSpec, tell: &Arc<dyn Tell>, cancel: &Cancel) -> (Connector, Host) {
    let mut ssh = spec.ssh.clone();
    if spec.hosts.len() > 1 {
        // Nobody can answer several questions for a password at once. What the user has set comes before it, and so counts.
        ssh.option.push("BatchMode=yes".into());
    }
    let connector = Connector {
        ssh,
        udp_port: spec.udp_port,
        state: spec.state.clone(),
        transport: spec.transport.clone(),
        data: host.data.clone(),
        tell: Arc::new(Named::new(&host.name, tell)),
        cancel: cancel.clone(),
        ..Connector::new(haul_copy::PROTOCOL)
    };
    let way = if spec.way == Way::Daemon { HostSpec { daemon: true, ..host.clone() }.reach() } else { host.reach() };
    (connector, way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_machines_are_asked_at_once_and_one_machine_by_few() {
        let names = |prefix: &str, count: usize| (0..count).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>().join(",");
        let mut turns = Turns::of(&HostSpec::list(&names("node", 20)).expect("hosts"));
        assert!((0..20).all(|host| turns.next() == Turn::Of(host)) && turns.next() == Turn::Over);

        let same = (0..10).map(|n| format!("one:/disk{n}")).collect::<Vec<_>>().join(",") + ",other";
        let mut turns = Turns::of(&HostSpec::list(&same).expect("hosts"));
        assert!((0..FAN_OUT).all(|host| turns.next() == Turn::Of(host)));
        assert_eq!((turns.next(), turns.next()), (Turn::Of(10), Turn::Later));
        turns.done(0);
        assert_eq!((turns.next(), turns.next()), (Turn::Of(FAN_OUT), Turn::Later));
    }
}
