//! `haul cp --list-interrupted` and `--discard`: what interrupted copies have kept on this machine.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use haul_files::{Interrupted, WirePath};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output;

/// Shows what is kept in a directory.
pub fn list(directory: &Path, json: bool) -> Result<Exit, Failure> {
    let found = find(directory)?;
    for one in &found {
        if json {
            output::print_event(&event("interrupted", one));
        } else {
            output::print_line(&describe(one));
        }
    }
    if found.is_empty() && !json {
        output::print_line(&format!("{}: no interrupted copies", shown(directory)));
    }
    Ok(Exit::Done)
}

/// Removes what is kept in a directory, or in one hidden directory; what a copy is working on stays.
pub fn discard(directory: &Path, json: bool) -> Result<Exit, Failure> {
    let parent = directory.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let one = parent.and_then(|parent| find(parent).ok()).unwrap_or_default().into_iter();
    let name = directory.file_name();
    let mut chosen: Vec<Interrupted> = one.filter(|one| name.is_some() && one.path.file_name() == name).collect();
    if chosen.is_empty() {
        chosen = find(directory)?;
    }
    let mut left = 0;
    for one in &chosen {
        let path = shown(&one.path);
        match haul_files::discard(one) {
            Ok(true) if json => output::print_event(&event("discarded", one)),
            Ok(true) => output::print_line(&format!("{path}: discarded, {}", one.bytes)),
            Ok(false) if one.running => {
                left += 1;
                output::print_error(&format!("{path}: a copy is working on it"));
            }
            Ok(false) => {
                left += 1;
                output::print_error(&format!("{path}: stays, because it holds something that haul did not put there"));
            }
            Err(error) => {
                left += 1;
                output::print_error(&format!("{path}: {error}"));
            }
        }
    }
    if chosen.is_empty() && !json {
        output::print_line(&format!("{}: no interrupted copies", shown(directory)));
    }
    Ok(if left == 0 { Exit::Done } else { Exit::Partial })
}

fn find(directory: &Path) -> Result<Vec<Interrupted>, Failure> {
    haul_files::interrupted(directory).map_err(|error| Failure::new(format!("{}: {error}", shown(directory))))
}

fn describe(one: &Interrupted) -> String {
    let mut line = format!("{}  {}", shown(&one.path), one.bytes);
    if one.running {
        line.push_str("  a copy is working on it");
    } else {
        let _ = write!(line, "  {} ago", age(one.idle));
    }
    if !one.names.is_empty() {
        let names: Vec<String> = one.names.iter().map(ToString::to_string).collect();
        let _ = write!(line, "  {}", names.join(", "));
    }
    line
}

fn event(event: &str, one: &Interrupted) -> serde_json::Value {
    json!({
        "event": event,
        "path": one.path.to_string_lossy(),
        "names": one.names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "bytes": one.bytes.as_u64(),
        "idle_s": one.idle.as_secs(),
        "running": one.running,
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

/// Names of files may hold anything.
fn shown(path: &Path) -> WirePath {
    path.into()
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
}
