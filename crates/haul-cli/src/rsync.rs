//! `haul rsync`: rsync with haul as its remote shell.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;

use haul_tunnel::rsync::{command, quoted};

use crate::args::RsyncArgs;
use crate::exit::{Exit, Failure};

/// An option of haul's own, and its value.
type Own = (&'static str, OsString);

/// Runs rsync in the place of this program.
pub fn run(args: &RsyncArgs) -> Result<Exit, Failure> {
    let (own, rest) = split(args)?;
    let shell = |options: &[u8]| remote_shell(&own, options);
    let error = command(&rest, shell)?.exec();
    let failure = Failure::new(format!("rsync: {error}"));
    Err(if error.kind() == io::ErrorKind::NotFound { failure.hint("install rsync on both hosts") } else { failure })
}

/// Options of haul among rsync's: `--mode MODE`, `--mode=MODE` and so on, before any `--`.
fn split(args: &RsyncArgs) -> Result<(Vec<Own>, Vec<OsString>), Failure> {
    let mut own = Vec::new();
    let given = [
        ("--mode", &args.mode),
        ("--udp-port", &args.udp_port),
        ("--transport", &args.transport),
        ("--remote-haul", &args.remote_haul),
        ("--dead-after", &args.dead_after),
    ];
    own.extend(given.iter().filter_map(|(name, value)| value.as_ref().map(|value| (*name, value.clone()))));
    let mut rest = Vec::new();
    let mut words = args.rest.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
            break;
        }
        let name = given.iter().map(|(name, _)| *name).find(|name| {
            word.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|tail| tail.is_empty() || tail.first() == Some(&b'='))
        });
        match name {
            None => rest.push(word.clone()),
            Some(name) => {
                let value = match word.as_bytes().get(name.len() + 1..) {
                    Some(value) => OsStr::from_bytes(value).to_owned(),
                    None => words.next().cloned().ok_or_else(|| Failure::new(format!("{name} needs a value")))?,
                };
                own.push((name, value));
            }
        }
    }
    check(&own)?;
    Ok((own, rest))
}

/// A wrong value is said here, not by the remote shell that rsync starts.
fn check(own: &[Own]) -> Result<(), Failure> {
    for (name, value) in own {
        let text = value.to_string_lossy();
        let wrong = match *name {
            "--mode" => text.parse::<haul::ControllerChoice>().err().map(|error| error.to_string()),
            "--udp-port" => text.parse::<haul_peer::PortRange>().err().map(|error| error.to_string()),
            "--transport" => text.parse::<haul_peer::Carriage>().err().map(|error| error.to_string()),
            "--dead-after" => text.parse::<u64>().err().map(|error| error.to_string()),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(Failure::new(format!("{name} {text}: {wrong}")));
        }
    }
    Ok(())
}

/// `haul rsh` with its options, as one word for rsync's -e, which splits it at blanks and understands quotes.
fn remote_shell(own: &[Own], options: &[u8]) -> Result<OsString, Failure> {
    let program = env::current_exe().map_err(|error| Failure::new(format!("the path of this program: {error}")))?;
    let mut line = quoted(program.as_os_str());
    line.extend(b" rsh");
    for (name, value) in own {
        line.extend(format!(" {name} ").bytes());
        line.extend(quoted(value));
    }
    line.extend(options);
    Ok(OsString::from_vec(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> RsyncArgs {
        let rest = line.split(' ').map(OsString::from).collect();
        RsyncArgs { help: None, mode: None, udp_port: None, transport: None, remote_haul: None, dead_after: None, rest }
    }

    #[test]
    fn haul_s_options_are_found_among_rsync_s() {
        let args = args("-av --mode modest a --remote-haul=/opt/haul b: --udp-port 7000-7010 -- --mode");
        let (own, rest) = split(&args).expect("sound");
        assert_eq!(own, [("--mode", "modest".into()), ("--remote-haul", "/opt/haul".into()), ("--udp-port", "7000-7010".into())]);
        assert_eq!(rest, ["-av", "a", "b:", "--", "--mode"]);
    }

    #[test]
    fn wrong_values_are_said() {
        for line in ["--mode fastest a b:", "a b: --mode", "--udp-port x a b:", "--dead-after never a b:"] {
            assert!(split(&args(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn the_shell_is_this_program_with_its_options_and_ssh_s() {
        let own = [("--mode", OsString::from("modest")), ("--remote-haul", OsString::from("/my haul"))];
        let text = remote_shell(&own, b" -p 2222 -i key").expect("a path").to_string_lossy().into_owned();
        assert!(text.ends_with(" rsh --mode modest --remote-haul \"/my haul\" -p 2222 -i key"), "{text}");
    }
}
