//! `haul rsync`: rsync with haul as its remote shell.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;

use haul_tunnel::rsync::{Own, command, own_options, shell_word};

use crate::args::RsyncArgs;
use crate::exit::{Exit, Failure};

/// Runs rsync in the place of this program.
pub fn run(args: &RsyncArgs) -> Result<Exit, Failure> {
    let (own, rest) = split(args)?;
    let program = env::current_exe().map_err(|error| Failure::new(format!("the path of this program: {error}")))?;
    let shell = |options: &[u8]| Ok::<_, Failure>(shell_word(program.as_os_str(), "rsh", &own, options));
    let error = command(&rest, shell)?.exec();
    let failure = Failure::new(format!("rsync: {error}"));
    Err(if error.kind() == io::ErrorKind::NotFound { failure.hint("install rsync on both hosts") } else { failure })
}

/// Options of haul, wherever they stand, and rsync's.
fn split(args: &RsyncArgs) -> Result<(Vec<Own>, Vec<OsString>), Failure> {
    let given = [
        ("--mode", &args.mode),
        ("--udp-port", &args.udp_port),
        ("--transport", &args.transport),
        ("--relay", &args.relay),
        ("--remote-haul", &args.remote_haul),
        ("--dead-after", &args.dead_after),
    ];
    let mut own: Vec<Own> = given.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?.clone()))).collect();
    let (among, rest) = own_options(&args.rest, &given.map(|(name, _)| name)).map_err(Failure::new)?;
    own.extend(among);
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
            "--relay" => haul_peer::DaemonHost::parse(&text).err().map(|error| error.to_string()),
            "--dead-after" => text.parse::<u64>().err().map(|error| error.to_string()),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(Failure::new(format!("{name} {text}: {wrong}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> RsyncArgs {
        let rest = line.split(' ').map(OsString::from).collect();
        RsyncArgs {
            help: None,
            mode: None,
            udp_port: None,
            transport: None,
            relay: None,
            remote_haul: None,
            dead_after: None,
            rest,
        }
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
}
