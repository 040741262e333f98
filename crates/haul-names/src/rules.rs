//! Rules in a file, `- PATTERN` and `+ PATTERN` a line, as a merge file of rsync and a filter file of rclone have them, in the language of [`Filter`](crate::Filter).
//!
//! There the *first* rule that matches decides, here the last: so the rules are turned round. And there a pattern with a `/` inside, but none in front, is met at any depth, so it gets `**/` in front.
//! What a line can say besides (other files, what is protected, modifiers) has no counterpart and is an error: a rule that is passed over in silence would copy what was to stay at home.

use thiserror::Error;

/// A line that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: `{text}`: {why}")]
pub struct RuleError {
    /// Which, from 1.
    pub line: usize,
    /// Its beginning.
    pub text: String,
    /// What is wrong.
    pub why: &'static str,
}

/// The rules of a file as lines of a [`Filter`](crate::Filter), the strongest last. Empty lines and those that begin with `#` or `;` count for nothing.
pub fn rules(text: &str) -> Result<Vec<String>, RuleError> {
    let mut lines = Vec::new();
    let numbered = text.trim_start_matches('\u{feff}').lines().enumerate();
    for (at, line) in numbered.filter(|(_, line)| !(line.trim().is_empty() || line.starts_with(['#', ';']))) {
        let wrong = |why| RuleError { line: at + 1, text: line.chars().take(40).collect(), why };
        let (takes, pattern) = sign(line).ok_or_else(|| wrong("a rule is `- PATTERN` or `+ PATTERN`"))?;
        // `dir/***` is the directory and all in it.
        let dir = pattern.strip_suffix("/***");
        let met = dir.map_or_else(|| vec![pattern.to_owned()], |dir| vec![format!("{dir}/"), format!("{dir}/**")]);
        for pattern in met {
            if pattern.split('/').any(|name| name.contains("**") && name != "**") {
                return Err(wrong("`**` stands for directories, between slashes"));
            }
            if pattern.trim_matches('/').is_empty() {
                return Err(wrong("no pattern"));
            }
            lines.push(format!("{}{}", if takes { "!" } else { "" }, spelled(&pattern)));
        }
    }
    lines.reverse();
    Ok(lines)
}

/// Whether a rule takes what matches, and its pattern.
fn sign(line: &str) -> Option<(bool, &str)> {
    let (word, pattern) = line.split_once([' ', '_'])?;
    match word {
        "-" | "exclude" => Some((false, pattern)),
        "+" | "include" => Some((true, pattern)),
        _ => None,
    }
}

/// A pattern in the language of `.gitignore` files.
fn spelled(pattern: &str) -> String {
    let is_deep = pattern.trim_end_matches('/').contains('/') && !pattern.starts_with(['/']) && !pattern.starts_with("**/");
    let before = match pattern {
        _ if is_deep => "**/",
        // Where it is no pattern, but something about one.
        pattern if pattern.starts_with(['!', '#']) => "\\",
        _ => "",
    };
    // A space at the end is a part of the name there, and nothing in a .gitignore.
    let (pattern, spaces) = pattern.split_at(pattern.trim_end_matches(' ').len());
    format!("{before}{pattern}{}", "\\ ".repeat(spaces.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;

    #[test]
    fn the_first_rule_decides_and_slashes_inside_do_not_anchor() {
        let text = "\u{feff}# only C\n\n; nor this\n+ keep.o\n- *.o\n- /top\n- sub/tmp\n+ lib/***\n- lib/x\n- tmp2/***\nexclude a b \ninclude #x\n- !y\n- #x\r\n";
        let filter = Filter::new(rules(text).expect("rules")).expect("patterns");
        let out: Vec<&str> =
            ["keep.o", "d/a.o", "top", "d/top", "sub/tmp", "d/sub/tmp", "lib/x", "a/tmp2/b", "a b ", "a b", "#x", "!y"]
                .into_iter()
                .filter(|path| filter.leaves_out(path.as_bytes(), false))
                .collect();
        assert_eq!(out, ["d/a.o", "top", "sub/tmp", "d/sub/tmp", "a/tmp2/b", "a b ", "!y"]);
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        for (text, line) in [
            ("- a\n. other", 2),
            ("P keep", 1),
            (": .rsync-filter", 1),
            ("!", 1),
            ("-s a", 1),
            ("-! a", 1),
            ("*.o", 1),
            ("\n\n- ", 3),
            ("- /", 1),
            ("- a**b", 1),
        ] {
            assert_eq!(rules(text).map_err(|error| error.line), Err(line), "{text:?}");
        }
        let error = rules("merge x").expect_err("no rule");
        assert_eq!(error.to_string(), "line 1: `merge x`: a rule is `- PATTERN` or `+ PATTERN`");
    }
}
