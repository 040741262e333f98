//! A Rust file with comments and literals blanked, its test code marked, and the paths it names.
//!
//! Not a parser: a lexer that knows comments, strings, characters and lifetimes, then brackets. That is enough to say on which line a file names
//! `std::net::UdpSocket`, also through `use std::{net::{IpAddr, UdpSocket}}`, and whether that line is compiled into the crate or only into its tests.

/// One file.
pub struct Source {
    /// Path from the root of the workspace.
    pub path: String,
    /// Lines of code; index 0 is line 1.
    pub lines: Vec<Line>,
}

/// One line with comments and the content of literals replaced by blanks.
pub struct Line {
    pub code: String,
    /// What a comment on it says; empty where there is none.
    pub comment: String,
    /// Compiled for tests only.
    pub test: bool,
}

/// A path of the language, such as `std::net::UdpSocket`, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// Compiled for tests only.
    pub test: bool,
    /// What a `use` does with it; nothing where it stands in other code.
    pub import: Option<Import>,
}

/// What a `use` gives the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    /// The name under which the file knows it; `*` for all that a module has.
    pub name: String,
    /// `pub use`, whoever may see it.
    pub public: bool,
    /// `pub(crate) use` and the like.
    pub restricted: bool,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let Blanked { code, comments } = blank(text);
        let test_file = path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs"));
        let line =
            |(code, comment): (&str, &str)| Line { code: code.to_owned(), comment: comment.trim().to_owned(), test: test_file };
        let mut lines: Vec<Line> = code.lines().zip(comments.lines()).map(line).collect();
        if !test_file {
            for (first, last) in test_blocks(&code) {
                lines[first..=last].iter_mut().for_each(|line| line.test = true);
            }
        }
        Self { path: path.to_owned(), lines }
    }

    /// Marks the files of modules that another file declares as `#[cfg(test)] mod name;`.
    pub fn mark_test_modules(sources: &mut [Self]) {
        let test_files: Vec<String> = sources.iter().flat_map(Self::test_modules).collect();
        for source in sources {
            if test_files.iter().any(|file| source.path == format!("{file}.rs") || source.path.starts_with(&format!("{file}/"))) {
                source.lines.iter_mut().for_each(|line| line.test = true);
            }
        }
    }

    /// Lines, test code not counted.
    pub fn length(&self) -> usize {
        self.lines.iter().filter(|line| !line.test).count()
    }

    /// The words of its code, tests included.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flat_map(|line| line.code.split(|c| !is_word(c))).filter(|word| !word.is_empty())
    }

    /// Whether its code has this word, in tests too.
    pub fn has_word(&self, word: &str) -> bool {
        self.words().any(|other| other == word)
    }

    /// The place of a line of this file, for a message.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    /// Every path that the file names, `use` trees spelled out.
    pub fn paths(&self) -> Vec<Named> {
        let tokens = self.tokens();
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at].text == "use" {
                let before = &tokens[..at];
                let restricted = before.last().is_some_and(|last| last.text == ")");
                let tree = Tree { tokens: &tokens, public: is_public(before), restricted };
                at = tree.read(at + 1, "", &mut found);
            } else {
                at = plain_path(&tokens, at, &mut found);
            }
        }
        found
    }

    /// Stems of the files of `#[cfg(test)] mod name;`, relative to the root of the workspace.
    fn test_modules(&self) -> Vec<String> {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let dir = match stem.rsplit_once('/') {
            Some((dir, "lib" | "main" | "mod")) => dir,
            _ => stem,
        };
        let declared = self.lines.iter().filter(|line| line.test).filter_map(|line| {
            let (_, name) = line.code.split_once("mod ")?;
            name.trim_end().strip_suffix(';')
        });
        declared.map(|name| format!("{dir}/{}", name.trim())).collect()
    }

    fn tokens(&self) -> Vec<Token<'_>> {
        let mut tokens = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let mut rest = line.code.as_str();
            while let Some(first) = rest.chars().next() {
                let length = if is_word(first) {
                    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
                } else if rest.starts_with("::") {
                    2
                } else {
                    first.len_utf8()
                };
                let (text, after) = rest.split_at(length);
                rest = after;
                if !first.is_whitespace() {
                    tokens.push(Token { text, line: index + 1, test: line.test });
                }
            }
        }
        tokens
    }
}

struct Token<'a> {
    text: &'a str,
    line: usize,
    test: bool,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(is_word)
    }

    fn named(&self, path: String, import: Option<Import>) -> Named {
        Named { path, line: self.line, test: self.test, import }
    }
}

/// Whether what follows these tokens is `pub`, or `pub(crate)`, `pub(in crate::x)` and the like.
fn is_public(before: &[Token<'_>]) -> bool {
    let before = match before {
        [outside @ .., close] if close.text == ")" => {
            let Some(open) = outside.iter().rposition(|token| token.text == "(") else { return false };
            &outside[..open]
        }
        _ => before,
    };
    before.last().is_some_and(|last| last.text == "pub")
}

/// The `use` tree of one declaration.
struct Tree<'a> {
    tokens: &'a [Token<'a>],
    public: bool,
    restricted: bool,
}

impl Tree<'_> {
    fn import(&self, name: String) -> Import {
        Import { name, public: self.public, restricted: self.restricted }
    }

    /// Reads the tree from `at`, adds its leaves to `found` and returns where it ends.
    fn read(&self, mut at: usize, prefix: &str, found: &mut Vec<Named>) -> usize {
        let is = |at: usize, text: &str| self.tokens.get(at).is_some_and(|token| token.text == text);
        let mut path = prefix.to_owned();
        while let Some(token) = self.tokens.get(at) {
            match token.text {
                "{" => {
                    at += 1;
                    while at < self.tokens.len() && !is(at, "}") {
                        at = self.read(at, &path, found);
                        at += usize::from(is(at, ","));
                    }
                    return at + 1;
                }
                "::" => at += 1,
                _ if token.is_word() || token.text == "*" => {
                    if token.text != "self" || path.is_empty() {
                        path = join(&path, token.text);
                    }
                    at += 1;
                    if is(at, "as") {
                        let name = self.tokens.get(at + 1).map_or("_", |name| name.text).to_owned();
                        found.push(token.named(path, Some(self.import(name))));
                        return at + 2;
                    }
                    if !is(at, "::") {
                        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
                        found.push(token.named(path, Some(self.import(name))));
                        return at;
                    }
                }
                _ => return at + 1,
            }
        }
        at
    }
}

/// Reads a path such as `a::b::c` from `at`, if one stands there, and returns where to go on.
fn plain_path(tokens: &[Token<'_>], at: usize, found: &mut Vec<Named>) -> usize {
    let start = &tokens[at];
    if !start.is_word() {
        return at + 1;
    }
    let mut path = start.text.to_owned();
    let mut next = at + 1;
    while let [separator, word, ..] = &tokens[next..] {
        if separator.text != "::" || !word.is_word() {
            break;
        }
        path = join(&path, word.text);
        next += 2;
    }
    found.push(start.named(path, None));
    next
}

fn join(path: &str, word: &str) -> String {
    if path.is_empty() { word.to_owned() } else { format!("{path}::{word}") }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// First and last line (from 0) of every item under `#[cfg(test)]`.
fn test_blocks(code: &str) -> Vec<(usize, usize)> {
    const MARK: &str = "#[cfg(test)]";
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(MARK).map(|at| at + from) {
        let end = end_of_item(code, at + MARK.len());
        let line_of = |offset: usize| code[..offset].matches('\n').count();
        blocks.push((line_of(at), line_of(end)));
        from = end;
    }
    blocks
}

/// Offset just before the end of the item that starts at `from`: its closing brace, or its semicolon.
fn end_of_item(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code[from..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if c == '}' && depth == 0 {
                    return from + at;
                }
            }
            ';' if depth == 0 => return from + at,
            _ => {}
        }
    }
    code.len().saturating_sub(1)
}

/// A text taken apart, line breaks kept in both.
struct Blanked {
    /// Comments and literals turned into blanks.
    code: String,
    /// Everything but comments turned into blanks.
    comments: String,
}

fn blank(text: &str) -> Blanked {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let white = |c: char| if c == '\n' { '\n' } else { ' ' };
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let after_word = at > 0 && is_word(chars[at - 1]);
        let is_comment = matches!(rest, ['/', '/' | '*', ..]);
        let length = match rest {
            ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => string(rest),
            ['r', '"' | '#', ..] if !after_word => raw_string(rest),
            ['b', 'r', '"' | '#', ..] if !after_word => 1 + raw_string(&rest[1..]),
            ['\'', ..] => character(rest),
            _ => 0,
        };
        if length == 0 {
            code.push(rest[0]);
            comments.push(white(rest[0]));
            at += 1;
        } else {
            code.extend(rest[..length].iter().map(|&c| white(c)));
            comments.extend(rest[..length].iter().map(|&c| if is_comment { c } else { white(c) }));
            at += length;
        }
    }
    Blanked { code, comments }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a raw string that starts with `r`; 0 where it is a raw identifier.
fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let closes = |at: usize| rest[at] == '"' && rest[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    (2 + hashes..rest.len()).find(|&at| closes(at)).map_or(rest.len(), |at| at + 1 + hashes)
}

/// Length of a character literal; 0 where the quote starts a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        [_, '\\', ..] => rest.iter().skip(3).position(|&c| c == '\'').map_or(rest.len(), |at| at + 4),
        [_, _, '\'', ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        Source::new("src/lib.rs", text).paths().into_iter().map(|named| named.path).filter(|path| path.contains("::")).collect()
    }

    fn test_lines(text: &str) -> Vec<usize> {
        let source = Source::new("src/lib.rs", text);
        (1..=source.lines.len()).filter(|&number| source.lines[number - 1].test).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let blank = |text| blank(text).code;
        assert_eq!(blank("a // b\nc"), "a     \nc");
        assert_eq!(blank("a /* b /* c */ d */ e").split_whitespace().collect::<Vec<_>>(), ["a", "e"]);
        assert_eq!(blank(r#"f("std::fs \" x") + 1"#).split_whitespace().collect::<String>(), "f()+1");
        assert_eq!(blank("r#\"a \" b\"# z").trim(), "z");
        assert_eq!(blank("'{' '\\'' '\\u{7f}' &'a str").trim(), "&'a str");
    }

    #[test]
    fn what_comments_say_is_kept_by_line() {
        let source = Source::new("src/lib.rs", "a // b\n/// c\n\"// d\" /* e\nf */ g");
        let said: Vec<&str> = source.lines.iter().map(|line| line.comment.as_str()).collect();
        assert_eq!(said, ["// b", "/// c", "/* e", "f */"]);
    }

    #[test]
    fn use_trees_are_spelled_out() {
        assert_eq!(
            paths("use std::{fs, net::{IpAddr, UdpSocket as S}};\nuse a::*;"),
            ["std::fs", "std::net::IpAddr", "std::net::UdpSocket", "a::*"]
        );
    }

    #[test]
    fn imports_say_under_which_name_and_for_whom() {
        let text = "pub(crate) use a::{self, B as C};\nuse d::E;\npub use f::*;\npub(in crate::j) use k::L;\nfn g() { h::i() }";
        let imports = Source::new("src/lib.rs", text).paths().into_iter().filter_map(|named| {
            let import = named.import?;
            Some((named.path, import.name, import.public))
        });
        let said = |path: &str, name: &str, public| (path.to_owned(), name.to_owned(), public);
        let expected = [
            said("a", "a", true),
            said("a::B", "C", true),
            said("d::E", "E", false),
            said("f::*", "*", true),
            said("k::L", "L", true),
        ];
        assert_eq!(imports.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn paths_in_expressions_are_found() {
        assert_eq!(paths("fn f() { let x = std::time::Instant::now(); }"), ["std::time::Instant::now"]);
        assert_eq!(paths("fn f() { ::std::thread::spawn(g) }"), ["std::thread::spawn"]);
    }

    #[test]
    fn test_modules_are_marked_to_their_closing_brace() {
        assert_eq!(test_lines("a\n#[cfg(test)]\nmod tests {\n  fn f() { \"}\"; }\n}\nb"), [2, 3, 4, 5]);
        assert_eq!(test_lines("#[cfg(test)]\nmod tests;\nb"), [1, 2]);
        assert_eq!(test_lines("a\nb"), [0_usize; 0]);
    }

    #[test]
    fn a_file_declared_as_a_test_module_is_test_code() {
        let mut sources = [
            Source::new("c/src/path.rs", "#[cfg(test)]\nmod trials;\nmod real;"),
            Source::new("c/src/path/trials.rs", "fn f() {}"),
            Source::new("c/src/path/real.rs", "fn f() {}"),
        ];
        Source::mark_test_modules(&mut sources);
        assert!(sources[1].lines[0].test);
        assert!(!sources[2].lines[0].test);
    }
}
