//! haul for a far side that has none: what is at hand for which machine, and the question whether to send it.

use std::io;
use std::path::Path;

use haul::Bytes;
use haul_peer::{Bootstrap, Program, Sending, Stay};

use crate::args::BootstrapArgs;
use crate::exit::Failure;

/// Beside the directory of this program, where packages have programs for all kinds of machines.
const BESIDE: &str = "../lib/haul/static";

/// What the arguments ask for.
pub fn asked(args: &BootstrapArgs) -> Result<Option<Bootstrap>, Failure> {
    let Some(stay) = args.bootstrap else { return Ok(None) };
    let programs = match &args.bootstrap_from {
        Some(path) => named(path)?,
        None => at_hand(),
    };
    if programs.is_empty() {
        return Err(Failure::new("there is no static haul here that a far side could be given")
            .hint("name one with --bootstrap-from PATH: `make static` builds it, packages and the tarball have it"));
    }
    Ok(Some(bootstrap(programs, stay.into())))
}

/// With these programs.
pub const fn bootstrap(programs: Vec<Program>, stay: Stay) -> Bootstrap {
    Bootstrap { programs, stay, afresh: false }
}

/// This program, where it stands alone, and those that were installed for this purpose. Nobody has named them: what cannot be read is not at hand.
pub fn at_hand() -> Vec<Program> {
    let Ok(own) = std::env::current_exe() else { return Vec::new() };
    let mut programs: Vec<Program> = Program::standing_alone(&own).ok().flatten().into_iter().collect();
    let beside = own.parent().map(|dir| dir.join(BESIDE)).and_then(|dir| Program::all_in(&dir).ok()).unwrap_or_default();
    for program in beside {
        if programs.iter().all(|one| one.machine != program.machine) {
            programs.push(program);
        }
    }
    programs
}

fn named(path: &Path) -> Result<Vec<Program>, Failure> {
    let unreadable = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    if path.is_dir() {
        return Program::all_in(path).map_err(unreadable);
    }
    let program = Program::named(path).map_err(unreadable)?;
    let program =
        program.ok_or_else(|| Failure::new(format!("{}: not a program for Linux on x86_64 or aarch64", path.display())))?;
    Ok(vec![program])
}

/// The line that says that a program is sent.
pub fn sending_words(sending: &Sending<'_>) -> String {
    let Sending { host, machine, bytes, stay } = sending;
    let stays = match stay {
        Stay::Keep => "it stays in ~/.cache/haul",
        Stay::Once => "nothing of it stays",
    };
    format!("{host} has no haul {}: sending it, {} for {machine}; {stays}", env!("CARGO_PKG_VERSION"), Bytes(*bytes))
}

/// The question whether to send one.
pub fn question(why: &str, programs: &[Program]) -> String {
    let largest = programs.iter().map(|program| program.bytes).max().unwrap_or_default();
    format!(
        "{why}\nSend haul {} there, {} over ssh? yes: it stays in ~/.cache/haul there; once: nothing of it stays (yes/once/no) ",
        env!("CARGO_PKG_VERSION"),
        Bytes(largest)
    )
}

/// An answer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Send it.
    Send(Stay),
    /// Do not.
    Leave,
    /// No answer.
    Unclear,
}

/// What an answer means.
pub fn answer(text: &str) -> Answer {
    match text.trim() {
        "yes" | "y" => Answer::Send(Stay::Keep),
        "once" => Answer::Send(Stay::Once),
        "no" | "n" => Answer::Leave,
        _ => Answer::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_no_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        let failure = named(&path).unwrap_err();
        assert!(failure.message.contains("script: not a program"), "{failure}");
        assert!(named(&dir.path().join("missing")).unwrap_err().message.contains("missing: "));
        assert!(named(dir.path()).unwrap().is_empty());
    }

    #[test]
    fn answers_are_words() {
        for (text, meaning) in [
            ("yes\n", Answer::Send(Stay::Keep)),
            ("y", Answer::Send(Stay::Keep)),
            ("once ", Answer::Send(Stay::Once)),
            ("n", Answer::Leave),
            ("perhaps", Answer::Unclear),
        ] {
            assert_eq!(answer(text), meaning, "{text}");
        }
    }
}
