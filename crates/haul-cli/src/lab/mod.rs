//! `haul lab`: a wide area network on this machine.
//!
//! ```text
//!   haul lab wan up ----> the emulator: first process of a process namespace, holds the hosts' network namespaces
//!   haul lab wan exec, set, status, down ----> [abstract socket] ----> the emulator
//!   haul lab wan run ----> an emulator that ends with it
//! ```
//!
//! The parts: `start` the emulator's process, `emulate` what it does, `control` how it is reached, `enter` running commands on its
//! hosts, `status` what it tells, `check` whether it tells the truth, `bench` haul beside other tools,
//! `run` and `list` the experiments, `constant` traffic for them.

pub mod args;
mod bench;
mod check;
mod constant;
mod control;
mod cradle;
mod emulate;
mod enter;
mod list;
mod relay;
mod run;
mod start;
mod status;

use std::env;
use std::fmt::Write as _;
use std::io;

use serde_json::Value;

use self::args::{ExecArgs, LabArgs, LabCommand, NameArgs, RunArgs, SetArgs, UpArgs, WanCommand};
use self::control::{Request, ask};
use self::start::{Emulator, Life};
use crate::exit::{Exit, Failure};
use crate::output;

/// Does what the arguments say.
pub fn run(args: &LabArgs) -> Result<Exit, Failure> {
    match &args.command {
        LabCommand::Relay(args) => relay::run(args),
        LabCommand::Bench(args) => bench::run(args),
        LabCommand::Files(args) => bench::files(args),
        LabCommand::Run(args) => run::run(args),
        LabCommand::List(args) => list::run(args),
        LabCommand::Constant(command) => constant::run(command),
        LabCommand::Wan(command) => match &**command {
            WanCommand::Up(args) => up(args),
            WanCommand::Exec(args) => exec(args),
            WanCommand::Set(args) => set(args),
            WanCommand::Status(args) => status::run(args),
            WanCommand::Down(args) => down(args),
            WanCommand::Run(args) => run_command(args),
            WanCommand::Check(args) => check::run(args),
            WanCommand::Emulate(args) => emulate::run(args),
        },
    }
}

fn up(args: &UpArgs) -> Result<Exit, Failure> {
    args::spec(&args.link, &args.shape).map_err(Failure::new)?;
    let name = wan_name(&args.name);
    let options = [args.link.to_args(), args.shape.to_args()].concat();
    let emulator = Emulator::start(&name, options, Life::OnItsOwn)?;
    let option = if name == DEFAULT_NAME { String::new() } else { format!(" --name {name}") };
    let mut text = format!("The WAN `{name}` is up:\n");
    for (host, v4, v6) in hosts_of(&emulator.hosts).flat_map(addresses_of) {
        let _ = writeln!(text, "  {host:<4} {v4:<16} {v6}");
    }
    let _ = writeln!(text, "Run programs by `haul lab wan exec{option} a -- CMD`, end it by `haul lab wan down{option}`.");
    print(&text)
}

fn exec(args: &ExecArgs) -> Result<Exit, Failure> {
    let namespaces = enter_host(&wan_name(&args.name), Some(&args.host))?;
    let status = enter::run(&namespaces, &args.command, &[], None)?;
    std::process::exit(enter::code(status))
}

fn set(args: &SetArgs) -> Result<Exit, Failure> {
    let options = args.link.to_args();
    if options.is_empty() {
        return Err(Failure::new("nothing to set").hint("`haul lab wan set --help` lists what can be"));
    }
    ask(&wan_name(&args.name), &Request::Set { options })?;
    Ok(Exit::Done)
}

fn down(args: &NameArgs) -> Result<Exit, Failure> {
    let name = wan_name(args);
    ask(&name, &Request::Down)?;
    // The name is free again when the emulator and all processes of its hosts are gone.
    while ask(&name, &Request::Status).is_ok() {}
    Ok(Exit::Done)
}

fn run_command(args: &RunArgs) -> Result<Exit, Failure> {
    args::spec(&args.link, &args.shape).map_err(Failure::new)?;
    let name = args.name.name.clone().unwrap_or_else(|| format!("run-{}", std::process::id()));
    let options = [args.link.to_args(), args.shape.to_args()].concat();
    let emulator = Emulator::start(&name, options, Life::WithThisProcess)?;
    let namespaces = enter_host(&name, None)?;
    let environment = environment(&name, &emulator.hosts);
    let status = enter::run(&namespaces, &args.command, &environment, Some(emulator.pid().as_raw_nonzero().get()));
    // Its socket closes before the processes of its hosts are killed.
    let ended_early = !enter::interrupted() && ask(&name, &Request::Status).is_err();
    emulator.end();
    if ended_early {
        return Err(Failure::new("the emulator ended before the command did, and the command with it"));
    }
    std::process::exit(enter::code(status?))
}

fn enter_host(name: &str, host: Option<&str>) -> Result<control::Namespaces, Failure> {
    let (_, namespaces) = ask(name, &Request::Enter { host: host.map(str::to_owned) })?;
    namespaces.ok_or_else(|| Failure::new("the emulator gave no namespaces"))
}

/// What a command finds of the WAN it runs over.
fn environment(name: &str, hosts: &Value) -> Vec<(String, String)> {
    let mut variables = vec![("HAUL_LAB_NAME".to_owned(), name.to_owned())];
    for host in hosts_of(hosts) {
        let Some((host, v4, v6)) = addresses_of(host).next() else { continue };
        let variable = format!("HAUL_LAB_{}", host.to_uppercase());
        variables.push((format!("{variable}_ADDRESS"), v4.to_owned()));
        variables.push((format!("{variable}_ADDRESS6"), v6.to_owned()));
        variables.push((variable, host.to_owned()));
    }
    variables
}

fn hosts_of(hosts: &Value) -> impl Iterator<Item = &Value> {
    hosts.as_array().into_iter().flatten()
}

/// A host's name, IPv4 and IPv6 address on each link.
fn addresses_of(host: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let name = host["name"].as_str().unwrap_or_default();
    host["addresses"]
        .as_array()
        .into_iter()
        .flatten()
        .map(move |address| (name, address["v4"].as_str().unwrap_or_default(), address["v6"].as_str().unwrap_or_default()))
}

fn wan_name(args: &NameArgs) -> String {
    let inherited = || env::var("HAUL_LAB_NAME").ok().filter(|name| !name.is_empty());
    args.name.clone().or_else(inherited).unwrap_or_else(|| DEFAULT_NAME.to_owned())
}

fn print(text: &str) -> Result<Exit, Failure> {
    match output::out_bytes(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!("cannot write: {error}"))),
        _ => Ok(Exit::Done),
    }
}

const DEFAULT_NAME: &str = "wan";
