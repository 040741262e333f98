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
//! Keys are long options without their dashes, values what stands behind them on a command line. Where each stands is kept, for errors and for `haul config`.

use toml::de::{DeTable, DeValue};

/// Options that may stand in a file: those about a host, not about one copy.
pub const KEYS: [&str; 12] = [
    "remote-haul",
    "bootstrap",
    "transport",
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub line: usize,
    pub message: String,
}

/// The tables of a file.
pub fn parse(text: &str) -> Result<Vec<Section>, Wrong> {
    let line = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    let wrong = |at: usize, message: String| Wrong { line: line(at), message };
    let file = DeTable::parse(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message().replace('\n', ", ")))?;
    let mut sections = Vec::new();
    for (name, value) in file.get_ref() {
        let at = name.span().start;
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("defaults", DeValue::Table(table)) => sections.push(section(None, table, &wrong)?),
            ("host", DeValue::Table(hosts)) => {
                for (pattern, value) in hosts {
                    let DeValue::Table(table) = value.get_ref() else {
                        return Err(wrong(
                            pattern.span().start,
                            format!("`{}` is in no host's table: [host.\"NAME\"]", pattern.get_ref()),
                        ));
                    };
                    sections.push(section(Some(pattern.get_ref().to_string()), table, &wrong)?);
                }
            }
            (other, _) => return Err(wrong(at, format!("`{other}` stands in no table: [defaults] or [host.\"NAME\"]"))),
        }
    }
    Ok(sections)
}

fn section(pattern: Option<String>, table: &DeTable<'_>, wrong: &impl Fn(usize, String) -> Wrong) -> Result<Section, Wrong> {
    let mut entries = Vec::new();
    for (name, value) in table {
        let at = name.span().start;
        let named = name.get_ref().as_ref();
        let Some(key) = KEYS.into_iter().find(|key| *key == named) else {
            return Err(wrong(at, format!("there is no `{named}`: {}", KEYS.join(", "))));
        };
        let value = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            _ => return Err(wrong(at, format!("{key}: neither a \"text\" nor a number"))),
        };
        entries.push(Entry { key, value, line: wrong(at, String::new()).line });
    }
    Ok(Section { pattern, entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keys_and_lines() {
        let text = "# mine\n[defaults]\nmode = \"modest\"\n\n[host.\"dtn*\"]\npaths = 2\nlimit = '2G'\n[host.one]\n";
        let sections = parse(text).expect("a file");
        let entry = |key, value: &str, line| Entry { key, value: value.into(), line };
        let expected = [
            Section { pattern: None, entries: vec![entry("mode", "modest", 3)] },
            Section { pattern: Some("dtn*".into()), entries: vec![entry("limit", "2G", 7), entry("paths", "2", 6)] },
            Section { pattern: Some("one".into()), entries: vec![] },
        ];
        assert_eq!(sections, expected);
        assert_eq!(parse("").expect("an empty file"), []);
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
            ("[defaults]\nlimit = '1G'\nlimit = '2G'\n", 3, "duplicate"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert!(wrong.line == line && wrong.message.contains(part), "{text}: {wrong:?}");
        }
    }
}
