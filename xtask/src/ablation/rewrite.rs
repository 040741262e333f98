//! Constants turned into functions that ask for their value, so that one build of the engine serves every value.
//!
//! `const LESS: f64 = 0.95;` becomes `fn LESS() -> f64`, which has the value once from the environment, and `LESS` becomes `LESS()` wherever the name
//! stands. The source itself stays as it is: this is done to a copy.

use std::collections::BTreeMap;

use crate::source::Source;

/// Where the function that knows the values is put.
pub const HOME: &str = "crates/haul-cc/src/lfn/mod.rs";
/// What is rewritten: none of its functions may be constant where some ask for values.
pub const FOLDER: &str = "crates/haul-cc/src/";
/// Whose constants are moved.
const ENGINE: &str = "crates/haul-cc/src/lfn/";
/// The number and its factor, `law/cruise.rs:LESS=1.3`.
pub const VARIABLE: &str = "HAUL_ABLATION";

/// Types that a factor can move. The length of an array is no such number, nor is a list.
const TYPES: [&str; 5] = ["f64", "u32", "u64", "Duration", "Bytes"];

/// A file of the engine.
pub struct File {
    /// From the root of the workspace.
    pub path: String,
    pub text: String,
}

/// A constant that can be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// `law/cruise.rs:LESS`.
    pub name: String,
    /// As it is written.
    pub value: String,
    file: String,
    constant: String,
    is_public: bool,
    is_associated: bool,
}

/// Every constant that can be moved, in the order of files.
pub fn numbers(files: &[File]) -> Vec<Number> {
    files.iter().filter(|file| file.path.starts_with(ENGINE)).flat_map(in_file).collect()
}

fn in_file(file: &File) -> Vec<Number> {
    let source = Source::new(&file.path, &file.text);
    let short = file.path.strip_prefix(ENGINE).unwrap_or(&file.path);
    let code = source.lines.iter().filter(|line| !line.test);
    code.filter_map(|line| declared(&line.code))
        .map(|declared| Number {
            name: format!("{short}:{}", declared.constant),
            value: declared.value.to_owned(),
            file: file.path.clone(),
            constant: declared.constant.to_owned(),
            is_public: declared.before.contains("pub"),
            is_associated: declared.before.starts_with(' '),
        })
        .collect()
}

struct Declared<'a> {
    /// Indentation and who may see it.
    before: &'a str,
    constant: &'a str,
    kind: &'a str,
    value: &'a str,
}

/// The constant of a movable type that a line declares.
fn declared(line: &str) -> Option<Declared<'_>> {
    let (before, rest) = line.split_once("const ")?;
    let (constant, rest) = rest.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    let is_name = constant.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_item = before.trim().is_empty() || before.trim_start().starts_with("pub");
    (is_name && is_item && TYPES.contains(&kind)).then(|| Declared {
        before,
        constant,
        kind,
        value: value.trim_end().trim_end_matches(';'),
    })
}

/// The file with functions in the place of its constants.
pub fn rewritten(file: &File, numbers: &[Number]) -> String {
    let own = |number: &&Number| number.file == file.path;
    // One of the own file hides that of another.
    let others = numbers.iter().filter(|number| number.is_public && number.file != file.path);
    let all = others.chain(numbers.iter().filter(own)).filter(|_| file.path.starts_with(ENGINE));
    let names: Names<'_> = all.map(|number| (number.constant.as_str(), number.is_associated)).collect();
    let source = Source::new(&file.path, &file.text);
    let mut text = String::new();
    for (written, line) in file.text.lines().zip(&source.lines) {
        let number = declared(&line.code).filter(|_| !line.test);
        let number = number.and_then(|declared| {
            let number = numbers.iter().filter(own).find(|number| number.constant == declared.constant)?;
            Some((declared, number))
        });
        if let Some((declared, number)) = number {
            text += &function(&declared, &number.name, &called(declared.value, &names));
        } else if is_import(&line.code) || line.test {
            text += written;
        } else {
            text += &called(&written.replace("const fn ", "fn "), &names);
        }
        text.push('\n');
    }
    if file.path == HOME {
        text += VALUES;
    }
    text
}

fn is_import(line: &str) -> bool {
    line.trim_start().starts_with("use ") || line.starts_with("pub") && line.contains(" use ")
}

fn function(declared: &Declared<'_>, name: &str, value: &str) -> String {
    let Declared { before, constant, kind, .. } = declared;
    format!(
        "#[allow(non_snake_case)] {before}fn {constant}() -> {kind} {{ static VALUE: std::sync::OnceLock<{kind}> = std::sync::OnceLock::new(); \
         *VALUE.get_or_init(|| crate::lfn::ablation::value({name:?}, {value})) }}"
    )
}

/// Names that are called, and whether they belong to a type.
type Names<'a> = BTreeMap<&'a str, bool>;

/// A line of code in which each of these names is called.
fn called(line: &str, names: &Names<'_>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::new(), line);
    while let Some(start) = rest.find(is_part) {
        let length = rest[start..].find(|c| !is_part(c)).unwrap_or(rest.len() - start);
        out += &rest[..start];
        let word = &rest[start..start + length];
        let is_called = names.get(word).is_some_and(|is_associated| *is_associated || !is_of_a_type(&out));
        out += word;
        if is_called {
            out += "()";
        }
        rest = &rest[start + length..];
    }
    out + rest
}

/// Whether the text ends in `Type::`: what follows is a constant of that type, not one of a file.
fn is_of_a_type(text: &str) -> bool {
    let Some(path) = text.strip_suffix("::") else { return false };
    let owner = path.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    owner.starts_with(char::is_uppercase)
}

/// Values from the environment: whole numbers move by one at least.
const VALUES: &str = r#"
pub(crate) mod ablation {
    pub(crate) fn value<T: Moved>(name: &str, value: T) -> T {
        let moved = std::env::var("HAUL_ABLATION").unwrap_or_default();
        match moved.split_once('=') {
            Some((number, factor)) if number == name => value.moved(factor.parse().expect("a factor")),
            _ => value,
        }
    }

    pub(crate) trait Moved {
        fn moved(self, factor: f64) -> Self;
    }

    impl Moved for f64 {
        fn moved(self, factor: f64) -> Self {
            self * factor
        }
    }

    impl Moved for u64 {
        fn moved(self, factor: f64) -> Self {
            let moved = (self as f64 * factor).round() as Self;
            if factor > 1.0 { moved.max(self + 1) } else { moved.min(self.saturating_sub(1)) }
        }
    }

    impl Moved for u32 {
        fn moved(self, factor: f64) -> Self {
            u64::from(self).moved(factor) as Self
        }
    }

    impl Moved for std::time::Duration {
        fn moved(self, factor: f64) -> Self {
            self.mul_f64(factor)
        }
    }

    impl Moved for haul_units::Bytes {
        fn moved(self, factor: f64) -> Self {
            Self(self.0.moved(factor))
        }
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> File {
        File { path: format!("{ENGINE}{name}"), text: text.to_owned() }
    }

    #[test]
    fn constants_of_movable_types_are_numbers() {
        let text = "const A: f64 = 0.5;\npub(super) const B: Duration = Duration::from_secs(2);\nconst N: usize = 3;\n\
                    #[cfg(test)]\nmod tests {\n    const T: u32 = 1;\n}\n";
        let numbers = numbers(&[file("law/a.rs", text)]);
        let found: Vec<_> = numbers.iter().map(|number| (number.name.as_str(), number.value.as_str())).collect();
        assert_eq!(found, [("law/a.rs:A", "0.5"), ("law/a.rs:B", "Duration::from_secs(2)")]);
    }

    #[test]
    fn names_are_called_wherever_they_stand() {
        let files = [
            file("a.rs", "pub(super) const LESS: f64 = 0.95;\nconst fn f() -> f64 { LESS * 2.0 } // LESS\n"),
            file("c.rs", "impl Loss {\n    pub const MOST: f64 = 0.9;\n}\n"),
            file(
                "b.rs",
                "pub(super) use super::a::LESS;\nfn g() -> f64 { LESS.max(a::LESS) + Bytes::LESS + MORELESS + Loss::MOST }\n",
            ),
        ];
        let numbers = numbers(&files);
        let first = rewritten(&files[0], &numbers);
        assert!(first.contains("pub(super) fn LESS() -> f64 {"), "{first}");
        assert!(first.contains("value(\"a.rs:LESS\", 0.95)") && first.contains("\nfn f() -> f64 { LESS() * 2.0 }"), "{first}");
        let second = rewritten(&files[2], &numbers);
        assert!(second.starts_with("pub(super) use super::a::LESS;\n"), "{second}");
        assert!(second.contains("{ LESS().max(a::LESS()) + Bytes::LESS + MORELESS + Loss::MOST() }"), "{second}");
    }

    #[test]
    fn a_constant_of_the_own_file_is_not_that_of_another() {
        let files = [file("a.rs", "const CUT: f64 = 0.7;\n"), file("b.rs", "fn f() -> f64 { CUT }\n")];
        let numbers = numbers(&files);
        assert_eq!(rewritten(&files[1], &numbers), "fn f() -> f64 { CUT }\n", "a private one is nobody else's");
    }
}
