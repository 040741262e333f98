//! The text of a configuration file: TOML, a table of what holds for all hosts and one for each host or pattern of hosts.
//!
//! ```toml
//! [defaults]
//! mode = "quickstart"
//!
//! [host."dtn*.example.org"]
//! limit = "2G"
//! ```
//!
//! `places`, above the first table, is a list of its own: of this machine as others see it, where `haul remote` stores what is left open to it (`any:`).
//!
//! Keys are long options without their dashes, values what stands behind them on a command line. Where each stands is kept, for errors and for `haul config`.

use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::options::OptionError;

/// Options that may stand in a file: those about a host, not about one copy.
pub const KEYS: [&str; 13] = [
    "remote-haul",
    "bootstrap",
    "transport",
    "relay",
    "udp-port",
    "mode",
    "limit",
    "paths",
    "dead-after",
    "reconnect",
    "retries",
    "on-success",
    "on-failure",
];

/// The list of places.
const PLACES: &str = "places";

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// What holds for hosts.
    pub sections: Vec<Section>,
    /// Places of this machine, of which one is chosen for `any:`; none where it says nothing of them.
    pub places: Option<Vec<String>>,
}

/// A table of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Which hosts; none: all.
    pub pattern: Option<String>,
    /// What holds for them.
    pub entries: Vec<Entry>,
}

/// A line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// One of [`KEYS`].
    pub key: &'static str,
    /// As it would stand on a command line.
    pub value: String,
    /// Where, from 1 on.
    pub line: usize,
}

/// What is wrong, and in which line.
#[derive(Debug)]
pub struct Wrong {
    pub line: usize,
    pub why: LineError,
}

/// What is wrong with a line.
#[derive(Debug, Error)]
pub enum LineError {
    /// It is no TOML; what its parser says.
    #[error("{0}")]
    Syntax(String),
    /// Something stands outside of the tables that there are.
    #[error("`{0}` stands in no table: [defaults] or [host.\"NAME\"]")]
    NoTable(String),
    /// Something stands in the table of hosts itself.
    #[error("`{0}` is in no host's table: [host.\"NAME\"]")]
    NoHost(String),
    /// No option of this name may stand in a file.
    #[error("there is no `{named}`: {}", KEYS.join(", "))]
    NoKey {
        /// Its name.
        named: String,
    },
    /// The places are no list of paths.
    #[error("places: a list of directories, \"ram:\" and \"gfarm:/path\" is wanted: places = [\"/scratch/me\", \"ram:\"]")]
    NoPlaces,
    /// They stand in a table.
    #[error("places stands above the first table")]
    PlacesInTable,
    /// The value is a list, a date or the like.
    #[error("{0}: neither a \"text\" nor a number")]
    NoValue(&'static str),
    /// The value cannot stand behind the option.
    #[error(transparent)]
    Option(#[from] OptionError),
}

/// The tables of a file.
pub fn parse(text: &str) -> Result<Content, Wrong> {
    let line = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    let wrong = |at: usize, why: LineError| Wrong { line: line(at), why };
    let syntax = |error: &toml::de::Error| LineError::Syntax(error.message().replace('\n', ", "));
    let file = DeTable::parse(text).map_err(|error| wrong(error.span().map_or(0, |span| span.start), syntax(&error)))?;
    let (mut sections, mut listed) = (Vec::new(), None);
    for (name, value) in file.get_ref() {
        let at = name.span().start;
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("defaults", DeValue::Table(table)) => sections.push(section(None, table, &line)?),
            ("host", DeValue::Table(hosts)) => {
                for (pattern, value) in hosts {
                    let DeValue::Table(table) = value.get_ref() else {
                        return Err(wrong(pattern.span().start, LineError::NoHost(pattern.get_ref().to_string())));
                    };
                    sections.push(section(Some(pattern.get_ref().to_string()), table, &line)?);
                }
            }
            (PLACES, value) => listed = Some(places(value).ok_or_else(|| wrong(at, LineError::NoPlaces))?),
            (other, _) => return Err(wrong(at, LineError::NoTable(other.to_owned()))),
        }
    }
    Ok(Content { sections, places: listed })
}

fn places(value: &DeValue<'_>) -> Option<Vec<String>> {
    let DeValue::Array(list) = value else { return None };
    let place = |value: &DeValue<'_>| match value {
        DeValue::String(place) if !place.is_empty() && !place.starts_with("any:") => Some(place.to_string()),
        _ => None,
    };
    list.iter().map(|value| place(value.get_ref())).collect()
}

fn section(pattern: Option<String>, table: &DeTable<'_>, line: &impl Fn(usize) -> usize) -> Result<Section, Wrong> {
    let mut entries = Vec::new();
    for (name, value) in table {
        let line = line(name.span().start);
        let named = name.get_ref().as_ref();
        if named == PLACES {
            return Err(Wrong { line, why: LineError::PlacesInTable });
        }
        let Some(key) = KEYS.into_iter().find(|key| *key == named) else {
            return Err(Wrong { line, why: LineError::NoKey { named: named.to_owned() } });
        };
        let value = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            _ => return Err(Wrong { line, why: LineError::NoValue(key) }),
        };
        entries.push(Entry { key, value, line });
    }
    Ok(Section { pattern, entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keys_and_lines() {
        let text = "# mine\nplaces = ['/scratch/me', 'ram:']\n[defaults]\nmode = \"modest\"\n\n[host.\"dtn*\"]\npaths = 2\nlimit = '2G'\n[host.one]\n";
        let Content { sections, places } = parse(text).expect("a file");
        assert_eq!(places, Some(vec!["/scratch/me".into(), "ram:".into()]));
        let entry = |key, value: &str, line| Entry { key, value: value.into(), line };
        let expected = [
            Section { pattern: None, entries: vec![entry("mode", "modest", 4)] },
            Section { pattern: Some("dtn*".into()), entries: vec![entry("limit", "2G", 8), entry("paths", "2", 7)] },
            Section { pattern: Some("one".into()), entries: vec![] },
        ];
        assert_eq!(sections, expected);
        assert_eq!(parse("").expect("an empty file"), Content::default());
    }

    #[test]
    fn what_is_wrong_is_in_a_line() {
        for (text, line, part) in [
            ("[defaults]\nmode = \n", 2, "value"),
            ("[defaults]\n\nmood = 'fair'\n", 3, "there is no `mood`: remote-haul"),
            ("limit = '2G'\n", 1, "`limit` stands in no table"),
            ("[hosts.x]\n", 1, "`hosts`"),
            ("[host]\nlimit = '2G'\n", 2, "is in no host's table"),
            ("[defaults]\nlimit = ['2G']\n", 2, "limit: neither"),
            ("places = 'ram:'\n", 1, "places: a list"),
            ("places = ['/a', 7]\n", 1, "places: a list"),
            ("places = ['any:x']\n", 1, "places: a list"),
            ("[defaults]\nplaces = ['ram:']\n", 2, "above the first table"),
            ("[defaults]\nlimit = '1G'\nlimit = '2G'\n", 3, "duplicate"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert!(wrong.line == line && wrong.why.to_string().contains(part), "{text}: {wrong:?}");
        }
    }
}
