//! The servers of a job: all that come up, or as many as have come, and those that are still on their way.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use haul_fleet::{Absent, Fleet, Members, StartError, start_bringing};
use haul_peer::Tell;
use haul_units::{BitRate, Cancel};
use serde_json::json;

use super::kept;
use super::start::{NOBODY, absence, bring_up, spec};
use crate::args::{HostsArgs, JobArgs, KeptArgs};
use crate::exit::Failure;
use crate::interrupt;
use crate::meanwhile::User;
use crate::output::{self, JobTally, Style};

fn tally(job: &JobArgs, style: Style) -> Arc<JobTally> {
    // From here on times count.
    let tally = Arc::new(JobTally::new(job.verbose > 0 || style == Style::Json));
    if style == Style::Json {
        output::print_event(&json!({ "event": "start", "version": env!("CARGO_PKG_VERSION") }));
    }
    tally
}

/// A fleet that is up, as far as it came.
pub fn started(kept: &KeptArgs, hosts: &HostsArgs, job: &JobArgs, style: Style) -> Result<(Fleet, Arc<JobTally>), Failure> {
    let tally = tally(job, style);
    let mut absent = |absent: &Absent| tally.absent(&absent.name, &absent.why);
    let mut fleet = match &kept.name {
        Some(name) => kept::join(name, &mut absent)?,
        None => bring_up(&spec(hosts, job)?, &mut absent)?,
    };
    for member in &mut fleet.members {
        member.limit = least(member.limit, job);
    }
    Ok((fleet, tally))
}

/// What is asked of a server at most.
fn least(own: Option<BitRate>, job: &JobArgs) -> Option<BitRate> {
    own.into_iter().chain(job.limit_each.map(|limit| limit.0)).min()
}

/// A fleet of which somebody is up.
pub struct Begun {
    pub members: Members,
    pub names: Vec<String>,
    pub coming: Coming,
    pub tally: Arc<JobTally>,
}

/// Those that are still to come.
#[derive(Default)]
pub struct Coming {
    /// Ends the wait for them.
    enough: Cancel,
    starting: Option<thread::JoinHandle<Result<(), StartError>>>,
    /// Who does not come.
    absent: Arc<Mutex<Vec<String>>>,
}

impl Begun {
    /// Waits for the first.
    pub fn of(kept: &KeptArgs, hosts: &HostsArgs, job: &JobArgs, style: Style) -> Result<Self, Failure> {
        if kept.name.is_some() {
            let absent: Arc<Mutex<Vec<String>>> = Arc::default();
            let tally = tally(job, style);
            let mut fleet = kept::join(kept.name.as_deref().unwrap_or_default(), &mut |left_out| {
                tally.absent(&left_out.name, &left_out.why);
                absent.lock().unwrap_or_else(PoisonError::into_inner).push(left_out.name.clone());
            })?;
            for member in &mut fleet.members {
                member.limit = least(member.limit, job);
            }
            let names = fleet.members.iter().map(|member| member.name.clone()).collect();
            let coming = Coming { absent, ..Coming::default() };
            return Ok(Self { members: fleet.members.into(), names, coming, tally });
        }
        let tally = tally(job, style);
        let mut spec = spec(hosts, job)?;
        for host in &mut spec.hosts {
            host.limit = least(host.limit, job);
        }
        let names: Vec<String> = spec.hosts.iter().map(|host| host.name.clone()).collect();
        let (mut members, bring) = Members::to_come(names.clone());
        let mut coming = Coming::default();
        let stop = coming.enough.clone();
        let hook = interrupt::cancel().on_cancel(move || stop.cancel());
        let (enough, names_absent, told) = (coming.enough.clone(), coming.absent.clone(), tally.clone());
        coming.starting = Some(thread::spawn(move || {
            let _hook = hook;
            let tell: Arc<dyn Tell> = Arc::new(User);
            start_bringing(&spec, &tell, &enough, &bring, &|left_out: Absent| {
                names_absent.lock().unwrap_or_else(PoisonError::into_inner).push(left_out.name.clone());
                let why = left_out.why.to_string();
                told.left_out(&left_out.name.clone(), why, absence(left_out));
            })
        }));
        if !members.wait_for_one() {
            coming.end()?;
            if interrupt::requested() {
                return Err(StartError::Interrupted.into());
            }
            tally.print_absent();
            return Err(Failure::new(NOBODY));
        }
        Ok(Self { members, names, coming, tally })
    }
}

impl Coming {
    /// Waits for nobody any more; who did not come.
    pub fn end(self) -> Result<Vec<String>, Failure> {
        self.enough.cancel();
        match self.starting.map(thread::JoinHandle::join) {
            // Those that were still to come are not wanted.
            None | Some(Ok(Ok(()) | Err(StartError::Interrupted))) => {}
            Some(Ok(Err(error))) => return Err(error.into()),
            Some(Err(_)) => return Err(Failure::new("what starts the servers has failed")),
        }
        if interrupt::requested() {
            return Ok(Vec::new());
        }
        Ok(std::mem::take(&mut *self.absent.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
