//! Starts a fleet, and fetches a tree from each of its members, all at once.
//!
//! `cargo run --example start_fleet -- WAY HOSTS [ssh=CONFIG] [timeout=SECONDS] [idle=SECONDS] [from=PATH to=DIR] [dial-out] [on=HOST] [arg=WORD] [wait]`
//!
//! WAY is ssh-direct, ssh, mpirun, srun or daemon. Who is there and who is not comes out as a line of JSON each; with `wait`, what is to be fetched is fetched when a line is read.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_copy::{ClientSession, Job};
use haul_files::{Destination, Filter, Options, PullJob, Silent};
use haul_fleet::{HostSpec, Member, StartSpec, start};
use haul_peer::{Nobody, SshHost, Tell};
use haul_units::Cancel;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(way), Some(hosts)) = (words.next(), words.next()) else { return Err("which way, and which hosts?".into()) };
    let mut spec = StartSpec { way: way.parse()?, ..StartSpec::new(HostSpec::list(&hosts)?) };
    let (mut from, mut to, mut wait) = (None, None, false);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((&word, ""));
        match key {
            "ssh" => spec.ssh.config = Some(value.into()),
            "timeout" => spec.timeout = Duration::from_secs(value.parse()?),
            "idle" => spec.transport.idle_timeout = Duration::from_secs(value.parse()?),
            "from" => from = Some(value.to_owned()),
            "to" => to = Some(value.to_owned()),
            "dial-out" => spec.dial_out = true,
            "call-back" => spec.call_back.push(value.parse()?),
            "on" => spec.launcher.on = Some(SshHost::parse(value.as_ref())?),
            "arg" => spec.launcher.arguments.push(value.into()),
            "haul" => spec.ssh.remote_haul = Some(value.into()),
            "wait" => wait = true,
            _ => return Err(format!("{word}: what is that?").into()),
        }
    }
    let tell: Arc<dyn Tell> = Arc::new(Nobody);
    let fleet = start(&spec, &tell, &Cancel::new())?;
    for absent in &fleet.absent {
        println!("{}", json!({ "event": "absent", "name": absent.name, "why": absent.why.to_string() }));
    }
    for member in &fleet.members {
        println!("{}", json!({ "event": "up", "name": member.name, "at": member.connection.remote_addr().to_string() }));
    }
    println!("{}", json!({ "event": "started", "members": fleet.members.len() }));
    if wait {
        io::stdin().read_line(&mut String::new())?;
    }
    let (Some(from), Some(to)) = (from, to) else {
        fleet.part();
        return Ok(());
    };
    thread::scope(|scope| {
        for member in fleet.members {
            let (from, to) = (&from, Path::new(&to));
            scope.spawn(move || fetch(member, from, to));
        }
    });
    Ok(())
}

fn fetch(member: Member, from: &str, to: &Path) {
    let options = Options { recursive: true, ..Options::default() };
    let job = Job::Pull(PullJob {
        sources: vec![from.into()],
        destination: Destination::Path(to.join(&member.name)),
        options,
        filter: Filter::default(),
    });
    let done = ClientSession::new(member.connection.clone(), &job).run(&job, None, &Silent, &Cancel::new());
    let told = match done {
        Ok(report) if report.problem_count == 0 => {
            json!({ "event": "fetched", "name": member.name, "files": report.files, "bytes": report.bytes.as_u64() })
        }
        Ok(report) => json!({ "event": "failed", "name": member.name, "why": format!("{} problems", report.problem_count) }),
        Err(error) => json!({ "event": "failed", "name": member.name, "why": error.to_string() }),
    };
    println!("{told}");
    member.part();
}
