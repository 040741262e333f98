//! `haul tcp`: congestion control of the kernel's own TCP.

mod check;
mod install;
mod run;
mod status;

use haul_tcp::status::rule_words;
use haul_tcp::{Choice, Namespace, Scope, Tcp, default_of};
use haul_units::Network;

use crate::args::{ScopeArgs, TcpArgs, TcpCommand};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn run(args: &TcpArgs) -> Result<Exit, Failure> {
    let tcp = Tcp::default();
    match &args.command {
        TcpCommand::On { mode, scope } => on(&tcp, mode, &named(scope)?),
        TcpCommand::Off { scope } => off(&tcp, scope),
        TcpCommand::Status { netns, json } => status::run(&tcp, &namespace(netns.as_deref())?, *json),
        TcpCommand::Watch { netns, every } => status::watch(&tcp, &namespace(netns.as_deref())?, *every),
        TcpCommand::Set { settings } => set(&tcp, settings),
        TcpCommand::Switch { mode, to, netns } => switch(&tcp, mode, to, &namespace(netns.as_deref())?),
        TcpCommand::Run { mode, command } => run::run(&tcp, mode, command),
        TcpCommand::Default { mode: None, netns } => {
            output::print_out(&default_of(&namespace(netns.as_deref())?)?.to_string());
            Ok(Exit::Done)
        }
        TcpCommand::Default { mode: Some(mode), netns } => {
            on(&tcp, mode, &Scope { namespace: Some(namespace(netns.as_deref())?), ..Scope::default() })
        }
        TcpCommand::Install { print, remove } => install::run(&tcp, *print, *remove),
        TcpCommand::Check { host, port, rate } => check::run(host, *port, *rate),
    }
}

fn on(tcp: &Tcp, mode: &Choice, scope: &Scope) -> Result<Exit, Failure> {
    for rule in tcp.on(mode, scope)? {
        output::print_out(&rule_words(&rule));
    }
    let namespace = scope.namespace.clone().map_or_else(Namespace::own, Ok)?;
    for lack in tcp.lacks(&namespace)? {
        output::print_note(&format!("{}: `{}`", lack.words(), lack.command()));
    }
    Ok(Exit::Done)
}

fn off(tcp: &Tcp, scope: &ScopeArgs) -> Result<Exit, Failure> {
    let everything = scope.to.is_empty() && scope.netns.is_none() && scope.cgroup.is_none();
    // A namespace that is gone has taken what was done in it along.
    let scope = if everything { None } else { Some(named(scope)?) };
    let rules = tcp.off(scope.as_ref())?;
    if rules.is_empty() {
        output::print_out("nothing was on");
    }
    for rule in rules {
        output::print_out(&format!("off: {}", rule_words(&rule)));
    }
    Ok(Exit::Done)
}

fn set(tcp: &Tcp, settings: &[String]) -> Result<Exit, Failure> {
    for setting in settings {
        tcp.set(setting)?;
    }
    for (knob, value) in tcp.settings()? {
        let usual = if value == knob.usual { String::new() } else { format!(" (usually {})", knob.usual) };
        output::print_out(&format!("{:<22} {value}{usual}  {}", knob.key, knob.about));
    }
    Ok(Exit::Done)
}

fn switch(tcp: &Tcp, mode: &Choice, to: &[Network], namespace: &Namespace) -> Result<Exit, Failure> {
    let (switched, refused) = tcp.switch(mode, namespace, to)?;
    output::print_out(&format!("{mode}: {switched} connections switched"));
    if refused > 0 {
        output::print_line(&format!("{refused} connections could not be switched"));
        return Ok(Exit::Partial);
    }
    Ok(Exit::Done)
}

fn namespace(name: Option<&str>) -> Result<Namespace, Failure> {
    Ok(name.map_or_else(Namespace::own, Namespace::named)?)
}

fn named(scope: &ScopeArgs) -> Result<Scope, Failure> {
    let namespace = scope.netns.as_deref().map(Namespace::named).transpose()?;
    Ok(Scope { networks: scope.to.clone(), namespace, cgroup: scope.cgroup.clone() })
}
