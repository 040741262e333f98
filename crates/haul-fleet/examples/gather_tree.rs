//! Starts a fleet and fetches a source, parts or replicas of which its members have.
//!
//! `cargo run -p haul-fleet --example gather_tree -- WAY HOSTS SOURCE TARGET`, with WAY one of ssh-direct, ssh, mpirun, srun, daemon.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use haul_fleet::{GetJob, HostSpec, JobReport, Member, StartSpec, Unwatched, get, start};
use haul_peer::{Nobody, Tell};
use haul_units::Cancel;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [way, hosts, source, target] = words.as_slice() else { return Err("usage: gather WAY HOSTS SOURCE TARGET".into()) };
    let spec = StartSpec { way: way.parse()?, ..StartSpec::new(HostSpec::list(hosts)?) };
    let tell: Arc<dyn Tell> = Arc::new(Nobody);
    let fleet = start(&spec, &tell, &Cancel::new())?;
    let report = gather(fleet.members, source.as_ref(), target.as_ref())?;
    for member in &report.members {
        println!("{}: {}", member.name, member.delivered);
    }
    println!("{} files, {}, {} problems", report.files.files, report.files.bytes, report.files.problem_count);
    Ok(())
}

/// Fetches one source from all members that have it, or some of it.
pub fn gather(members: Vec<Member>, source: &Path, target: &Path) -> Result<JobReport, Box<dyn Error>> {
    let mut job = GetJob::new(vec![source.to_owned()], target);
    job.options.recursive = true;
    Ok(get(members, &job, &Unwatched, &Cancel::new())?)
}
