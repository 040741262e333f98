//! `cargo xtask`: checks of this workspace that no ready-made tool makes, and its tests.
//!
//! `cargo xtask check` runs them all: crate arrows and their picture, circles of files, layers within a crate, purity of the sans-IO crates, what is public for
//! nobody, reasons of numbers, length of files and size of crates, stubs, a peer's words, tests that SECURITY.md names, results, what is generated in documents, links. Each check is a pure function from text to findings, tested with input that
//! must fail; this file only reads the workspace and prints.
//! `cargo xtask test` runs every test program, several at once (`testing/`).
//! `cargo xtask ablation` says which golden rows depend on which number of the controllers (`ablation/`).
//! `cargo xtask arrows` writes the table and the picture of the crates into ARCHITECTURE.md.
//! `cargo xtask docs` writes docs/results.md, docs/controllers/numbers.md and the golden tables of documents, and wraps lines.

mod ablation;
mod arrows;
mod circles;
mod documents;
mod finding;
mod layers;
mod length;
mod peer_text;
mod picture;
mod promises;
mod public;
mod purity;
mod reasons;
mod results;
mod runs;
mod size;
mod source;
mod stubs;
mod testing;
mod workspace;
mod wrap;

use std::process::ExitCode;

use finding::Finding;
use workspace::{ARCHITECTURE, Workspace};

type Check = fn(&Workspace) -> Vec<Finding>;

const CHECKS: &[(&str, Check)] = &[
    ("arrows", arrows::check),
    ("picture", picture::check),
    ("circles", circles::check),
    ("layers", layers::check),
    ("purity", purity::check),
    ("public", public::check),
    ("reasons", reasons::check),
    ("length", length::check),
    ("size", size::check),
    ("stubs", stubs::check),
    ("peer-text", peer_text::check),
    ("promises", promises::check),
    ("results", results::check),
    ("documents", documents::check),
    ("dates", documents::dates::check),
    ("links", documents::links::check),
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
        ["ablation", wanted @ ..] => ablation::run(wanted),
        ["arrows"] => draw(),
        ["docs"] => write_documents(),
        ["test", wanted @ ..] => testing::test(wanted),
        _ => usage(),
    }
}

fn draw() -> ExitCode {
    let Some(workspace) = read() else { return ExitCode::from(2) };
    let Some(text) = picture::updated(&workspace) else {
        eprintln!("error: the marks around the table of crates are missing in {ARCHITECTURE}");
        return ExitCode::FAILURE;
    };
    match std::fs::write(workspace::root().join(ARCHITECTURE), text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write {ARCHITECTURE}: {error}");
            ExitCode::from(2)
        }
    }
}

fn write_documents() -> ExitCode {
    let Some(workspace) = read() else { return ExitCode::from(2) };
    for document in documents::updated(&workspace) {
        if workspace.documents.contains(&document) {
            continue;
        }
        if let Err(error) = std::fs::write(workspace::root().join(&document.path), &document.text) {
            eprintln!("error: cannot write {}: {error}", document.path);
            return ExitCode::from(2);
        }
        println!("{}", document.path);
    }
    ExitCode::SUCCESS
}

fn read() -> Option<Workspace> {
    Workspace::read().inspect_err(|error| eprintln!("error: cannot read the workspace: {error}")).ok()
}

fn run(checks: &[(&str, Check)]) -> ExitCode {
    let Some(workspace) = read() else { return ExitCode::from(2) };
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
    eprintln!(
        "usage: cargo xtask check [{}]\n       cargo xtask ablation [PART OF A NUMBER'S NAME]..\n       cargo xtask arrows\n       cargo xtask docs\n       cargo xtask test [PART OF A PROGRAM'S NAME]..",
        names.join("|")
    );
    ExitCode::from(2)
}
