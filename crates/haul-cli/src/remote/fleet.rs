//! `haul remote` as a part of a fleet: a member, which outlives the login that started it, or the representative, which starts the others.
//!
//! What a login may serve as a member is what it may serve for a copy; to start others is to run commands, so that is for logins that may.

use std::env;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum as _;
use haul_files::Cancel;
use haul_fleet::{Invitation, Service, Summons};
use haul_peer::greeting_in;
use haul_serve::{Confined, Errand};

use crate::args::{ErrandArg, RemoteArgs};
use crate::config;
use crate::exit::{Exit, Failure};

/// What a fleet wants of this process; nothing if no fleet does.
pub fn summons(args: &RemoteArgs) -> Option<Summons> {
    let asked = env::var_os("SSH_ORIGINAL_COMMAND").map(|command| command.to_string_lossy().into_owned());
    Summons::from_word(args.greeting.as_deref().or_else(|| greeting_in(asked.as_deref()?))?)
}

/// Does it.
pub fn answer(args: &RemoteArgs, summons: &Summons) -> Result<Exit, Failure> {
    match summons {
        Summons::Serve(invitation) if invitation.stay => Ok(serve(args, invitation)),
        Summons::Serve(invitation) => {
            let exe = own_program()?;
            let started = invitation.start_apart(&|word| apart(args, &exe, word), &mut io::stdout().lock());
            started.map(|()| Exit::Done).map_err(|error| Failure::new(format!("haul remote: starting a member: {error}")))
        }
        Summons::Lead { .. } => lead(args),
    }
}

fn serve(args: &RemoteArgs, invitation: &Invitation) -> Exit {
    let mut out = io::stdout().lock();
    let served = match Confined::new(&args.bounds()) {
        Ok(confined) => {
            confined.lock_in();
            let service = Service::new(confined.access(), config::places(), confined.refuses(Errand::Cp));
            invitation.serve(service, &mut out, &Cancel::new())
        }
        Err(failure) => {
            invitation.refuse(&Failure::from(failure).into(), &mut out);
            false
        }
    };
    if served { Exit::Done } else { Exit::Failed }
}

fn lead(args: &RemoteArgs) -> Result<Exit, Failure> {
    let refusal = match Confined::new(&args.bounds()) {
        Ok(confined) => confined.refuses(Errand::Tunnel),
        Err(failure) => Some(Failure::from(failure).into()),
    };
    let exe = own_program()?;
    let apart = |word: &str| apart(args, &exe, word);
    let ssh = env::var("SSH_CONNECTION").ok();
    let led = haul_fleet::lead(BufReader::new(io::stdin()), ssh.as_deref(), refusal, &apart, io::stdout());
    led.map(|()| Exit::Done).map_err(|error| Failure::new(format!("haul remote: starting a fleet: {error}")))
}

/// This program once more, with the same bounds, for a member of its own.
fn apart(args: &RemoteArgs, exe: &Path, word: &str) -> Command {
    let mut command = Command::new(exe);
    command.arg("remote");
    for errand in args.only.iter().filter_map(ErrandArg::to_possible_value) {
        command.args(["--only", errand.get_name()]);
    }
    if let Some(root) = &args.root {
        command.arg("--root").arg(root);
    }
    if args.read_only {
        command.arg("--read-only");
    }
    command.arg(word);
    command
}

fn own_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::new(format!("haul remote: where is this program? {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_the_bounds_of_its_login() {
        let only = vec![ErrandArg::Cp, ErrandArg::Perf];
        let args = RemoteArgs { greeting: None, only, root: Some("/a b".into()), read_only: true };
        let command = apart(&args, Path::new("haul"), "WORD");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words.join("|"), "remote|--only|cp|--only|perf|--root|/a b|--read-only|WORD");
    }
}
