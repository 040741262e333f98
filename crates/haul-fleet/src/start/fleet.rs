//! A fleet is started: who is there, and who is not.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use haul_peer::{GuestMemory, Tell};
use haul_units::{Bytes, Cancel};

use super::direct;
use super::error::{AbsentError, StartError};
use super::gather::gather;
use super::hosts::HostSpec;
use super::spec::{StartSpec, Way};
use super::words::By;
use crate::clock;
use crate::member::Member;

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
    if spec.hosts.is_empty() {
        return Err(StartError::NoHosts);
    }
    let by = match spec.way {
        Way::SshDirect | Way::Daemon => None,
        Way::Ssh => Some(By::Ssh),
        Way::Mpirun => Some(By::Mpirun),
        Way::Srun => Some(By::Srun),
    };
    let (apart, direct): (Vec<&HostSpec>, Vec<&HostSpec>) = spec.hosts.iter().partition(|host| by.is_some() && !host.daemon);
    let (apart, direct): (Vec<_>, Vec<_>) = (apart.into_iter().cloned().collect(), direct.into_iter().cloned().collect());
    let (direct_outcomes, gathered) = thread::scope(|scope| {
        let direct = scope.spawn(|| direct::reach(spec, &direct, tell, cancel));
        let gathered = by.filter(|_| !apart.is_empty()).map(|by| called_back(spec, by, &apart, tell, cancel)).transpose();
        (direct.join().unwrap_or_default(), gathered)
    });
    let mut outcomes: HashMap<String, Result<Member, AbsentError>> = HashMap::new();
    let names = direct.iter().chain(&apart).map(|host| host.name.clone());
    outcomes.extend(names.zip(direct_outcomes.into_iter().chain(gathered?.unwrap_or_default())));
    if cancel.is_cancelled() {
        return Err(StartError::Interrupted);
    }
    let silent = || Err(AbsentError::Silent { waited: spec.timeout });
    let outcomes = spec.hosts.iter().map(|host| outcomes.remove(&host.name).unwrap_or_else(silent)).collect();
    let fleet = Fleet::of(&spec.hosts, outcomes);
    fleet.share_memory(spec.transport.memory);
    Ok(fleet)
}

/// Starts hosts by a starter. Where the representative itself is not there, the next host takes its place.
fn called_back(
    spec: &StartSpec,
    by: By,
    hosts: &[HostSpec],
    tell: &Arc<dyn Tell>,
    cancel: &Cancel,
) -> Result<Vec<Result<Member, AbsentError>>, StartError> {
    let deadline = clock::now() + spec.timeout;
    let mut outcomes = Vec::new();
    let mut rest = hosts;
    loop {
        let left = deadline.saturating_duration_since(clock::now());
        let mut came = gather(&StartSpec { timeout: left, ..spec.clone() }, by, rest, tell, cancel)?;
        let no_starter = |outcome: &Result<Member, AbsentError>| matches!(outcome, Err(AbsentError::NoStarter { .. }));
        let is_first_gone = by == By::Ssh && came.len() > 1 && came.iter().skip(1).all(no_starter);
        if !is_first_gone || outcomes.len() + 1 == REPRESENTATIVES {
            outcomes.append(&mut came);
            return Ok(outcomes);
        }
        outcomes.push(came.swap_remove(0));
        rest = rest.get(1..).unwrap_or_default();
        tracing::debug!("the next host is the representative");
    }
}

impl Fleet {
    fn of(hosts: &[HostSpec], outcomes: Vec<Result<Member, AbsentError>>) -> Self {
        let mut fleet = Self::default();
        for (host, outcome) in hosts.iter().zip(outcomes) {
            match outcome {
                Ok(member) => fleet.members.push(Member { path: host.path.clone(), limit: host.limit, ..member }),
                Err(why) => fleet.absent.push(Absent { name: host.name.clone(), why }),
            }
        }
        fleet
    }

    /// All members together may fill no more than a part of this machine's memory, however many they are; each has no more than `most`.
    pub(crate) fn share_memory(&self, most: Bytes) {
        let each = GuestMemory::part_of_machine(PART_OF_MEMORY).window(self.members.len()).unwrap_or(LEAST);
        self.members.iter().for_each(|member| member.connection.set_memory(each.min(most)));
    }

    /// Lets all members end.
    pub fn part(self) {
        self.members.into_iter().for_each(Member::part);
    }
}

#[cfg(test)]
mod tests {
    use haul_peer::Nobody;

    use super::*;

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
