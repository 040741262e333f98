//! `cargo xtask`: checks of this workspace that no ready-made tool makes.
//!
//! `cargo xtask check` runs them all: crate arrows, purity of the sans-IO crates, file length, stubs, a peer's words. Each check is a pure function from text to
//! findings, tested with input that must fail; this file only reads the workspace and prints.

mod arrows;
mod length;
mod purity;
mod source;
mod stubs;
mod words;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

/// One thing wrong, with the place where it is.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// `file:line`, or the name of a crate.
    place: String,
    /// What is wrong and what to do about it.
    message: String,
}

type Check = fn(&Workspace) -> Vec<Finding>;

const CHECKS: &[(&str, Check)] = &[
    ("arrows", arrows::check),
    ("purity", purity::check),
    ("length", length::check),
    ("stubs", stubs::check),
    ("words", words::check),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["check"] => run(CHECKS),
        ["check", name] => match CHECKS.iter().position(|(known, _)| known == name) {
            Some(at) => run(&CHECKS[at..=at]),
            None => usage(),
        },
        _ => usage(),
    }
}

fn run(checks: &[(&str, Check)]) -> ExitCode {
    let workspace = match Workspace::read() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("error: cannot read the workspace: {error}");
            return ExitCode::from(2);
        }
    };
    let mut failed = false;
    for (name, check) in checks {
        let findings = check(&workspace);
        for finding in &findings {
            eprintln!("error: {name}: {}: {}", finding.place, finding.message);
        }
        if findings.is_empty() {
            println!("{name}: ok");
        }
        failed |= !findings.is_empty();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn usage() -> ExitCode {
    let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    eprintln!("usage: cargo xtask check [{}]", names.join("|"));
    ExitCode::from(2)
}
