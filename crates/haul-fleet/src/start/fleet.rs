//! A fleet is started: who is there, and who is not.

use std::sync::Arc;

use haul_peer::Tell;
use haul_units::Cancel;

use super::direct;
use super::error::{AbsentError, StartError};
use super::hosts::HostSpec;
use super::spec::StartSpec;
use crate::member::Member;

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
    let outcomes = direct::reach(spec, &spec.hosts, tell, cancel);
    if cancel.is_cancelled() {
        return Err(StartError::Interrupted);
    }
    Ok(Fleet::of(&spec.hosts, outcomes))
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
