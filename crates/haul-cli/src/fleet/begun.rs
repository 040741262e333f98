//! The servers of a job: all that come up, or as many as have come, and those that are still on their way.

use std::sync::Arc;

use haul_fleet::{Absent, Coming, Fleet, Members};
use haul_peer::Tell;
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
    fleet.limit_each(job.limit_each());
    Ok((fleet, tally))
}

/// A fleet of which somebody is up.
pub struct Begun {
    pub members: Members,
    pub names: Vec<String>,
    pub coming: Coming,
    pub tally: Arc<JobTally>,
}

impl Begun {
    /// Waits for the first.
    pub fn of(kept: &KeptArgs, hosts: &HostsArgs, job: &JobArgs, style: Style) -> Result<Self, Failure> {
        let tally = tally(job, style);
        if let Some(name) = &kept.name {
            let mut absent = Vec::new();
            let mut fleet = kept::join(name, &mut |left_out| {
                tally.absent(&left_out.name, &left_out.why);
                absent.push(left_out.name.clone());
            })?;
            fleet.limit_each(job.limit_each());
            let names = fleet.members.iter().map(|member| member.name.clone()).collect();
            return Ok(Self { members: fleet.members.into(), names, coming: Coming::over(absent), tally });
        }
        let spec = spec(hosts, job)?;
        let names: Vec<String> = spec.hosts.iter().map(|host| host.name.clone()).collect();
        let (told, tell): (_, Arc<dyn Tell>) = (Arc::clone(&tally), Arc::new(User));
        let begun = Coming::start(spec, job.limit_each(), &tell, interrupt::cancel(), move |left_out: Absent| {
            let why = left_out.why.to_string();
            told.left_out(&left_out.name.clone(), why, absence(left_out));
        })?;
        let Some((members, coming)) = begun else {
            output::print_absent(&tally);
            return Err(Failure::new(NOBODY));
        };
        Ok(Self { members, names, coming, tally })
    }
}
