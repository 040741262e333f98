//! `haul lab`: a wide area network on this machine.
//!
//! ```text
//!   haul lab wan up ----> the emulator: first process of a process namespace, holds the hosts' network namespaces
//!   haul lab wan exec, set, status, down ----> [abstract socket] ----> the emulator
//!   haul lab wan run ----> an emulator that ends with it
//! ```
//!
//! All of this is `haul-lab`, and measuring over it `haul-bench`; here are their commands: `bench`, `run` and `list` are about measuring, `constant` is traffic for experiments, `decode` opens captured packets.

pub mod args;
mod bench;
mod check;
mod commands;
mod constant;
mod decode;
mod list;
mod model;
mod print;
mod relay;
mod run;
mod status;

use std::fmt::Write as _;

use haul_lab::LinkChanges;
use haul_lab::emulator::{self, EmulateError, Emulator, Life, NamedWan, Order};

use self::args::{DEFAULT_NAME, ExecArgs, LabArgs, LabCommand, NameArgs, RunArgs, SetArgs, UpArgs, WanCommand};
use self::commands::COMMANDS;
use self::print::print;
use crate::exit::{Exit, Failure};

/// Does what the arguments say.
pub fn run(args: &LabArgs) -> Result<Exit, Failure> {
    match &args.command {
        LabCommand::Relay(args) => relay::run(args),
        LabCommand::Bench(args) => bench::run(args),
        LabCommand::Files(args) => bench::files(args),
        LabCommand::Run(args) => run::run(args),
        LabCommand::List(args) => list::run(args),
        LabCommand::Decode(args) => decode::run(args),
        LabCommand::Constant(command) => constant::run(command),
        LabCommand::Wan(command) => match &**command {
            WanCommand::Up(args) => up(args),
            WanCommand::Exec(args) => exec(args),
            WanCommand::Set(args) => set(args),
            WanCommand::Status(args) => status::run(args),
            WanCommand::Down(args) => down(args),
            WanCommand::Run(args) => run_command(args),
            WanCommand::Check(args) => check::run(args),
            WanCommand::Emulate(_) => emulate(),
        },
    }
}

fn up(args: &UpArgs) -> Result<Exit, Failure> {
    let name = args.name.wan();
    let order = Order { name, wan: args::spec(&args.link, &args.shape)?, life: Life::OnItsOwn };
    let emulator = Emulator::start(&order, COMMANDS)?;
    let name = order.name;
    let option = if name == DEFAULT_NAME { String::new() } else { format!(" --name {name}") };
    let link = emulator.wan().status().map(|status| format!(": {}", status.link())).unwrap_or_default();
    let mut text = format!("The WAN `{name}` is up{link}\n");
    for host in emulator.hosts() {
        for address in &host.addresses {
            let _ = writeln!(text, "  {:<4} {:<16} {}", host.name, address.v4.to_string(), address.v6);
        }
    }
    let _ = writeln!(text, "Run programs by `haul lab wan exec{option} a -- CMD`, end it by `haul lab wan down{option}`.");
    print(&text)
}

fn exec(args: &ExecArgs) -> Result<Exit, Failure> {
    let (_, namespaces) = NamedWan::new(&args.name.wan()).enter(Some(&args.host))?;
    let status = emulator::run_to_end(&namespaces, &args.command, &[], None)?;
    std::process::exit(Exit::from(status).code().into())
}

fn set(args: &SetArgs) -> Result<Exit, Failure> {
    let changes = args.link.changes();
    if changes == LinkChanges::default() {
        return Err(Failure::new("nothing to set").hint("`haul lab wan set --help` lists what can be"));
    }
    NamedWan::new(&args.name.wan()).set(&changes)?;
    Ok(Exit::Done)
}

fn down(args: &NameArgs) -> Result<Exit, Failure> {
    NamedWan::new(&args.wan()).down()?;
    Ok(Exit::Done)
}

fn run_command(args: &RunArgs) -> Result<Exit, Failure> {
    let name = args.name.name.clone().unwrap_or_else(|| format!("run-{}", std::process::id()));
    let order = Order { name, wan: args::spec(&args.link, &args.shape)?, life: Life::WithThisProcess };
    let emulator = Emulator::start(&order, COMMANDS)?;
    let (_, namespaces) = emulator.wan().enter(None)?;
    let environment = emulator::environment(&order.name, emulator.hosts());
    let status = emulator::run_to_end(&namespaces, &args.command, &environment, Some(emulator.pid().as_raw_nonzero().get()));
    // Its socket closes before the processes of its hosts are killed.
    let ended_early = !emulator::was_interrupted() && emulator.wan().status().is_err();
    emulator.end();
    if ended_early {
        return Err(Failure::new("the emulator ended before the command did, and the command with it"));
    }
    std::process::exit(Exit::from(status?).code().into())
}

/// The emulator's own process. Whoever started it has been told why there is no WAN; who typed it by hand has not.
fn emulate() -> Result<Exit, Failure> {
    match emulator::run() {
        Ok(()) => Ok(Exit::Done),
        Err(by_hand @ EmulateError::Cradle(_)) => Err(by_hand.into()),
        Err(_) => Ok(Exit::Failed),
    }
}
