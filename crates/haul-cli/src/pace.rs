//! `haul pace`: rates for programs that know nothing of them.

use std::ffi::OsString;

use haul_pace::{InjectClass, InjectError, InjectSpec, Injector, InterfaceError};
use haul_tcp::{Discipline, Pace, PaceClass, PaceState, QueuePlace, QueueSpec, QueueState};
use haul_units::BitRate;
use serde_json::json;

use crate::args::{ClassArg, ClassArgs, PaceArgs, PaceCommand, QueueBy};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, program};

pub fn run(args: &PaceArgs) -> Result<Exit, Failure> {
    let pace = Pace::default();
    match &args.command {
        Some(PaceCommand::On { classes }) => {
            pace.on(&of(classes)?, queue(classes))?;
            status(&pace, false)
        }
        Some(PaceCommand::Off) => {
            let was_on = pace.off()?;
            output::print_out(if was_on { "taken back" } else { "nothing was on" });
            Ok(Exit::Done)
        }
        Some(PaceCommand::Status { json }) => status(&pace, *json),
        None => {
            let Some((name, arguments)) = args.program.split_first() else {
                return Err(Failure::new("no program is named")
                    .hint("write it behind --: haul pace --rate 930M -- rsync -a data far:/data"));
            };
            // Before anything is changed: an interrupt that comes then still has it taken back.
            interrupt::watch();
            match &args.gaps.gaps {
                Some(interface) => with_gaps(args, interface, name, arguments),
                None => with_rates(&pace, &args.classes, name, arguments),
            }
        }
    }
}

fn with_rates(pace: &Pace, classes: &ClassArgs, name: &OsString, arguments: &[OsString]) -> Result<Exit, Failure> {
    let run = pace.run(&of(classes)?, queue(classes))?;
    let mut left = Ok(());
    let ended = program::run(name, arguments, || left = run.leave());
    drop(run);
    left?;
    ended
}

fn with_gaps(args: &PaceArgs, interface: &str, name: &OsString, arguments: &[OsString]) -> Result<Exit, Failure> {
    let class = |arg: &ClassArg| {
        let follows = args.classes.follow;
        // What follows has the line for its most, where nothing else is said.
        let most = follows.then_some(BitRate::MAX);
        let rate = arg.rate.or(args.classes.rate).or(most).ok_or_else(|| no_rate(&arg.to.to_string()))?;
        Ok(InjectClass { to: arg.to, rate, follows })
    };
    let classes = args.classes.to.iter().map(class).collect::<Result<Vec<_>, Failure>>()?;
    let spec = InjectSpec { interface: interface.to_owned(), line: args.gaps.line, classes };
    let injector = Injector::start(&spec).map_err(|error| refused(&error))?;
    let ended = program::run(name, arguments, || ());
    let stats = injector.stats();
    let injected = injector.stop();
    if stats.silences > 0 {
        output::print_note(&format!(
            "the line fell silent {} times while packets waited: this machine was busy with something else, and they were late",
            stats.silences
        ));
    }
    if stats.unresolved > 0 {
        output::print_note(&format!("{} packets went nowhere: nobody on the line answered for their address", stats.unresolved));
    }
    injected.map_err(|error| Failure::new(format!("sending through {interface}: {error}")))?;
    ended
}

/// Each network is a class; without one there is one for all.
fn of(args: &ClassArgs) -> Result<Vec<PaceClass>, Failure> {
    let class = |to, rate: Option<BitRate>, name: &str| {
        if rate.is_none() && !args.follow {
            return Err(no_rate(name));
        }
        if rate == Some(BitRate::ZERO) {
            return Err(Failure::new(format!("a rate of 0 for {name} would let nothing pass")));
        }
        Ok(PaceClass { to, bits_per_s: rate.map_or(0, BitRate::as_bps), follows: args.follow })
    };
    if args.to.is_empty() {
        return Ok(vec![class(None, args.rate, "all connections")?]);
    }
    args.to.iter().map(|arg| class(Some(arg.to), arg.rate.or(args.rate), &arg.to.to_string())).collect()
}

fn queue(args: &ClassArgs) -> Option<QueueSpec<'_>> {
    let by = match args.queue_by {
        None | Some(QueueBy::Auto) => None,
        Some(QueueBy::Fq) => Some(Discipline::Fq),
        Some(QueueBy::Htb) => Some(Discipline::Htb),
    };
    args.queue.as_deref().map(|interface| QueueSpec { interface, by })
}

fn no_rate(whose: &str) -> Failure {
    Failure::new(format!("no rate is given for {whose}"))
        .hint("--rate RATE is for all, --to NET=RATE for one; --follow takes TCP's own estimate")
}

fn status(pace: &Pace, json: bool) -> Result<Exit, Failure> {
    let states = pace.status()?;
    if json {
        let one = |PaceState { class, open, sending }: &PaceState| {
            json!({
                "to": class.to.map(|to| to.to_string()),
                "rate_bps": (class.bits_per_s > 0).then_some(class.bits_per_s),
                "follows": class.follows,
                "open": open,
                "sending": sending,
                "by": "cgroup program, SO_MAX_PACING_RATE",
            })
        };
        let queue = pace.queue_at().map(|QueueState { place: QueuePlace { interface, namespace }, by }| {
            json!({ "interface": interface, "netns": namespace.name(), "by": by.to_string() })
        });
        output::out_json(&json!({ "classes": states.iter().map(one).collect::<Vec<_>>(), "queue": queue }).to_string());
        return Ok(Exit::Done);
    }
    if states.is_empty() {
        output::print_out("nothing is on");
    }
    for PaceState { class, open, sending } in states {
        let to = class.to.map_or_else(|| "all".to_owned(), |to| format!("to {to}"));
        let rate = if class.bits_per_s > 0 { BitRate::from_bps(class.bits_per_s).to_string() } else { String::new() };
        let follows = if class.follows { "a window each round trip" } else { "" };
        let held = [rate.as_str(), follows].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", at most ");
        let plural = if open == 1 { "" } else { "s" };
        output::print_out(&format!(
            "{to:<24} {held:<40} {open} connection{plural}, {sending} sending   TCP's own timer, by a program at the cgroups' root"
        ));
    }
    if let Some(QueueState { place: QueuePlace { interface, namespace }, by }) = pace.queue_at() {
        let within = namespace.name().map_or_else(String::new, |name| format!(" in the network namespace {name}"));
        output::print_out(&format!("UDP and all else of these through {interface}{within} waits in a queue there ({by})"));
    }
    Ok(Exit::Done)
}

fn refused(error: &InjectError) -> Failure {
    let failure = Failure::new(error);
    match error {
        InjectError::Interface(InterfaceError::NoRate(name)) => failure.hint(format!(
            "say it with --line 1G; --gaps on a virtual interface spaces nothing, `haul pace --rate` without --gaps does ({name})"
        )),
        InjectError::Interface(InterfaceError::Unknown(_) | InterfaceError::NotEthernet(_)) => {
            failure.hint("`ip -br link` has the names")
        }
        InjectError::Device(_) | InjectError::Socket { .. } => failure.hint("run it with sudo"),
        _ => failure,
    }
}
