//! The C interface as C sees it: programs in `tests/c`, compiled with warnings as errors, run as they are, with the address and the undefined-behaviour sanitizer, and under
//! valgrind where it is installed. What they assert is in them.

mod abi;
mod copies;
mod examples;
mod install;
mod perf;
mod support;

use std::process::Command;

use support::{Build, Workshop, has, run};

/// As it is, and with the sanitizers.
fn passes(program: &str, arguments: &[&str]) {
    let place = Workshop::open();
    for build in [Build::Plain, Build::Sanitized] {
        let built = place.compile(&format!("tests/c/{program}"), build);
        let mut command = place.command(&built);
        command.args(arguments);
        run(command);
    }
}

#[test]
fn life_cycles_in_every_order() {
    passes("life.c", &["7"]);
}

#[test]
fn misuse_is_answered() {
    passes("misuse.c", &[]);
}

#[test]
fn content_arrives() {
    passes("transfer.c", &[]);
}

#[test]
fn threads_share_handles() {
    passes("threads.c", &[]);
}

#[test]
fn forked_processes() {
    passes("fork.c", &[]);
}

#[test]
fn signals_are_the_applications() {
    passes("signals.c", &[]);
}

#[test]
fn many_things_are_waited_for() {
    passes("readiness.c", &[]);
}

#[test]
fn from_cxx() {
    passes("header.cpp", &[]);
}

#[test]
fn with_the_library_inside() {
    let place = Workshop::open();
    let program = place.compile("tests/c/transfer.c", Build::Static);
    run(Command::new(program));
}

/// Memory that the library itself uses wrongly: the sanitizers look at the C side only.
#[test]
fn under_valgrind() {
    if !has("valgrind") {
        assert!(std::env::var_os("CI").is_none(), "valgrind is not installed (scripts/setup.sh)");
        eprintln!("SKIPPED: valgrind is not installed (scripts/setup.sh)");
        return;
    }
    let place = Workshop::open();
    for (program, argument) in [("misuse.c", None), ("transfer.c", None), ("life.c", Some("239")), ("threads.c", Some("50"))] {
        let built = place.compile(&format!("tests/c/{program}"), Build::Plain);
        let mut command = place.command("valgrind".as_ref());
        command.args([
            "--quiet",
            "--error-exitcode=99",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
            "--fair-sched=yes",
        ]);
        command.arg(built).args(argument);
        run(command);
    }
}
