//! A number in a congestion controller is a decision, and has its reason or its source beside it.
//!
//! - A constant has a comment: on its lines, or right above. One comment does for one constant.
//! - A number in the midst of code has one on its line, right above its statement, or above the function, whose doc has the formula or the source.
//!
//! Numbers that say nothing by themselves need none: see [`is_plain`].

use crate::finding::Finding;
use crate::source::{Line, Source};
use crate::workspace::Workspace;

/// Whose numbers are decisions.
const DECIDING: &str = "crates/haul-cc/src/";

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().filter(|source| source.path.starts_with(DECIDING)).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The first line of the statement, and of the function; whether comments stand above them.
    let (mut statement, mut statement_explained) = (0, false);
    let mut function_explained = false;
    for (index, line) in source.lines.iter().enumerate() {
        if index == statement {
            statement_explained = is_explained(&source.lines, index);
        }
        let code = line.code.trim();
        if is_function(code) {
            function_explained = says_numbers(&source.lines, index);
        }
        statement_explained |= !line.comment.is_empty();
        let explained = statement_explained || function_explained && !is_constant(code);
        if !line.test && !explained {
            let numbers = numbers(code).into_iter().filter(|number| !is_plain(number) && !is_guard(code, number));
            findings.extend(numbers.map(|number| Finding {
                place: source.place(index + 1),
                message: format!("{number} has no reason or source beside it"),
            }));
        }
        if code.is_empty() || code.ends_with([';', '{', '}', ',']) || code.starts_with("#[") {
            statement = index + 1;
        }
    }
    findings
}

/// Whether a comment stands right above a line, attributes between them or not.
fn is_explained(lines: &[Line], index: usize) -> bool {
    let mut above = lines[..index].iter().rev().skip_while(|line| line.code.trim().starts_with("#["));
    above.next().is_some_and(|line| line.code.trim().is_empty() && !line.comment.is_empty())
}

/// Whether the comment above a function has a number or a formula; one that only says what the function is for gives no reason.
fn says_numbers(lines: &[Line], index: usize) -> bool {
    let above = lines[..index]
        .iter()
        .rev()
        .take_while(|line| line.code.trim().is_empty() && !line.comment.is_empty() || line.code.trim().starts_with("#["));
    above.into_iter().any(|line| line.comment.contains(|c: char| c.is_ascii_digit() || c == '='))
}

fn is_function(code: &str) -> bool {
    code.split(|c: char| !is_word(c)).any(|word| word == "fn") && !code.starts_with("const ")
}

fn is_constant(code: &str) -> bool {
    code.split_whitespace().take(2).any(|word| word == "const") && !is_function(code)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The numbers in a line of code as they are written; an index of a tuple is none.
fn numbers(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(|c: char| c.is_ascii_digit()).map(|at| at + from) {
        let before = &code[..at];
        let part = |c: char| is_word(c) || c == '.';
        let mut length = code[at..].find(|c| !part(c)).unwrap_or(code.len() - at);
        if let Some(range) = code[at..at + length].find("..") {
            length = range;
        }
        // `1e-6`
        let rest = &code[at + length..];
        if code[at..at + length].ends_with('e') && rest.starts_with('-') {
            length += 1 + rest[1..].find(|c| !part(c)).unwrap_or(rest.len() - 1);
        }
        let is_name = before.ends_with(is_word);
        let is_index = before.ends_with('.') && !before.ends_with("..");
        if !is_name && !is_index {
            found.push(&code[at..at + length]);
        }
        from = at + length.max(1);
    }
    found
}

/// Numbers that are no decision: nothing, one, two and a half, bits in a byte, and powers of ten, which change units.
fn is_plain(number: &str) -> bool {
    let digits: String = number.chars().filter(|c| *c != '_').collect();
    let value = digits.find(|c: char| c.is_ascii_alphabetic() && c != 'e').map_or(digits.as_str(), |at| &digits[..at]);
    let Ok(value) = value.trim_end_matches('.').parse::<f64>() else { return false };
    let is_power_of_ten = value > 0.0 && (value.log10() - value.log10().round()).abs() < 1e-9;
    [0.0, 0.5, 1.0, 2.0, 8.0].contains(&value) || is_power_of_ten && value >= 1_000.0
}

/// `.max(1e-6)`: no division by nothing.
fn is_guard(code: &str, number: &str) -> bool {
    number.starts_with("1e-") && code.contains(&format!(".max({number})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(code: &str) -> Vec<String> {
        let path = format!("{DECIDING}a.rs");
        let workspace = Workspace { sources: vec![Source::new(&path, code)], ..Workspace::default() };
        check(&workspace).into_iter().map(|finding| finding.place.replace(&format!("{path}:"), "")).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_constant_without_a_reason_is_found() {
        assert_eq!(lines("use a;\n\nconst A: f64 = 0.7;"), ["3"]);
        assert_eq!(lines("/// Why.\nconst A: f64 = 0.7;\nconst B: u64 = 5;"), ["3"]);
        assert_eq!(lines("const A: Duration =\n    Duration::from_millis(12);"), ["2"]);
        assert_eq!(lines("impl A {\n    const B: u32 = 63;\n}"), ["2"]);
    }

    #[test]
    fn a_constant_with_one_is_not() {
        for code in
            ["/// Why.\nconst A: f64 = 0.7;", "const A: f64 = 0.7; // Why.", "/// Why.\n#[allow(a)]\npub const A: u8 = 7;"]
        {
            assert_eq!(lines(code), NONE, "{code}");
        }
    }

    #[test]
    fn a_number_in_the_midst_of_code_is_found() {
        assert_eq!(lines("fn f() {\n    g(x * 0.7);\n}"), ["2"]);
        assert_eq!(lines("fn f() {\n    // Why.\n    g(x);\n    g(x * 0.7);\n}"), ["4"]);
        assert_eq!(lines("/// Does f.\nfn f() {\n    g(x * 0.7);\n}"), ["3"]);
        assert_eq!(lines("fn f() {\n    // Why.\n    g(x)\n        .h(0.7);\n    g(3..5);\n}"), ["5", "5"]);
    }

    #[test]
    fn one_that_is_explained_is_not() {
        for code in [
            "fn f() {\n    // Why.\n    g(x * 0.7);\n}",
            "fn f() {\n    g(x * 0.7); // Why.\n}",
            "/// x = 0.7 y\nfn f() {\n    g(x * 0.7);\n}",
        ] {
            assert_eq!(lines(code), NONE, "{code}");
        }
    }

    #[test]
    fn plain_numbers_names_tests_and_other_crates_are_not() {
        let code =
            "fn f() {\n    a.0 + b1 + 8.0 / 1e9 + 2 * 1_000_000u64 + 0.5;\n    x[0..2];\n    1e-9;\n    a / b.max(1e-6);\n}";
        assert_eq!(lines(code), ["4"]);
        assert_eq!(lines("#[cfg(test)]\nmod tests {\n    const A: u8 = 7;\n}"), NONE);
        let elsewhere = Source::new("crates/haul/src/lib.rs", "const A: u8 = 7;");
        assert_eq!(check(&Workspace { sources: vec![elsewhere], ..Workspace::default() }), []);
    }
}
