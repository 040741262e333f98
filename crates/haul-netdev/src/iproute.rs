//! The programs of iproute2, `ip` and `tc`, in the network namespace of the thread that calls them.

use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};

/// Why one of them did not do it.
#[derive(Debug, thiserror::Error)]
pub enum IprouteError {
    /// It is not installed, or cannot be started.
    #[error("cannot run `{program}`: {source}")]
    Missing {
        /// Which.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It says what it did not do.
    #[error("`{program}` failed: {said}")]
    Failed {
        /// Which.
        program: &'static str,
        /// Its first line.
        said: String,
    },
}

/// Runs `ip` with these arguments; what it prints.
pub fn ip(arguments: &[&str]) -> Result<String, IprouteError> {
    printed("ip", arguments)
}

/// Runs `tc` with these arguments; what it prints.
pub fn tc(arguments: &[&str]) -> Result<String, IprouteError> {
    printed("tc", arguments)
}

fn printed(program: &'static str, arguments: &[&str]) -> Result<String, IprouteError> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = done(program, output)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs lines of `ip -batch`.
pub fn ip_batch(lines: &str) -> Result<(), IprouteError> {
    batch("ip", &[], lines)
}

/// The same for IPv6 where a line could mean either, as with routes.
pub fn ip6_batch(lines: &str) -> Result<(), IprouteError> {
    batch("ip", &["-6"], lines)
}

/// Runs lines of `tc -batch`.
pub fn tc_batch(lines: &str) -> Result<(), IprouteError> {
    batch("tc", &[], lines)
}

fn batch(program: &'static str, family: &[&str], lines: &str) -> Result<(), IprouteError> {
    let mut command = Command::new(program);
    command.args(family).args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = || {
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // Where it ends early, its status tells.
            let _ = input.write_all(lines.as_bytes());
        }
        child.wait_with_output()
    };
    done(program, run()).map(drop)
}

fn done(program: &'static str, output: io::Result<Output>) -> Result<Output, IprouteError> {
    let output = output.map_err(|source| IprouteError::Missing { program, source })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(IprouteError::Failed { program, said: said.lines().next().unwrap_or("it does not say why").to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_did_not_do_is_said_in_its_words() {
        match ip(&["link", "show", "dev", "no-such-device"]) {
            Err(IprouteError::Failed { program: "ip", said }) => assert!(said.contains("no-such-device"), "{said}"),
            // A machine without iproute2.
            Err(IprouteError::Missing { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
