//! What the configuration file adds to a command line, and `haul config`: which files there are, whether they are sound, and what holds for a host.

use std::ffi::OsString;

use haul_config::{CommandLine, Config, check, definition};
use haul_copy::Places;
use haul_files::WirePath;
use haul_units::aligned;

use crate::args::{ConfigArgs, ConfigCommand, CpArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// The arguments behind a command's name, with what the files say.
pub fn command_line(arguments: Vec<OsString>) -> Result<CommandLine, Failure> {
    Ok(CommandLine::new(arguments, load()?))
}

fn load() -> Result<Config, Failure> {
    Ok(Config::load(&|key, value| check::<CpArgs>(key, value, &["from".into(), "to:".into()]))?)
}

/// As [`command_line`], for a command of a command (`fleet get`): its name is the first word that says it.
pub fn command_line_of(name: &str, mut arguments: Vec<OsString>) -> Result<CommandLine, Failure> {
    if let Some(at) = arguments.iter().position(|word| word == name) {
        arguments.remove(at);
    }
    command_line(arguments)
}

/// Where this machine stores what others leave open to it (`any:`), by the files. Asked when one of them does: what is wrong in a file is nobody else's business.
pub fn places() -> Places {
    Places::told_by(|| {
        let config = load().map_err(|failure| failure.message)?;
        Ok(config.places().unwrap_or_default().iter().map(|place| WirePath(place.clone().into_bytes())).collect())
    })
}

/// Runs the command.
pub fn run(args: &ConfigArgs) -> Result<Exit, Failure> {
    let config = load()?;
    match (&args.host, args.command) {
        (Some(host), _) => output::out_lines(&held_by(&config, host)),
        (None, Some(ConfigCommand::Check) | None) => output::out_lines(&config.summary()),
    }
    Ok(Exit::Done)
}

fn held_by(config: &Config, host: &str) -> String {
    let rows = config.rows(host, &definition::<CpArgs>());
    aligned(&rows, &[0, 1, 2]).join("\n")
}

#[cfg(test)]
mod tests {
    use haul_config::KEYS;

    use super::*;

    #[test]
    fn values_are_checked_by_the_options_own_code() {
        for (key, value) in
            [("mode", "modest"), ("limit", "2G"), ("bootstrap", "once"), ("udp-port", "60000-60100"), ("on-success", "-x; y")]
        {
            check::<CpArgs>(key, value, &["from".into(), "to:".into()]).unwrap_or_else(|message| panic!("{key}: {message}"));
        }
        for key in KEYS {
            assert!(definition::<CpArgs>().get_arguments().any(|arg| arg.get_long() == Some(key)), "{key} is an option of cp");
        }
        let message = check::<CpArgs>("limit", "2X", &["from".into(), "to:".into()]).expect_err("no rate").to_string();
        assert!(message.contains("2X") && !message.contains("error"), "{message}");
    }
}
