//! The files that there are, and what holds for a host by them.
//!
//! A file can name programs to run, so nobody else may be able to write to it: the rules are those for keys.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use haul_peer::keys::{KeysError, strict};
use haul_peer::{Host, StateDir};
use thiserror::Error;

use crate::file::{self, Content, LineError, Section, Wrong};
use crate::options::OptionError;

/// In the directory of keys.
const NAME: &str = "config.toml";
/// For all users of this machine.
const SYSTEM: &str = "/etc/haul/config.toml";

/// Whether a value can stand behind a key; else why not.
pub type Check<'a> = dyn Fn(&str, &str) -> Result<(), OptionError> + 'a;

/// Files that cannot be followed.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Somebody else could have written it.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// It cannot be read, or is no text.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of it is wrong.
    #[error("{}:{line}: {why}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// From 1 on.
        line: usize,
        /// What is wrong there.
        why: LineError,
    },
}

/// The files, this user's first.
#[derive(Debug, Default)]
pub struct Config {
    pub(crate) files: Vec<ConfigFile>,
}

/// One of them.
#[derive(Debug)]
pub struct ConfigFile {
    pub(crate) path: PathBuf,
    /// None: there is no such file.
    pub(crate) content: Option<Content>,
}

/// What holds for a host by a line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held<'a> {
    /// One of [`KEYS`](crate::KEYS).
    pub key: &'static str,
    /// As it would stand on a command line.
    pub value: &'a str,
    /// Which line.
    pub origin: Origin<'a>,
}

/// Where that line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    path: &'a Path,
    line: usize,
    pattern: Option<&'a str>,
}

impl Config {
    /// Reads the files, as far as there are any.
    pub fn load(check: &Check<'_>) -> Result<Self, ConfigError> {
        let own = StateDir::find(None).ok().map(|dir| dir.path().join(NAME));
        let mut files = Vec::new();
        for path in own.into_iter().chain([PathBuf::from(SYSTEM)]) {
            if files.iter().all(|file: &ConfigFile| file.path != path) {
                let content = content(&path, check)?;
                files.push(ConfigFile { path, content });
            }
        }
        Ok(Self { files })
    }

    /// Places of this machine, of which one is chosen for `any:`: those of this user's file, else of the machine's. None where no file has any.
    pub fn places(&self) -> Option<&[String]> {
        self.files.iter().find_map(|file| file.content.as_ref()?.places.as_deref())
    }

    /// The files that were looked for, a line each, and how much each says.
    pub fn summary(&self) -> String {
        let lines = self.files.iter().map(|file| match &file.content {
            Some(Content { sections, places }) => {
                let values: usize = sections.iter().map(|section| section.entries.len()).sum();
                let counted = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
                let places = places.as_ref().map(|places| format!(", {}", counted(places.len(), "place"))).unwrap_or_default();
                format!("{}: {}, {}{places}", file.path.display(), counted(sections.len(), "table"), counted(values, "value"))
            }
            None => format!("{}: not there", file.path.display()),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What holds for a host, in the order of [`KEYS`](crate::KEYS).
    pub fn of(&self, host: &str) -> Vec<Held<'_>> {
        let ordered: Vec<_> =
            self.files.iter().flat_map(|file| file.for_host(host).map(move |section| (file, section))).collect();
        let first = |key: &str| {
            ordered.iter().find_map(|(file, section)| {
                let entry = section.entries.iter().find(|entry| entry.key == key)?;
                let origin = Origin { path: &file.path, line: entry.line, pattern: section.pattern.as_deref() };
                Some(Held { key: entry.key, value: &entry.value, origin })
            })
        };
        file::KEYS.into_iter().filter_map(first).collect()
    }

    /// All keys, each with what holds for a host and where it comes from, which is a file or the option's default in this definition.
    pub fn rows(&self, host: &str, definition: &clap::Command) -> Vec<Vec<String>> {
        let held = self.of(host);
        let default = |key: &str| {
            let arg = definition.get_arguments().find(|arg| arg.get_long() == Some(key));
            let values = arg.iter().flat_map(|arg| arg.get_default_values());
            let text = values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
            if text.is_empty() { "-".to_owned() } else { text }
        };
        let row = |key: &str| {
            let line = held.iter().find(|held| held.key == key);
            let (value, origin) = line.map_or_else(
                || (default(key), "haul's own default".to_owned()),
                |held| (held.value.to_owned(), held.origin.to_string()),
            );
            vec![key.to_owned(), value, origin]
        };
        file::KEYS.into_iter().map(row).collect()
    }
}

impl ConfigFile {
    /// The tables that hold for a host, what counts most first.
    fn for_host(&self, host: &str) -> impl Iterator<Item = &Section> {
        let sections = self.content.iter().flat_map(|content| &content.sections);
        let mut matching: Vec<&Section> = sections.filter(|section| section.is_for(host)).collect();
        matching.sort_by_key(|section| std::cmp::Reverse(section.rank()));
        matching.into_iter()
    }
}

impl Section {
    fn is_for(&self, host: &str) -> bool {
        self.pattern.as_deref().is_none_or(|pattern| matches(pattern.as_bytes(), host.as_bytes()))
    }

    /// A name counts more than a pattern, a pattern as much as it has letters.
    fn rank(&self) -> (bool, usize) {
        let Some(pattern) = &self.pattern else { return (false, 0) };
        let letters = pattern.bytes().filter(|byte| !matches!(byte, b'*' | b'?')).count();
        (letters == pattern.len(), 1 + letters)
    }
}

/// `*` is any part of a name, `?` any letter; whether letters are large or small does not count.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => matches(rest, name) || name.split_first().is_some_and(|(_, shorter)| matches(pattern, shorter)),
        ([b'?', rest @ ..], [_, shorter @ ..]) => matches(rest, shorter),
        ([letter, rest @ ..], [other, shorter @ ..]) => letter.eq_ignore_ascii_case(other) && matches(rest, shorter),
        _ => false,
    }
}

/// The name by which a file knows a host.
pub fn name_of(host: &Host) -> String {
    match host {
        Host::Ssh(host) => host.host.to_string_lossy().into_owned(),
        Host::Daemon(host) | Host::Pinned(host, _) | Host::Open(host, _) => host.host.clone(),
    }
}

fn content(path: &Path, check: &Check<'_>) -> Result<Option<Content>, ConfigError> {
    let file = match strict::open(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        // Root's directory of keys may be shut to others.
        Err(KeysError::Io { source, .. }) if path == Path::new(SYSTEM) && source.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let mut text = String::new();
    file.take(MOST_BYTES)
        .read_to_string(&mut text)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let wrong = |Wrong { line, why }| ConfigError::Wrong { path: path.to_owned(), line, why };
    let content = file::parse(&text).map_err(wrong)?;
    for entry in content.sections.iter().flat_map(|section| &section.entries) {
        check(entry.key, &entry.value).map_err(|error| wrong(Wrong { line: entry.line, why: error.into() }))?;
    }
    Ok(Some(content))
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ", self.path.display(), self.line)?;
        match self.pattern {
            Some(pattern) => write!(f, "[host.\"{pattern}\"]"),
            None => f.write_str("[defaults]"),
        }
    }
}

/// More than this is no such file.
const MOST_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn config(texts: &[&str]) -> Config {
        let file = |(number, text): (usize, &&str)| ConfigFile {
            path: PathBuf::from(format!("/file{number}")),
            content: Some(file::parse(text).expect("a file")),
        };
        Config { files: texts.iter().enumerate().map(file).collect() }
    }

    #[test]
    fn the_nearest_table_counts_for_each_key() {
        let own = "[defaults]\nmode = 'modest'\nlimit = '1G'\n[host.'*']\nlimit = '2G'\n[host.'dtn*']\nlimit = '3G'\n[host.dtn1]\nlimit = '4G'\npaths = 2\n";
        let config = config(&[own, "[host.dtn1]\nlimit = '5G'\nretries = 3\n"]);
        let held = |host: &str| {
            let words = config.of(host).into_iter().map(|held| format!("{}={}", held.key, held.value));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(held("DTN1"), "mode=modest limit=4G paths=2 retries=3");
        assert_eq!(held("dtn2.example.org"), "mode=modest limit=3G");
        assert_eq!(held("elsewhere"), "mode=modest limit=2G");
        let dtn1 = config.of("dtn1");
        assert_eq!(dtn1[1].origin.to_string(), "/file0:9 [host.\"dtn1\"]");
        assert_eq!(dtn1[3].origin.to_string(), "/file1:3 [host.\"dtn1\"]");
        assert_eq!(dtn1[0].origin.to_string(), "/file0:2 [defaults]");
    }

    #[test]
    fn places_are_those_of_one_file() {
        let places = |own: &str| config(&[own, "places = ['/machine', '/s']\n"]).places().map(<[String]>::to_vec);
        assert_eq!(places("[defaults]\n"), Some(vec!["/machine".into(), "/s".into()]));
        assert_eq!(places("places = ['ram:']\n"), Some(vec!["ram:".into()]));
        assert_eq!(places("places = []\n"), Some(vec![]), "who wants none has none");
        assert_eq!(config(&["", ""]).places(), None);
        assert_eq!(config(&["places = ['ram:']\n"]).summary(), "/file0: 0 tables, 0 values, 1 place");
    }

    #[test]
    fn patterns_are_those_of_ssh() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*.example.org", "x.EXAMPLE.org", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
