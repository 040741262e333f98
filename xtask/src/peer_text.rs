//! A peer's words reach a terminal cleaned, by one way.
//!
//! Two rules keep it so. Printing goes through `crates/haul-cli/src/terminal.rs`: no other code of the crates prints by a macro or takes a standard stream.
//! And text that comes off the network is a `PeerText`, cleaned as it is read: a type that can be deserialised has no `String`, outside the files that are
//! known to read this machine's own.

use crate::finding::Finding;
use crate::source::Source;
use crate::workspace::Workspace;

/// Files that take a standard stream themselves, each with its reason.
const STREAMS: &[(&str, &str)] = &[
    ("crates/haul-cli/src/terminal.rs", "the one way"),
    ("crates/haul-cli/src/logging.rs", "writes entries whose fields it has cleaned"),
    ("crates/haul-cli/src/cp/mod.rs", "the content of a file that goes to standard output"),
    ("crates/haul-cli/src/system/unix.rs", "the data of a pipe"),
    ("crates/haul-cli/src/system/windows.rs", "the data of a pipe"),
    ("crates/haul-cli/src/remote/mod.rs", "the answer to the near side, through ssh"),
    ("crates/haul-cli/src/remote/fleet.rs", "the answer to whoever started it, through ssh or a launcher"),
    ("crates/haul-lab/src/emulator/process.rs", "the answer to the process that started it"),
];

/// Files whose deserialised types never come from a peer, each with its reason.
const OWN: &[(&str, &str)] = &[
    ("crates/haul-peer/src/memory.rs", "a file in the user's state directory"),
    ("crates/haul-bench/src/", "results of programs that the bench ran itself"),
    ("crates/haul-fleet/src/report/", "logs that haul wrote, made printable and bounded as they are read"),
    ("crates/haul-pace/src/inject/", "what `ip` says of this machine"),
    ("crates/haul-tcp/src/", "the journal in /run, which only root writes"),
    (
        "crates/haul-fleet/src/session/messages.rs",
        "a process of the same user on this machine, over a socket that no other user can use",
    ),
    ("crates/haul-lab/src/", "the emulator of this machine and its commands, over a socket of the user's own"),
];

/// Fields that hold a `String` all the same, each with its reason.
const DECODED: &[(&str, &str, &str)] = &[
    ("crates/haul-peer/src/ssh/hello.rs", "opening", "base64, longer than words are, decoded and never shown"),
    ("crates/haul-peer/src/ssh/hello.rs", "answer", "base64, longer than words are, decoded and never shown"),
    ("crates/haul-files/src/protocol.rs", "lines", "patterns: bounded, compared with names, and never shown"),
    ("crates/haul-fleet/src/start/messages.rs", "haul", "a path that is run, by a client that may run anything, and never shown"),
    ("crates/haul-fleet/src/start/messages.rs", "program", "as that path"),
    ("crates/haul-fleet/src/start/messages.rs", "arguments", "words of that program"),
];

const MACROS: &[&str] = &["println!", "eprintln!", "print!", "eprint!"];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = unneeded(workspace);
    for source in workspace.sources.iter().filter(|source| is_checked(&source.path)) {
        if !STREAMS.iter().any(|(path, _)| *path == source.path) {
            findings.extend(printing(source));
        }
        if !OWN.iter().any(|(path, _)| source.path.starts_with(path)) {
            findings.extend(raw_fields(source));
        }
    }
    findings
}

/// Code of the crates that ends in a program: examples are programs of their own, a build script talks to cargo.
fn is_checked(path: &str) -> bool {
    path.starts_with("crates/")
        && !path.ends_with("/build.rs")
        && !path.split('/').any(|part| matches!(part, "examples" | "benches"))
}

/// An excuse that nothing needs hides the next mistake.
fn unneeded(workspace: &Workspace) -> Vec<Finding> {
    let excused = STREAMS.iter().filter_map(|(path, _)| workspace.sources.iter().find(|source| source.path == *path));
    let idle = excused.filter(|source| printing(source).is_empty());
    let message = "prints nothing by itself: take it out of the list in xtask/src/peer_text.rs";
    idle.map(|source| Finding { place: source.path.clone(), message: message.to_owned() }).collect()
}

fn printing(source: &Source) -> Vec<Finding> {
    let finding = |line: usize, what: &str| Finding {
        place: source.place(line),
        message: format!("{what} goes around terminal.rs: print through crate::output, which cleans what a terminal would obey"),
    };
    let mut findings = Vec::new();
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.test) {
        let used = MACROS.iter().find(|name| {
            let mut places = line.code.match_indices(*name);
            places.any(|(at, _)| !line.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        findings.extend(used.map(|name| finding(index + 1, name)));
    }
    let is_stream = |path: &str| {
        path.ends_with("io::stdout")
            || path.ends_with("io::stderr")
            || path.ends_with("stdio::stdout")
            || path.ends_with("stdio::stderr")
            || path == "libc::STDOUT_FILENO"
            || path == "libc::STDERR_FILENO"
    };
    let taken = source.paths().into_iter().filter(|named| !named.test && is_stream(&named.path));
    findings.extend(taken.map(|named| finding(named.line, &named.path)));
    findings
}

/// `String` in the body of a struct or enum that derives `Deserialize`.
fn raw_fields(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut depth: Option<usize> = None;
    let mut derives = false;
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.test) {
        let code = line.code.trim();
        derives |= code.starts_with("#[derive") && word(code, "Deserialize");
        let begins = word(code, "struct") || word(code, "enum");
        if derives && begins {
            (depth, derives) = (Some(0), false);
        }
        let Some(open) = &mut depth else { continue };
        let field = code.split(':').next().unwrap_or_default().trim().trim_start_matches("pub ");
        let excused = DECODED.iter().any(|(path, name, _)| *path == source.path && *name == field);
        if word(code, "String") && !excused {
            let message = "text off the network is a haul_units::PeerText, which is clean from the beginning".to_owned();
            findings.push(Finding { place: source.place(index + 1), message });
        }
        *open += code.matches('{').count();
        *open = open.saturating_sub(code.matches('}').count());
        let ends = code.ends_with(';') || code.contains('}');
        if *open == 0 && ends {
            depth = None;
        }
    }
    findings
}

fn word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        let workspace = Workspace { sources: vec![Source::new(path, text)], ..Workspace::default() };
        check(&workspace).into_iter().map(|finding| finding.place).collect()
    }

    const PATH: &str = "crates/haul-cli/src/cp/failure.rs";

    #[test]
    fn printing_that_goes_around_is_found_with_its_line() {
        let guilty = [
            "fn f() { println!(\"{}\", refusal.error); }",
            "fn f() { eprint!(\"x\"); }",
            "use std::io::{self, Write, stderr};",
            "fn f() { let _ = io::stderr().write_all(&bytes); }",
            "fn f() { std::io::stdout().lock(); }",
            "fn f() { rustix::io::write(rustix::stdio::stderr(), b); }",
            "fn f() { libc::write(libc::STDERR_FILENO, p, n); }",
        ];
        for code in guilty {
            assert_eq!(places(PATH, &format!("\n{code}\n")), [format!("{PATH}:2")], "{code}");
        }
    }

    #[test]
    fn tests_and_words_about_printing_may() {
        let innocent = "// println!(..)\nconst A: &str = \"eprintln!\";\nfn f() { output::print_line(text); my_print!(x); child.stderr(); }\n\
                        #[cfg(test)]\nmod tests {\n fn f() { println!(\"seed\"); }\n}";
        assert_eq!(places(PATH, innocent), Vec::<String>::new());
        assert_eq!(places("crates/haul/examples/pump.rs", "fn main() { println!(\"x\"); }"), Vec::<String>::new());
    }

    #[test]
    fn an_excuse_must_be_needed() {
        let excused = STREAMS[0].0;
        assert_eq!(places(excused, "fn f() { io::stderr(); }"), Vec::<String>::new());
        assert_eq!(places(excused, "fn f() {}"), [excused]);
    }

    #[test]
    fn raw_text_off_the_network_is_found() {
        let guilty = "#[derive(Debug, Serialize, Deserialize)]\n#[serde(default)]\npub struct Refusal {\n    pub error: String,\n    pub hint: Option<PeerText>,\n}\n\
                      pub struct Local {\n    pub text: String,\n}\n#[derive(Deserialize)]\nenum Message {\n    Ping(u32),\n    Failed { why: Vec<String> },\n}\n\
                      #[derive(Deserialize)]\nstruct Short(String);\nfn f() -> String {}\n";
        assert_eq!(places(PATH, guilty), [4, 13, 16].map(|line| format!("{PATH}:{line}")));
    }

    #[test]
    fn what_is_decoded_has_a_reason() {
        let (path, field, _) = DECODED[0];
        let code = format!(
            "#[derive(Deserialize)]\nstruct Hello {{\n    pub {field}: Option<String>,\n    pub other: Option<String>,\n}}\n"
        );
        assert_eq!(places(path, &code), [format!("{path}:4")]);
    }
}
