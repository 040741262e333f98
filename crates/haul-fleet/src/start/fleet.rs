//! A fleet is started: who is there, and who is not.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use haul_peer::{GuestMemory, Tell};
use haul_units::{BitRate, Bytes, Cancel};

use super::direct;
use super::error::{AbsentError, Report, StartError};
use super::gather::gather;
use super::hosts::HostSpec;
use super::messages::By;
use super::spec::{StartSpec, Way};
use crate::clock;
use crate::member::{Bringing, Member};

/// Hosts that are tried as the representative: several that are gone are more likely one fault of the way to all of them.
const REPRESENTATIVES: usize = 3;
/// The part of this machine's memory for what members have sent and nobody has written yet: one half, as a daemon gives its clients.
const PART_OF_MEMORY: u64 = 2;
/// What each member gets where that is less than anything can work with: two blocks of the usual size.
const LEAST: Bytes = Bytes::mib(2);

/// What came of it.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Members that are connected, in the order of the hosts.
    pub members: Vec<Member>,
    /// Hosts that are not, and why.
    pub absent: Vec<Absent>,
}

/// A host that is not among the members.
#[derive(Debug)]
pub struct Absent {
    /// Which.
    pub name: String,
    /// Why.
    pub why: AbsentError,
}

/// Starts a fleet: returns when all hosts are members or will not be. Hosts named by `haul://` are daemons whatever the way.
pub fn start(spec: &StartSpec, tell: &Arc<dyn Tell>, cancel: &Cancel) -> Result<Fleet, StartError> {
    let outcomes: Mutex<Vec<Option<Result<Member, AbsentError>>>> = Mutex::new(spec.hosts.iter().map(|_| None).collect());
    let came = |index: usize, outcome| {
        if let Some(slot) = outcomes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
            *slot = Some(outcome);
        }
    };
    start_each(spec, tell, cancel, &came)?;
    let silent = || Err(AbsentError::Silent { waited: spec.timeout });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let fleet = Fleet::of(&spec.hosts, outcomes.map(|outcome| outcome.unwrap_or_else(silent)).collect());
    fleet.share_memory(spec.transport.memory);
    Ok(fleet)
}

/// Starts a fleet for a job that begins with the first who is there: each member is brought when it has come, and for each host that does not come `absent` says why. Returns when no more come.
pub fn start_bringing(
    spec: &StartSpec,
    tell: &Arc<dyn Tell>,
    cancel: &Cancel,
    bring: &Bringing,
    absent: &(dyn Fn(Absent) + Sync),
) -> Result<(), StartError> {
    // A part for each, whoever comes: those that are there do not know how many will.
    let memory = part_of_memory(spec.hosts.len(), spec.transport.memory);
    let bring = Mutex::new(bring.clone());
    let came = |index: usize, outcome| {
        let Some(host) = spec.hosts.get(index) else { return };
        let bring = bring.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(member) => {
                let member = of_host(host, member);
                member.connection.set_memory(memory);
                bring.came(index, member);
            }
            Err(why) => {
                absent(Absent { name: host.name.clone(), why });
                bring.is_absent(index);
            }
        }
    };
    start_each(spec, tell, cancel, &came)
}

/// Starts a fleet; says of each host what becomes of it, as soon as that is known.
fn start_each(spec: &StartSpec, tell: &Arc<dyn Tell>, cancel: &Cancel, report: &Report<'_>) -> Result<(), StartError> {
    if spec.hosts.is_empty() {
        return Err(StartError::NoHosts);
    }
    let by = match spec.way {
        Way::SshDirect | Way::Daemon => None,
        Way::Ssh => Some(By::Ssh),
        Way::Mpirun => Some(By::Mpirun),
        Way::Srun => Some(By::Srun),
    };
    let (mut apart, mut direct) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for (at, host) in spec.hosts.iter().enumerate() {
        let (places, hosts) = if by.is_some() && !host.daemon { &mut apart } else { &mut direct };
        places.push(at);
        hosts.push(host.clone());
    }
    let at = |places: &[usize], index: usize| places.get(index).copied().unwrap_or(usize::MAX);
    let gathered = thread::scope(|scope| {
        scope.spawn(|| direct::reach(spec, &direct.1, tell, cancel, &|index, outcome| report(at(&direct.0, index), outcome)));
        let report = |index, outcome| report(at(&apart.0, index), outcome);
        by.filter(|_| !apart.1.is_empty()).map(|by| called_back(spec, by, &apart.1, tell, cancel, &report)).transpose()
    });
    gathered?;
    if cancel.is_cancelled() { Err(StartError::Interrupted) } else { Ok(()) }
}

/// What one of so many members may fill of this machine's memory; no more than `most`.
fn part_of_memory(members: usize, most: Bytes) -> Bytes {
    GuestMemory::part_of_machine(PART_OF_MEMORY).window(members).unwrap_or(LEAST).min(most)
}

fn of_host(host: &HostSpec, member: Member) -> Member {
    Member { path: host.path.clone(), limit: host.limit, ..member }
}

/// Starts hosts by a starter. Where the representative itself is not there, the next host takes its place.
fn called_back(
    spec: &StartSpec,
    by: By,
    hosts: &[HostSpec],
    tell: &Arc<dyn Tell>,
    cancel: &Cancel,
    report: &Report<'_>,
) -> Result<(), StartError> {
    let deadline = clock::now() + spec.timeout;
    let mut tried = 0;
    loop {
        let rest = hosts.get(tried..).unwrap_or_default();
        let left = deadline.saturating_duration_since(clock::now());
        let came = |index: usize, member| report(tried + index, Ok(member));
        let missing = gather(&StartSpec { timeout: left, ..spec.clone() }, by, rest, tell, cancel, &came)?;
        let no_starter = |(index, why): &(usize, AbsentError)| *index == 0 || matches!(why, AbsentError::NoStarter { .. });
        let is_first_gone = by == By::Ssh && rest.len() > 1 && missing.len() == rest.len() && missing.iter().all(no_starter);
        let is_last = !is_first_gone || tried + 1 == REPRESENTATIVES;
        for (index, why) in missing.into_iter().filter(|(index, _)| is_last || *index == 0) {
            report(tried + index, Err(why));
        }
        if is_last {
            return Ok(());
        }
        tried += 1;
        tracing::debug!("the next host is the representative");
    }
}

impl Fleet {
    fn of(hosts: &[HostSpec], outcomes: Vec<Result<Member, AbsentError>>) -> Self {
        let mut fleet = Self::default();
        for (host, outcome) in hosts.iter().zip(outcomes) {
            match outcome {
                Ok(member) => fleet.members.push(of_host(host, member)),
                Err(why) => fleet.absent.push(Absent { name: host.name.clone(), why }),
            }
        }
        fleet
    }

    /// All members together may fill no more than a part of this machine's memory, however many they are; each has no more than `most`.
    pub(crate) fn share_memory(&self, most: Bytes) {
        let each = part_of_memory(self.members.len(), most);
        self.members.iter().for_each(|member| member.connection.set_memory(each));
    }

    /// Asks each member for so much at most, where it is not asked for less already.
    pub fn limit_each(&mut self, limit: Option<BitRate>) {
        for member in &mut self.members {
            member.limit = least(member.limit, limit);
        }
    }

    /// Lets all members end.
    pub fn part(self) {
        self.members.into_iter().for_each(Member::part);
    }
}

/// What is asked of a server at most, where two say so.
pub(super) fn least(one: Option<BitRate>, other: Option<BitRate>) -> Option<BitRate> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use haul_peer::Nobody;

    use super::*;

    #[test]
    fn the_lower_of_two_limits_counts() {
        let rate = |mbps| Some(BitRate::mbps(mbps));
        assert_eq!(least(rate(2), rate(1)), rate(1));
        assert_eq!(least(None, rate(1)), rate(1));
        assert_eq!(least(None, None), None);
    }

    #[test]
    fn a_host_that_nobody_knows_is_named_and_left_out() {
        let hosts = HostSpec::list("haul://no-such-host.invalid,haul://neither.invalid").expect("hosts");
        let dir = tempfile::tempdir().expect("a directory");
        let spec = StartSpec { state: Some(dir.path().to_owned()), ..StartSpec::new(hosts) };
        let nobody: Arc<dyn Tell> = Arc::new(Nobody);
        let fleet = start(&spec, &nobody, &Cancel::new()).expect("it was tried");
        assert!(fleet.members.is_empty());
        let names: Vec<_> = fleet.absent.iter().map(|absent| &*absent.name).collect();
        assert_eq!(names, ["no-such-host.invalid", "neither.invalid"]);
        assert!(matches!(start(&StartSpec::new(Vec::new()), &nobody, &Cancel::new()), Err(StartError::NoHosts)));
    }
}
