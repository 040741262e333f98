//! What a command line's definition is shown as, and what is said to who has typed something else.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A command's definition without what its help does not show.
pub fn shown(command: &Command) -> Command {
    let mut without = Command::new(command.get_name().to_owned());
    if let Some(about) = command.get_about() {
        without = without.about(about.clone());
    }
    without = without.disable_help_subcommand(true).disable_help_flag(command.is_disable_help_flag_set());
    if let Some(version) = command.get_version() {
        without = without.version(version.to_owned());
    }
    without = without.args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned());
    let commands: Vec<Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).map(shown).collect();
    without.subcommands(commands)
}

/// That an unknown option is an operand behind `--` is a tip for who has a file of that name; to others it says nothing of what is wrong.
pub fn without_misleading_tip(mut error: clap::Error) -> clap::Error {
    let names_a_file = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if Path::new(word).exists());
    if error.kind() == ErrorKind::UnknownArgument && !names_a_file {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// What no number is, is said as people say it.
pub fn in_words(error: clap::Error) -> clap::Error {
    let Some(wrong) = error.source().and_then(|source| source.downcast_ref::<ParseIntError>()) else { return error };
    let words = match wrong.kind() {
        IntErrorKind::PosOverflow => "too large a number",
        IntErrorKind::NegOverflow => "too small a number",
        _ => "not a whole number",
    };
    let text = error.to_string().replace(&wrong.to_string(), words);
    clap::Error::raw(error.kind(), text.strip_prefix("error: ").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn who_has_no_such_file_is_not_told_to_pass_it_as_a_value() {
        let said = |word: &str| {
            let command = Command::new("x").arg(Arg::new("file"));
            without_misleading_tip(command.try_get_matches_from(["x", word]).expect_err("unknown")).to_string()
        };
        assert!(!said("--no-such-file").contains("as a value"), "{}", said("--no-such-file"));
    }

    #[test]
    fn what_is_hidden_is_left_out_at_every_level() {
        let inner = Command::new("in").arg(Arg::new("a").long("open")).arg(Arg::new("b").long("closed").hide(true));
        let all = Command::new("x").subcommand(inner).subcommand(Command::new("secret").hide(true));
        let shown = shown(&all);
        let names: Vec<_> = shown.get_subcommands().map(Command::get_name).collect();
        let options: Vec<_> = shown.find_subcommand("in").expect("there").get_arguments().filter_map(Arg::get_long).collect();
        assert_eq!((names, options), (vec!["in"], vec!["open"]));
    }
}
