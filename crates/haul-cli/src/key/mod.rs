//! `haul key`: the keys of daemons and of their users.

use std::io;
use std::path::Path;

use haul::Fingerprint;
use haul_peer::keys::{self, AuthorizedKeys, Entry, Fault, Known, KnownHosts, Rights};
use haul_peer::{DaemonHost, StateDir};

use crate::args::{KeyArgs, KeyCommand};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn run(args: &KeyArgs) -> Result<Exit, Failure> {
    let state = StateDir::find(args.state.as_deref())?;
    match &args.command {
        KeyCommand::Show => show(&state),
        KeyCommand::Trust { host, fingerprint, replace } => trust(&state, host, *fingerprint, *replace),
        KeyCommand::Authorize { fingerprint, name, rights } => authorize(&state, *fingerprint, name.as_deref(), rights.rights()),
        KeyCommand::List => list(&state),
        KeyCommand::Revoke { what } => revoke(&state, what),
    }
}

fn show(state: &StateDir) -> Result<Exit, Failure> {
    let (identity, _) = keys::load_or_make(state)?;
    Ok(print(&identity.public_key().fingerprint().to_string()))
}

fn trust(state: &StateDir, host: &str, key: Fingerprint, replace: bool) -> Result<Exit, Failure> {
    let host = daemon_host(host)?;
    create(state)?;
    let mut hosts = known_hosts(state)?;
    match hosts.look_up(&host, key) {
        Known::Trusted => return Ok(print(&format!("haul://{host} is trusted already, with this key"))),
        Known::Changed(other) if !replace => {
            return Err(Failure::new(format!("haul://{host}: another key is trusted: {other}"))
                .hint("if the daemon really has a new key, add --replace"));
        }
        Known::Changed(_) | Known::Unknown => {}
    }
    hosts.trust(&host, key).map_err(|error| failed(&state.known_hosts(), &error))?;
    Ok(print(&format!("haul://{host} is trusted")))
}

fn authorize(state: &StateDir, key: Fingerprint, name: Option<&str>, rights: Option<Rights>) -> Result<Exit, Failure> {
    create(state)?;
    let entry = authorized_keys(state)?.authorize(key, name, rights)?;
    Ok(print(&format!("{key} may use what is served on this machine: {}", entry.rights)))
}

fn list(state: &StateDir) -> Result<Exit, Failure> {
    let hosts = known_hosts(state)?;
    for (host, key) in hosts.entries() {
        print(&format!("trusted     {key}  haul://{host}"));
    }
    let keys = authorized_keys(state)?;
    let (entries, faults) = (keys.entries(), keys.faults());
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or_default();
    for Entry { key, name, rights } in &entries {
        print(&format!("authorised  {key}  {name:width$}  {rights}"));
    }
    for Fault { line, reason } in &faults {
        print(&format!("refused     line {line} of {}: {reason}", keys.path().display()));
    }
    if hosts.entries().next().is_none() && entries.is_empty() && faults.is_empty() {
        let dir = keys.path().parent().unwrap_or(keys.path());
        output::print_line(&format!("no host is trusted, and no key authorised, in {}", dir.display()));
    }
    Ok(if faults.is_empty() { Exit::Done } else { Exit::Partial })
}

fn revoke(state: &StateDir, what: &str) -> Result<Exit, Failure> {
    let key = match what.parse::<Fingerprint>() {
        Ok(key) => Some(key),
        Err(_) => match &*authorized_keys(state)?.named(what) {
            [] => None,
            [key] => Some(*key),
            keys => {
                let all: Vec<String> = keys.iter().map(Fingerprint::to_string).collect();
                return Err(Failure::new(format!("{what}: {} keys have this name", keys.len()))
                    .hint(format!("name one by its fingerprint: {}", all.join(", "))));
            }
        },
    };
    let removed = if let Some(key) = key {
        authorized_keys(state)?.revoke(key)?
    } else {
        let host = daemon_host(what)?;
        known_hosts(state)?.revoke(&host).map_err(|error| failed(&state.known_hosts(), &error))?
    };
    if removed {
        print(&format!("revoked {what}"));
        if key.is_some() {
            print("connections that `haul serve` has with this key end within a second or two");
        }
        return Ok(Exit::Done);
    }
    Err(Failure::new(format!("{what}: neither an authorised key nor a trusted host")).hint("`haul key list` shows what there is"))
}

/// A host, or a whole address of which the host counts.
fn daemon_host(text: &str) -> Result<DaemonHost, Failure> {
    let text = text.strip_prefix("haul://").unwrap_or(text);
    let host = text.split_once('/').map_or(text, |(host, _)| host);
    DaemonHost::parse(host).map_err(|error| Failure::new(error).hint("write HOST or HOST:PORT, as in haul://HOST:PORT/"))
}

fn known_hosts(state: &StateDir) -> Result<KnownHosts, Failure> {
    Ok(KnownHosts::load(state.known_hosts())?)
}

fn authorized_keys(state: &StateDir) -> Result<AuthorizedKeys, Failure> {
    Ok(AuthorizedKeys::load(state.authorized_keys())?)
}

fn create(state: &StateDir) -> Result<(), Failure> {
    state
        .create()
        .map_err(|error| failed(&state.known_hosts(), &error).hint("name a directory that can be written to with --state DIR"))
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

/// Whoever closed the pipe has read enough.
fn print(line: &str) -> Exit {
    output::print_out(line);
    Exit::Done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_may_be_given_as_addresses() {
        for text in ["far", "far:7700", "haul://far", "haul://far:7700/pub/x"] {
            assert_eq!(daemon_host(text).map(|host| host.to_string()), Ok("far:7700".to_owned()), "{text}");
        }
        assert!(daemon_host("a b").is_err());
    }
}
