//! How a test says that it cannot be run here.
//!
//! Some tests need root, a device or a program that not every machine has. Such a test calls [`skip()`] and returns.
//! On somebody's own machine that is a line to read. In CI, for which `scripts/setup.sh` installs what tests need, it is an
//! error: else nobody would see what is not tested.

#[cfg(unix)]
mod turn;

use std::fmt::Display;
use std::io::{self, Write as _};
use std::{env, thread};

#[cfg(unix)]
pub use turn::kernel_tcp_turn;

/// Says that the test that calls this is skipped, or a part of it, and why: what is missing, and what brings it, as in
/// `rsync is not installed (make setup)`. `cargo xtask test` repeats these lines at its end.
///
/// # Panics
///
/// If the variable `CI` is set.
#[track_caller]
pub fn skip(why: impl Display) {
    match said(&why, thread::current().name(), env::var_os("CI").is_some()) {
        Ok(line) => print(&line),
        Err(fault) => panic!("{fault}"),
    }
}

/// The same where `scripts/setup.sh` cannot bring everywhere what is missing, such as docker's client: a line in CI too.
pub fn skip_in_ci_too(why: impl Display) {
    let _ = said(&why, thread::current().name(), false).map(|line| print(&line));
}

/// Not by the macro, whose output the test runner swallows: a skipped test must not look like one that ran. The runner may
/// have begun a line.
fn print(line: &str) {
    let _ = writeln!(io::stderr(), "\n{line}");
}

/// The line to print; in CI the words to fail with. The test runner gives the thread of a test its name.
fn said(why: &dyn Display, test: Option<&str>, ci: bool) -> Result<String, String> {
    if ci { Err(format!("required in CI: {why}")) } else { Ok(format!("SKIPPED: {}: {why}", test.unwrap_or("a test"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_ones_own_machine_it_is_a_line() {
        assert_eq!(said(&"no root", Some("mounts"), false), Ok("SKIPPED: mounts: no root".to_owned()));
        assert_eq!(said(&"no root", None, false), Ok("SKIPPED: a test: no root".to_owned()));
    }

    #[test]
    fn in_ci_it_is_an_error() {
        assert_eq!(said(&"no root", Some("mounts"), true), Err("required in CI: no root".to_owned()));
    }
}
