//! The servers that the arguments name, and their start.

use std::env;
use std::sync::Arc;

use haul::TransportConfig;
use haul_fleet::{Absent, Fleet, HostSpec, Launcher, StartSpec, Way, start};
use haul_peer::{SshHost, Tell};

use crate::args::{HostsArgs, JobArgs};
use crate::exit::Failure;
use crate::meanwhile::User;
use crate::{interrupt, output};

/// Starts a fleet; those that do not come are told of, and it is an error where nobody does.
pub fn bring_up(spec: &StartSpec, mut absent: impl FnMut(&Absent)) -> Result<Fleet, Failure> {
    let tell: Arc<dyn Tell> = Arc::new(User);
    let mut fleet = start(spec, &tell, interrupt::cancel())?;
    for left_out in std::mem::take(&mut fleet.absent) {
        absent(&left_out);
        print_absent(left_out);
    }
    if fleet.members.is_empty() {
        return Err(Failure::new(NOBODY));
    }
    Ok(fleet)
}

/// What is said where no server is there.
pub const NOBODY: &str = "no server came up";

pub fn print_absent(left_out: Absent) {
    output::print_failure(&absence(left_out));
}

/// What is said of a server that does not come.
pub fn absence(left_out: Absent) -> Failure {
    let Failure { message, hint } = left_out.why.into();
    // Most of them begin with the name already.
    let why = message.strip_prefix(&format!("{}: ", left_out.name)).unwrap_or(&message);
    Failure { message: format!("{}: left out: {why}", left_out.name), hint }
}

pub fn spec(hosts: &HostsArgs, job: &JobArgs) -> Result<StartSpec, Failure> {
    let ssh = hosts.ssh.options(job.quiet, job.verbose > 1);
    let spec = hosts_spec(hosts)?;
    Ok(StartSpec { ssh, transport: TransportConfig { controller: job.mode, ..spec.transport.clone() }, ..spec })
}

pub fn hosts_spec(hosts: &HostsArgs) -> Result<StartSpec, Failure> {
    let mut list = if hosts.hosts.is_empty() {
        HostSpec::allocated(|name| env::var_os(name))?.unwrap_or_default()
    } else {
        HostSpec::lists(hosts.hosts.iter().map(|text| text.to_string_lossy()))?
    };
    for (host, limit) in list.iter_mut().zip(&hosts.limits) {
        host.limit = host.limit.or(*limit);
    }
    Ok(StartSpec {
        way: hosts.start,
        launcher: launcher(hosts)?,
        call_back: hosts.call_back.clone(),
        timeout: hosts.timeout(),
        ssh: hosts.ssh.options(false, false),
        udp_port: hosts.udp_port,
        state: hosts.state.clone(),
        dial_out: hosts.dial_out,
        transport: hosts.transport(),
        ..StartSpec::new(list)
    })
}

/// How `mpirun` or `srun` is called. What is said of it for another way of starting has been mistaken for something else.
fn launcher(hosts: &HostsArgs) -> Result<Launcher, Failure> {
    let given = [
        ("--launcher", hosts.launcher.is_some()),
        ("--launcher-arg", !hosts.launcher_arg.is_empty()),
        ("--launcher-on", hosts.launcher_on.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given)
        && !matches!(hosts.start, Way::Mpirun | Way::Srun)
    {
        let message = format!("{option} is for a program that starts all servers, and --start {} has none", hosts.start);
        return Err(Failure::new(message).hint("say --start mpirun or --start srun"));
    }
    let on = hosts.launcher_on.as_deref().map(SshHost::parse).transpose();
    let on = on.map_err(|error| Failure::new(error).hint("write [USER@]HOST, as for ssh"))?;
    Ok(Launcher { program: hosts.launcher.clone(), arguments: hosts.launcher_arg.clone(), on })
}
