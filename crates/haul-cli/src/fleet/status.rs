//! `haul fleet status`: how the servers are, in a table or as lines of JSON.

use haul_fleet::told::{status_event, status_table};
use haul_fleet::{Absent, SessionStatus, status};
use serde_json::json;

use super::kept;
use super::start::{bring_up, hosts_spec, print_absent};
use crate::args::FleetStatusArgs;
use crate::exit::{Exit, Failure, chain};
use crate::{interrupt, logging, output};

/// Runs the command.
pub fn run(args: &FleetStatusArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, 0, false);
    interrupt::watch_connecting();
    let gone = |absent: &Absent| {
        if args.json {
            output::print_event(&json!({ "member": absent.name, "error": chain(&absent.why) }));
        }
    };
    let (told, wanted) = if let Some(name) = &args.kept.name {
        let SessionStatus { members, absent, .. } = kept::status(name)?;
        let wanted = members.len() + absent.len();
        for absent in absent {
            gone(&absent);
            print_absent(absent);
        }
        (members, wanted)
    } else {
        let spec = hosts_spec(&args.hosts)?;
        (status(bring_up(&spec, gone)?.members, interrupt::cancel()), spec.hosts.len())
    };
    if args.json {
        told.iter().map(status_event).for_each(|event| output::print_event(&event));
    } else {
        output::out_lines(&status_table(&told, args.kept.name.is_some()).join("\n"));
    }
    for (name, error) in told.iter().filter_map(|member| Some((&member.name, member.report.as_ref().err()?))) {
        output::print_error(&format!("{name}: {}", chain(error)));
    }
    let answered = told.iter().filter(|member| member.report.is_ok()).count();
    Ok(match answered {
        0 => Exit::Failed,
        some if some < wanted => Exit::Partial,
        _ => Exit::Done,
    })
}
