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

/// What no number is, and one that may not be, is said as people say it.
pub fn in_words(error: clap::Error) -> clap::Error {
    let Some(source) = error.source() else { return error };
    let told = source.to_string();
    let words = if let Some(wrong) = source.downcast_ref::<ParseIntError>() {
        match wrong.kind() {
            IntErrorKind::PosOverflow => "too large a number",
            IntErrorKind::NegOverflow => "too small a number",
            _ => "not a whole number",
        }
        .to_owned()
    } else if let Some(words) = range_in_words(&told) {
        words
    } else {
        return error;
    };
    let text = error.to_string().replace(&told, &words);
    clap::Error::raw(error.kind(), text.strip_prefix("error: ").unwrap_or(&text))
}

/// `5 is not in 8..=3600` is said in Rust's words.
fn range_in_words(told: &str) -> Option<String> {
    let (_, range) = told.split_once(" is not in ")?;
    let (least, most) = range.split_once("..")?;
    match (least, most.strip_prefix('=')) {
        ("", Some(most)) => Some(format!("it may be {most} at most")),
        (least, Some(most)) => Some(format!("it may be {least} to {most}")),
        // Without an end, or with one that is not part of it.
        (least, None) if most.is_empty() => Some(format!("it may be {least} at least")),
        (least, None) => Some(format!("it may be {least} or more, and less than {most}")),
    }
}

#[cfg(unix)]
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
    fn ranges_are_said_in_words() {
        assert_eq!(range_in_words("5 is not in 8..=3600").as_deref(), Some("it may be 8 to 3600"));
        assert_eq!(range_in_words("0 is not in 1..").as_deref(), Some("it may be 1 at least"));
        let command = Command::new("x").arg(Arg::new("n").value_parser(clap::value_parser!(u16).range(576..)));
        let error = in_words(command.try_get_matches_from(["x", "20"]).expect_err("too small"));
        assert!(error.to_string().contains("it may be 576 to 65535") && !error.to_string().contains(".."), "{error}");
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
