//! docs/controllers/numbers.md: every named constant of the controllers' engine, with the reason that its comment gives.

use std::fmt::Write as _;

use crate::source::Source;
use crate::workspace::Workspace;

pub const PAGE: &str = "docs/controllers/numbers.md";
const FOLDER: &str = "crates/haul-cc/src/lfn/";

const INTRODUCTION: &str = "# Numbers

<!-- made by `cargo xtask docs` from the constants of crates/haul-cc/src/lfn and their comments -->

Every named constant of the engine of `fair`, `quickstart`, `modest` and `aggressive`, by file. What
differs between the modes is in `mode.rs`, the reasons of the law are in [fair](fair.md). A number
without a unit is a ratio.
";

pub fn page(workspace: &Workspace) -> String {
    let mut text = INTRODUCTION.to_owned();
    for source in workspace.sources.iter().filter(|source| source.path.starts_with(FOLDER)) {
        let constants = constants(source);
        if constants.is_empty() {
            continue;
        }
        let path = source.path.strip_prefix(FOLDER).unwrap_or(&source.path);
        let _ = write!(text, "\n## [{path}](../../{})\n\n| name | value | unit | reason |\n|---|---:|---|---|\n", source.path);
        for constant in constants {
            let Constant { name, value, unit, reason } = constant;
            let _ = writeln!(text, "| `{name}` | {} | {unit} | {} |", value.replace('|', "\\|"), reason.replace('|', "\\|"));
        }
    }
    text
}

#[derive(Debug, PartialEq, Eq)]
struct Constant {
    name: String,
    value: String,
    unit: String,
    reason: String,
}

/// Constants outside of tests, with the comment above or beside them.
fn constants(source: &Source) -> Vec<Constant> {
    let mut found = Vec::new();
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.test) {
        let Some((name, kind, value)) = declared(source, index) else { continue };
        let above = source.lines[..index].iter().rev().take_while(|line| line.code.trim().is_empty() && !line.comment.is_empty());
        let mut reason: Vec<&str> = above.map(|line| said(&line.comment)).collect();
        reason.reverse();
        if !line.comment.is_empty() {
            reason.push(said(&line.comment));
        }
        let (value, unit) = quantity(&name, &kind, &value);
        found.push(Constant { name, value, unit, reason: reason.join(" ") });
    }
    found
}

/// Name, type and value of the constant that begins on a line.
fn declared(source: &Source, index: usize) -> Option<(String, String, String)> {
    let mut text = source.lines[index].code.trim().to_owned();
    let at = ["const ", "pub const "].iter().find(|word| text.starts_with(**word)).map(|word| word.len());
    let at = at.or_else(|| text.starts_with("pub(").then(|| text.find(") const ").map(|at| at + 8)).flatten())?;
    for line in source.lines.iter().skip(index + 1) {
        if text.ends_with(';') {
            break;
        }
        text = format!("{text} {}", line.code.trim());
    }
    let (name, rest) = text[at..].split_once(':')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let (kind, value) = rest.split_once('=')?;
    is_name.then(|| (name.to_owned(), kind.trim().to_owned(), value.trim().trim_end_matches(';').to_owned()))
}

/// What a comment says, without the marks of a documentation comment.
fn said(comment: &str) -> &str {
    comment.trim_start_matches('/').trim()
}

/// The value in words, and its unit.
fn quantity(name: &str, kind: &str, value: &str) -> (String, String) {
    let units = [
        ("Duration::from_millis(", "ms"),
        ("Duration::from_micros(", "us"),
        ("Duration::from_nanos(", "ns"),
        ("Duration::from_secs(", "s"),
        ("BitRate(", "bit/s"),
        ("Bytes(", "bytes"),
    ];
    if let Some((first, last)) = value.split_once("..") {
        let ends = [first, last.trim_start_matches('=')].map(|end| quantity(name, kind, end));
        let ends: Vec<String> = ends.into_iter().map(|(value, unit)| format!("{value} {unit}").trim().to_owned()).collect();
        return (ends.join(" to "), String::new());
    }
    for (made, unit) in units {
        if value.contains(made) {
            return (value.replace(made, "").replace(')', ""), unit.to_owned());
        }
    }
    let counted = [
        ("_PKTS", "packets"),
        ("_ROUNDS", "round trips"),
        ("_EPOCHS", "epochs"),
        ("_BYTES", "bytes"),
        ("_US", "us"),
        ("_MS", "ms"),
    ];
    let unit = counted.iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit);
    let unit = if unit.is_empty() && !kind.starts_with('f') && kind != "bool" { "count" } else { unit };
    (value.to_owned(), unit.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<[String; 4]> {
        let constants = constants(&Source::new("crates/haul-cc/src/lfn/a.rs", text));
        constants.into_iter().map(|Constant { name, value, unit, reason }| [name, value, unit, reason]).collect()
    }

    #[test]
    fn a_constant_comes_with_unit_and_reason() {
        let text = "/// Three quarters of\n/// 200 ms.\npub(super) const SHORTEST: Duration = Duration::from_millis(150);\nconst PART: f64 = 0.8; // by half\n";
        assert_eq!(all(text), [["SHORTEST", "150", "ms", "Three quarters of 200 ms."], ["PART", "0.8", "", "by half"]]);
    }

    #[test]
    fn functions_and_tests_have_none() {
        assert!(all("const fn f() -> u32 { 3 }\n#[cfg(test)]\nmod tests {\n    const A: u32 = 3;\n}\n").is_empty());
    }
}
