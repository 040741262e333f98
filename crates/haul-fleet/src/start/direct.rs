//! The client reaches each host itself: by ssh, or where a daemon runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use haul_peer::{Connector, Host, ReachError, SshError, Tell};
use haul_units::Cancel;

use super::error::AbsentError;
use super::hosts::HostSpec;
use super::named::Named;
use super::spec::{FAN_OUT, StartSpec, Way};
use crate::clock;
use crate::member::Member;

/// How often to look for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// How long those who are told to give up may take to say so.
const GIVING_UP: Duration = Duration::from_secs(2);

/// Reaches these hosts, some at a time; what came of each, in their order.
pub(super) fn reach(
    spec: &StartSpec,
    hosts: &[HostSpec],
    tell: &Arc<dyn Tell>,
    cancel: &Cancel,
) -> Vec<Result<Member, AbsentError>> {
    let give_up = Cancel::new();
    let deadline = clock::now() + spec.timeout;
    let waiting: Arc<Mutex<VecDeque<usize>>> = Arc::new(Mutex::new((0..hosts.len()).collect()));
    let (report, reports) = mpsc::channel();
    let connectors: Arc<Vec<(Connector, Host)>> =
        Arc::new(hosts.iter().map(|host| connector(spec, host, tell, &give_up)).collect());
    for _ in 0..hosts.len().min(FAN_OUT) {
        let (waiting, report, give_up, connectors) =
            (Arc::clone(&waiting), report.clone(), give_up.clone(), Arc::clone(&connectors));
        thread::spawn(move || {
            while !give_up.is_cancelled() {
                let Some(next) = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { return };
                let Some((connector, host)) = connectors.get(next) else { return };
                // Whoever waits has given up if nobody hears it; the connection ends with the value.
                let _ = report.send((next, connector.connect(host)));
            }
        });
    }
    drop(report);
    let silent = || Err(AbsentError::Silent { waited: spec.timeout });
    let mut outcomes: Vec<Option<Result<Member, AbsentError>>> = hosts.iter().map(|_| None).collect();
    let mut until = deadline;
    while outcomes.iter().any(Option::is_none) {
        match reports.recv_timeout(LOOK) {
            Ok((index, result)) => {
                let (Some(host), Some(outcome)) = (hosts.get(index), outcomes.get_mut(index)) else { continue };
                *outcome = Some(match result {
                    // It was told to give up because its time was over.
                    Err(ReachError::Interrupted | ReachError::Ssh(SshError::Interrupted)) if !cancel.is_cancelled() => silent(),
                    result => result.map(|connected| Member::reached(&host.name, connected)).map_err(AbsentError::from),
                });
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
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(silent)).collect()
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
