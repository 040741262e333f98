//! `haul cp --list-interrupted` and `--discard`: what interrupted copies have kept, on this machine and on others.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use haul_config::Words;
use haul_copy::{Kept, KeptCopy, KeptRequest, at_daemon};
use haul_files::{CopyError, Discarded, WirePath};
use haul_peer::{Host, Operand};
use serde_json::json;

use super::connector::connector;
use super::failure;
use crate::args::CpArgs;
use crate::exit::{Exit, Failure, explained};
use crate::{interrupt, output};

/// Lists, or discards, what is kept in a directory.
pub fn run(args: &CpArgs, words: &Words, directory: &OsStr, discard: bool) -> Result<Exit, Failure> {
    let request = |path: &OsStr| KeptRequest { directory: WirePath(path.as_bytes().to_vec()), discard };
    let (place, found) = match Operand::parse(directory)? {
        Operand::Stdio => return Err(Failure::new("-: not a directory")),
        Operand::Local(path) => {
            let request = request(path.as_os_str());
            let found = request.here().map_err(Failure::new)?;
            (Place { before: String::new(), directory: request.directory }, Some(found))
        }
        Operand::Ssh(host, path) => at(words, &Host::Ssh(host), ":", request(&path))?,
        Operand::Daemon(host, path) => at(words, &Host::Daemon(host), "", request(&at_daemon(&path)))?,
    };
    let Some(found) = found else { return Ok(Exit::Interrupted) };
    let exit = if discard { tell_discarded(&place, &found, args.json) } else { list(&place, &found, args.json) };
    if found.more > 0 {
        output::print_line(&format!("and {} more", found.more));
    }
    Ok(exit)
}

/// What another host has; none if the user does not wait for it.
fn at(words: &Words, host: &Host, colon: &str, request: KeptRequest) -> Result<(Place, Option<Kept>), Failure> {
    interrupt::watch_connecting();
    let args: CpArgs = words.of(Some(host))?;
    let connected = connector(&args)?.connect(host)?;
    let found = match request.ask(&connected.connection, interrupt::cancel()) {
        Ok(found) => Some(found),
        Err(CopyError::Cancelled) if interrupt::requested() => None,
        Err(error) => return Err(explained(&connected, failure::explain(host, &error, true))),
    };
    connected.part(args.verbose > 1);
    Ok((Place { before: format!("{host}{colon}"), directory: request.directory }, found))
}

/// A directory, as its user names it.
struct Place {
    /// The host, with what stands behind it.
    before: String,
    directory: WirePath,
}

impl Place {
    /// A hidden directory in it, or itself.
    fn of(&self, copy: &KeptCopy) -> String {
        let (directory, name) = (&self.directory.0, &copy.name.0);
        let end = directory.iter().rposition(|&b| b != b'/').map_or(0, |last| last + 1);
        let is_itself = directory[..end].rsplit(|&b| b == b'/').next() == Some(name);
        let slash: &[u8] = if directory.is_empty() || directory.ends_with(b"/") { b"" } else { b"/" };
        let path = if is_itself { directory[..end].to_vec() } else { [directory, slash, name].concat() };
        format!("{}{}", self.before, WirePath(path))
    }

    fn print_none(&self) {
        output::print_line(&format!("{}{}: no interrupted copies", self.before, self.directory));
    }
}

fn list(place: &Place, found: &Kept, json: bool) -> Exit {
    for copy in &found.copies {
        if json {
            output::print_event(&event("interrupted", place, copy));
        } else {
            output::print_line(&describe(place, copy));
        }
    }
    if found.copies.is_empty() && !json {
        place.print_none();
    }
    Exit::Done
}

/// What a copy is working on stays.
fn tell_discarded(place: &Place, found: &Kept, json: bool) -> Exit {
    let mut exit = Exit::Done;
    for copy in &found.copies {
        let path = place.of(copy);
        let stays = match &copy.discarded {
            Some(Discarded::Removed) if json => {
                output::print_event(&event("discarded", place, copy));
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
        place.print_none();
    }
    if found.more > 0 { Exit::Partial } else { exit }
}

fn describe(place: &Place, copy: &KeptCopy) -> String {
    let mut line = format!("{}  {}", place.of(copy), copy.bytes());
    if copy.running {
        line.push_str("  a copy is working on it");
    } else {
        let _ = write!(line, "  {} ago", age(Duration::from_secs(copy.idle_s)));
    }
    if !copy.names.is_empty() {
        let names: Vec<String> = copy.names.iter().map(ToString::to_string).collect();
        let _ = write!(line, "  {}", names.join(", "));
    }
    line
}

fn event(event: &str, place: &Place, copy: &KeptCopy) -> serde_json::Value {
    json!({
        "event": event,
        "path": place.of(copy),
        "names": copy.names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "bytes": copy.bytes,
        "idle_s": copy.idle_s,
        "running": copy.running,
    })
}

/// In the largest unit that it fills.
fn age(idle: Duration) -> String {
    let seconds = idle.as_secs();
    let units = [(24 * 3600, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, text) in [(0, "0 seconds"), (1, "1 second"), (119, "1 minute"), (7200, "2 hours"), (8 * 86_400, "8 days")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
    #[test]
    fn a_place_is_named_as_its_user_does() {
        let copy = KeptCopy {
            name: WirePath(b".haul-0123abcd".into()),
            names: vec![WirePath(b"a\x1b[2Jb".into()), WirePath(b"c".into())],
            bytes: 2048,
            idle_s: 7200,
            running: false,
            discarded: None,
        };
        for (before, directory, path) in [
            ("", "kept", "kept/.haul-0123abcd"),
            ("", "/kept/", "/kept/.haul-0123abcd"),
            ("far:", "", "far:.haul-0123abcd"),
            ("far:", "d/.haul-0123abcd/", "far:d/.haul-0123abcd"),
            ("haul://far:7700", "/pub", "haul://far:7700/pub/.haul-0123abcd"),
        ] {
            let place = Place { before: before.into(), directory: WirePath(directory.into()) };
            assert_eq!(place.of(&copy), path);
            assert_eq!(describe(&place, &copy), format!("{path}  2.00 KiB  2 hours ago  a\\u{{1b}}[2Jb, c"));
        }
    }
}
