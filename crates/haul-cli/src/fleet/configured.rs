//! What the configuration file says of a fleet's servers.
//!
//! They are reached in one way, so what it says of one it has to say of all; but `limit`, which is each server's own.

use std::ffi::OsString;

use haul_config::CommandLine;
use haul_peer::{Host, Limit};
use haul_units::BitRate;

use super::start::hosts_spec;
use crate::args::{FleetCommand, HostsArgs, KeptArgs};
use crate::config;
use crate::exit::Failure;

/// The command, with what the files say of its servers; those of a fleet that is kept were said when that began.
pub fn of(command: FleetCommand, arguments: &[OsString]) -> Result<FleetCommand, Failure> {
    let is_kept = |kept: &KeptArgs| kept.name.is_some();
    Ok(match command {
        FleetCommand::Get(args) if !is_kept(&args.kept) => {
            let Files { line, hosts } = Files::of("get", &args.hosts, arguments)?;
            let mut args: Box<crate::args::FleetGetArgs> = Box::new(line.of_all(&hosts, OWN)?);
            args.hosts.limits = limits(&line, &hosts, args.job.limit_each().is_some())?;
            FleetCommand::Get(args)
        }
        FleetCommand::Put(args) if !is_kept(&args.kept) => {
            let Files { line, hosts } = Files::of("put", &args.hosts, arguments)?;
            let mut args: Box<crate::args::FleetPutArgs> = Box::new(line.of_all(&hosts, OWN)?);
            args.hosts.limits = limits(&line, &hosts, args.job.limit_each().is_some())?;
            FleetCommand::Put(args)
        }
        FleetCommand::Up(args) => {
            let Files { line, hosts } = Files::of("up", &args.hosts, arguments)?;
            let mut args: Box<crate::args::FleetUpArgs> = Box::new(line.of_all(&hosts, OWN)?);
            args.hosts.limits = limits(&line, &hosts, false)?;
            FleetCommand::Up(args)
        }
        FleetCommand::Status(args) if !is_kept(&args.kept) => {
            let Files { line, hosts } = Files::of("status", &args.hosts, arguments)?;
            FleetCommand::Status(Box::new(line.of_all(&hosts, OWN)?))
        }
        other => other,
    })
}

/// The command line, and whom it names.
struct Files {
    line: CommandLine,
    hosts: Vec<Host>,
}

impl Files {
    fn of(command: &str, hosts: &HostsArgs, arguments: &[OsString]) -> Result<Self, Failure> {
        let hosts = hosts_spec(hosts)?.hosts.iter().map(haul_fleet::HostSpec::reach).collect();
        Ok(Self { line: config::command_line_of(command, arguments.to_vec())?, hosts })
    }
}

/// What each server brings at most by the files, where the command line does not say it of all.
fn limits(line: &CommandLine, hosts: &[Host], is_told: bool) -> Result<Vec<Option<BitRate>>, Failure> {
    let of = |host: &Host| {
        let Some(held) = line.held(host, "limit").filter(|_| !is_told) else { return Ok(None) };
        let limit = held.value.parse::<Limit>();
        limit.map(|limit| Some(limit.0)).map_err(|error| {
            Failure::new(format!("limit = {}: {error}", held.value))
                .hint(format!("{}: by the time of day only copies are limited; say --limit-each", held.origin))
        })
    };
    hosts.iter().map(of).collect()
}

/// Keys that need not agree.
const OWN: &[&str] = &["limit"];
