//! `haul cp --list-interrupted` and `--discard`: what interrupted copies have kept, on this machine and on others.

use std::ffi::OsStr;

use haul_config::CommandLine;
use haul_copy::told::KeptIn;
use haul_copy::{Kept, KeptRequest, at_daemon};
use haul_files::{CopyError, Discarded, WirePath};
use haul_peer::{Host, Operand};

use super::connector::connector;
use super::failure;
use crate::args::CpArgs;
use crate::exit::{Exit, Failure, explained};
use crate::{interrupt, output};

/// Lists, or discards, what is kept in a directory.
pub fn run(args: &CpArgs, line: &CommandLine, directory: &OsStr, discard: bool) -> Result<Exit, Failure> {
    let request = |path: &OsStr| KeptRequest { directory: WirePath::from(std::path::Path::new(path)), discard };
    let (place, found) = match Operand::parse(directory)? {
        Operand::Stdio => return Err(Failure::new("-: not a directory")),
        Operand::Local(path) => {
            let request = request(path.as_os_str());
            let found = request.here().map_err(Failure::new)?;
            (KeptIn { before: String::new(), directory: request.directory }, Some(found))
        }
        Operand::Ssh(host, path) => at(line, &Host::Ssh(host), ":", request(&path))?,
        Operand::Daemon(host, path) => at(line, &Host::Daemon(host), "", request(&at_daemon(&path)))?,
    };
    let Some(found) = found else { return Ok(Exit::Interrupted) };
    let exit = if discard { tell_discarded(&place, &found, args.json) } else { list(&place, &found, args.json) };
    if found.more > 0 {
        output::print_line(&format!("and {} more", found.more));
    }
    Ok(exit)
}

/// What another host has; none if the user does not wait for it.
fn at(line: &CommandLine, host: &Host, colon: &str, request: KeptRequest) -> Result<(KeptIn, Option<Kept>), Failure> {
    interrupt::watch_connecting();
    let args: CpArgs = line.of(Some(host))?;
    let connected = connector(&args)?.connect(host)?;
    let found = match request.ask(&connected.connection, interrupt::cancel()) {
        Ok(found) => Some(found),
        Err(CopyError::Cancelled) if interrupt::requested() => None,
        Err(error) => return Err(explained(&connected, failure::explain(host, &error, true))),
    };
    connected.part(args.verbose > 1);
    Ok((KeptIn { before: format!("{host}{colon}"), directory: request.directory }, found))
}

fn print_none(place: &KeptIn) {
    output::print_line(&place.none());
}

fn list(place: &KeptIn, found: &Kept, json: bool) -> Exit {
    for copy in &found.copies {
        if json {
            output::print_event(&place.event("interrupted", copy));
        } else {
            output::print_line(&place.describe(copy));
        }
    }
    if found.copies.is_empty() && !json {
        print_none(place);
    }
    Exit::Done
}

/// What a copy is working on stays.
fn tell_discarded(place: &KeptIn, found: &Kept, json: bool) -> Exit {
    let mut exit = Exit::Done;
    for copy in &found.copies {
        let path = place.of(copy);
        let stays = match &copy.discarded {
            Some(Discarded::Removed) if json => {
                output::print_event(&place.event("discarded", copy));
                continue;
            }
            Some(Discarded::Removed) => {
                output::print_line(&format!("{path}: discarded, {}", copy.bytes()));
                continue;
            }
            Some(Discarded::Running) => "a copy is working on it".to_owned(),
            Some(Discarded::Foreign) | None => "stays, because it holds something that haul did not put there".to_owned(),
            Some(Discarded::Failed(why)) => why.to_string(),
        };
        output::print_error(&format!("{path}: {stays}"));
        exit = Exit::Partial;
    }
    if found.copies.is_empty() && !json {
        print_none(place);
    }
    if found.more > 0 { Exit::Partial } else { exit }
}
