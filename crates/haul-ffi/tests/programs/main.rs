//! The C interface as C sees it: programs in `tests/c`, compiled with warnings as errors, run as they are, with the address and the undefined-behaviour sanitizer, and under
//! valgrind where it is installed. What they assert is in them.

mod abi;
mod copies;
mod examples;
mod install;
mod perf;
mod support;

use std::process::Command;

use support::{Build, Workshop, builds, run};

/// As it is, with the sanitizers and under valgrind, which is 20 to 50 times slower: there with other arguments, if they are given.
fn passes(program: &str, arguments: &[&str], watched: &[&str]) {
    let place = Workshop::open();
    for build in builds() {
        let mut command = place.program(&format!("tests/c/{program}"), build);
        command.args(if build == Build::Watched { watched } else { arguments });
        run(command);
    }
}

#[test]
fn life_cycles_in_every_order() {
    passes("life.c", &["7"], &["239"]);
}

#[test]
fn misuse_is_answered() {
    passes("misuse.c", &[], &[]);
}

#[test]
fn content_arrives() {
    passes("transfer.c", &[], &[]);
}

#[test]
fn threads_share_handles() {
    passes("threads.c", &[], &["50"]);
}

#[test]
fn forked_processes() {
    passes("fork.c", &[], &[]);
}

#[test]
fn signals_are_the_applications() {
    passes("signals.c", &[], &[]);
}

#[test]
fn many_things_are_waited_for() {
    passes("readiness.c", &[], &[]);
}

#[test]
fn from_cxx() {
    passes("header.cpp", &[], &[]);
}

#[test]
fn with_the_library_inside() {
    let place = Workshop::open();
    let program = place.compile("tests/c/transfer.c", Build::Static);
    run(Command::new(program));
}
