//! A command line with what the files say of a host put before it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args};
use haul_peer::Host;

use thiserror::Error;

use crate::file::KEYS;
use crate::found::{Config, Held, name_of};
use crate::options::{OptionError, definition, named};

/// What a file says does not go with the command line.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Discord {
    /// What the command line's parser says.
    pub why: OptionError,
    /// Where in files what holds for the host stands.
    pub lines: Vec<String>,
}

/// A command that reaches all its hosts in one way is to reach them in several.
#[derive(Debug, Error)]
pub enum Together {
    /// See there.
    #[error(transparent)]
    Discord(#[from] Discord),
    /// The files say different things of two of them.
    #[error("{key}: {one} and {other}, and all hosts of this command are reached in one way")]
    Differs {
        /// The key.
        key: &'static str,
        /// A host, and what holds for it.
        one: String,
        /// Another one.
        other: String,
    },
}

/// The arguments behind a command's name, and the files.
pub struct CommandLine {
    arguments: Vec<OsString>,
    config: Config,
}

impl CommandLine {
    /// These arguments, with what the files say.
    pub const fn new(arguments: Vec<OsString>, config: Config) -> Self {
        Self { arguments, config }
    }

    /// The arguments that hold for a host, or for none in particular.
    pub fn of<A: Args>(&self, host: Option<&Host>) -> Result<A, Discord> {
        let definition = definition::<A>();
        let held = self.config.of(&host.map(name_of).unwrap_or_default());
        // They have been parsed before: what is wrong with them now comes from a file.
        let parsed = |arguments: Vec<OsString>| definition.clone().try_get_matches_from(arguments);
        let given = parsed(named(&self.arguments, &[])).map_err(|error| from_file(error, &[]))?;
        let arguments: Vec<OsString> = held.iter().filter(|held| counts(&definition, &given, held.key)).map(word).collect();
        let matches = parsed(named(&self.arguments, &arguments)).map_err(|error| from_file(error, &held))?;
        A::from_arg_matches(&matches).map_err(|error| from_file(error, &held))
    }

    /// The arguments that hold for all of some hosts, but for keys that are each host's own.
    pub fn of_all<A: Args>(&self, hosts: &[Host], own: &[&str]) -> Result<A, Together> {
        let definition = definition::<A>();
        let parsed = |arguments: Vec<OsString>| definition.clone().try_get_matches_from(arguments);
        let given = parsed(named(&self.arguments, &[])).map_err(|error| from_file(error, &[]))?;
        let names: Vec<String> = if hosts.is_empty() { vec![String::new()] } else { hosts.iter().map(name_of).collect() };
        let mut agreed = Vec::new();
        for key in KEYS.into_iter().filter(|key| !own.contains(key) && counts(&definition, &given, key)) {
            let of = |name: &String| self.config.of(name).into_iter().find(|held| held.key == key);
            let Some((first, rest)) = names.split_first() else { continue };
            let held = of(first);
            let value = held.map(|held| held.value);
            if let Some(name) = rest.iter().find(|name| of(name).map(|held| held.value) != value) {
                let tell = |name: &String| match of(name) {
                    Some(held) => format!("{} for {name} ({})", held.value, held.origin),
                    None => format!("nothing for {name}"),
                };
                return Err(Together::Differs { key, one: tell(first), other: tell(name) });
            }
            agreed.extend(held);
        }
        let arguments: Vec<OsString> = agreed.iter().map(word).collect();
        let matches = parsed(named(&self.arguments, &arguments)).map_err(|error| from_file(error, &agreed))?;
        Ok(A::from_arg_matches(&matches).map_err(|error| from_file(error, &agreed))?)
    }

    /// What the files say of one key for a host.
    pub fn held(&self, host: &Host, key: &str) -> Option<Held<'_>> {
        self.config.of(&name_of(host)).into_iter().find(|held| held.key == key)
    }

    /// The options that the command line gives, for another command line: those that are wanted, short where they have a letter.
    pub fn options<A: Args>(&self, wanted: impl Fn(&Arg) -> bool) -> Vec<OsString> {
        let definition = definition::<A>();
        let Ok(given) = definition.clone().try_get_matches_from(named(&self.arguments, &[])) else { return Vec::new() };
        let is_given = |arg: &&Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let given_of = |arg: &Arg| {
            let id = arg.get_id().as_str();
            let long = arg.get_long().map(|long| format!("--{long}"));
            let name = arg.get_short().map(|short| format!("-{short}")).or(long).unwrap_or_default();
            let with = |value: &OsStr| match name.strip_prefix("--") {
                Some(_) => vec![[OsStr::new(&name), OsStr::new("="), value].into_iter().collect()],
                None => vec![OsString::from(&name), value.to_owned()],
            };
            match arg.get_action() {
                ArgAction::SetTrue => vec![OsString::from(&name)],
                ArgAction::Count => vec![OsString::from(&name); given.get_count(id).into()],
                // One whose value may be left out.
                _ if given.get_raw(id).is_none_or(|values| values.len() == 0) => vec![OsString::from(&name)],
                _ => given.get_raw(id).into_iter().flatten().flat_map(with).collect(),
            }
        };
        definition.get_arguments().filter(|arg| !arg.is_positional() && wanted(arg)).filter(is_given).flat_map(given_of).collect()
    }
}

fn word(held: &Held<'_>) -> OsString {
    format!("--{}={}", held.key, held.value).into()
}

/// The arguments behind a command's name, in a line that begins with the program's: one of `commands`, or another one, which the command follows.
pub fn behind_name(line: &[OsString], commands: &[&str]) -> Vec<OsString> {
    let program = line.first().and_then(|name| Path::new(name).file_name()).and_then(|name| name.to_str());
    let program = program.map(|name| name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(name));
    let mut arguments = line.iter().skip(1);
    if !program.is_some_and(|program| commands.contains(&program)) {
        // Before a command's name there are options of all commands, which have no values.
        arguments.by_ref().find(|word| !word.to_string_lossy().starts_with('-'));
    }
    arguments.cloned().collect()
}

/// Whether an option of a file counts: the command has it, and the command line has neither it nor another that excludes it.
fn counts(definition: &clap::Command, given: &ArgMatches, key: &str) -> bool {
    let is_given = |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let Some(arg) = definition.get_arguments().find(|arg| arg.get_long() == Some(key)) else { return false };
    let excludes = |other: &&Arg| definition.get_arg_conflicts_with(other).iter().any(|one| one.get_id() == arg.get_id());
    let others = definition.get_arg_conflicts_with(arg);
    !is_given(arg) && !others.into_iter().any(is_given) && !definition.get_arguments().filter(excludes).any(is_given)
}

fn from_file(error: clap::Error, held: &[Held<'_>]) -> Discord {
    Discord { why: error.into(), lines: held.iter().map(|held| held.origin.to_string()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::found::ConfigFile;

    #[derive(Debug, Args)]
    struct Copying {
        operands: Vec<String>,
        #[arg(long)]
        limit: Option<String>,
        #[arg(long, default_value_t = 0)]
        retries: u32,
        #[arg(long)]
        timeout: Option<u32>,
        #[arg(long, conflicts_with = "timeout")]
        dead_after: Option<u32>,
    }

    fn of(line: &str, host: &str) -> Copying {
        let text = "[defaults]\nretries = 3\nlimit = '1G'\ndead-after = 60\nmode = 'fair'\n[host.far]\nlimit = '2G'\n";
        let content = Some(file::parse(text).expect("a file"));
        let config = Config { files: vec![ConfigFile { path: "/file".into(), content }] };
        let arguments = line.split(' ').map(OsString::from).collect();
        let host = Host::Ssh(haul_peer::SshHost::parse(host.as_ref()).expect("a host"));
        CommandLine::new(arguments, config).of(Some(&host)).expect("sound")
    }

    #[test]
    fn the_command_line_counts_more_than_a_file_and_a_file_more_than_the_default() {
        let far = of("a --no-strict-modes b", "me@far");
        assert_eq!((far.retries, far.limit.as_deref(), far.dead_after), (3, Some("2G"), Some(60)));
        assert_eq!(far.operands, ["a", "b"]);
        let own = of("--limit 5M a --retries=0", "far");
        assert_eq!((own.retries, own.limit.as_deref()), (0, Some("5M")));
        assert_eq!(of("a", "near").limit.as_deref(), Some("1G"));
    }

    #[test]
    fn what_differs_between_hosts_that_are_reached_in_one_way_is_said() {
        let text = "[defaults]\nretries = 3\n[host.far]\nlimit = '2G'\n[host.'s*']\ndead-after = 60\n";
        let line = |words: &str| {
            let content = Some(file::parse(text).expect("a file"));
            let config = Config { files: vec![ConfigFile { path: "/file".into(), content }] };
            CommandLine::new(words.split(' ').map(OsString::from).collect(), config)
        };
        let hosts = |names: &[&str]| -> Vec<Host> {
            let host = |name: &&str| Host::Ssh(haul_peer::SshHost::parse(name.as_ref()).expect("a host"));
            names.iter().map(host).collect()
        };
        let same: Copying = line("a").of_all(&hosts(&["s1", "s2"]), &[]).expect("they agree");
        assert_eq!((same.retries, same.dead_after, same.limit), (3, Some(60), None));
        let error = line("a").of_all::<Copying>(&hosts(&["s1", "far"]), &["limit"]).expect_err("s1 has more").to_string();
        assert!(error.starts_with("dead-after: 60 for s1 (/file:6 [host.\"s*\"]) and nothing for far"), "{error}");
        let error = line("a").of_all::<Copying>(&hosts(&["near", "far"]), &[]).expect_err("far has a limit").to_string();
        assert!(error.starts_with("limit: nothing for near and 2G for far"), "{error}");
        // What the command line says, and what each has for itself, need not agree.
        let told: Copying = line("--dead-after=7 a").of_all(&hosts(&["s1", "far"]), &["limit"]).expect("told");
        assert_eq!((told.dead_after, told.limit), (Some(7), None));
        assert_eq!(line("a").held(&hosts(&["far"])[0], "limit").map(|held| held.value.to_owned()), Some("2G".to_owned()));
        assert_eq!(line("a").of_all::<Copying>(&[], &[]).expect("the defaults").retries, 3);
    }

    #[test]
    fn the_words_of_a_command_are_those_behind_its_name() {
        for line in ["hcp -r a b", "haul cp -r a b", "haul --no-strict-modes cp -r a b", "/usr/bin/haul cp -r a b"] {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(behind_name(&line, &["hcp"]), ["-r", "a", "b"], "{line:?}");
        }
    }

    #[test]
    fn options_are_given_again_without_operands() {
        let arguments = ["a", "--limit", "5M", "b", "--retries=2", "--timeout=9"].map(OsString::from).to_vec();
        let arguments = CommandLine::new(arguments, Config { files: Vec::new() });
        let options = arguments.options::<Copying>(|arg| arg.get_id() != "timeout");
        assert_eq!(options, ["--limit=5M", "--retries=2"]);
    }

    #[test]
    fn another_word_for_the_same_thing_counts_more_too() {
        let own = of("--timeout 30 a", "far");
        assert_eq!((own.timeout, own.dead_after), (Some(30), None));
    }
}
