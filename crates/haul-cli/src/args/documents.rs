//! What documents tell a reader to type can be typed: every command of haul's in README.md and below docs is parsed by the definition itself.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::parse;

/// Names of the program at the beginning of a command.
const NAMES: &[&str] = &["haul", "hcp", "hperf"];

/// What stands for `SHA256:...`, and for what another command would say.
const FINGERPRINT: &str = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// What stands for a process that a shell knows.
const PROCESS: &str = "4711";

/// A command as it stands in a document.
struct Said {
    place: String,
    words: Vec<String>,
    /// A line of a block is typed as it is; what stands in a sentence may leave out what the sentence says.
    whole: bool,
}

#[test]
fn what_documents_say_can_be_typed() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for said in commands(&path.to_string_lossy(), &text) {
            seen += 1;
            wrong.extend(refusal(&said).map(|why| format!("{}: {}: {why}", said.place, said.words.join(" "))));
        }
    }
    assert!(seen > 200, "only {seen} commands were found in the documents");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_word_that_haul_does_not_know_is_found() {
    let text = "Text with `haul cp --no-such-word`.\n\n    tar c x | haul pipe host --  tar x\n    $ sudo haul cp --also-not a b:  # a comment\n";
    let said = commands("a.md", text);
    let wrong: Vec<bool> = said.iter().map(|said| refusal(said).is_some()).collect();
    assert_eq!(wrong, [true, false, true]);
}

fn refusal(said: &Said) -> Option<String> {
    let words = said.words.iter().map(|word| match word.as_str() {
        "SHA256:..." => FINGERPRINT,
        "$!" => PROCESS,
        word if word.starts_with("$(") => FINGERPRINT,
        word => word,
    });
    let error = parse(words.map(OsString::from).collect()).err()?;
    let allowed = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => false,
        _ => !said.whole,
    };
    (!allowed).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    let mut dirs = vec![root.join("docs")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).expect("the documents") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") && !path.ends_with("results.md") {
                found.push(path);
            }
        }
    }
    found
}

fn commands(path: &str, text: &str) -> Vec<Said> {
    let mut found = Vec::new();
    let (mut fence, mut before_is_text) = (None, false);
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{path}:{}", index + 1);
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(kind.to_owned()) };
            before_is_text = false;
            continue;
        }
        let is_block = fence.is_some() || line.starts_with("    ") && !before_is_text;
        let is_other = fence.as_deref().is_some_and(|kind| !(kind.starts_with("sh") || kind.starts_with("console")));
        if is_block && !is_other {
            found.extend(typed(line).into_iter().map(|words| Said { place: place(), words, whole: true }));
        } else if !is_block {
            found.extend(quoted(line).into_iter().map(|words| Said { place: place(), words, whole: false }));
        }
        before_is_text = !is_block && !line.trim().is_empty();
    }
    found
}

/// The commands of a line of a block: each part of a pipe that begins with haul, behind a prompt, `sudo` and variables.
fn typed(line: &str) -> Vec<Vec<String>> {
    let line = line.trim_start();
    let prompts = ["server$ ", "client$ ", "$ ", "# "];
    let line = prompts.iter().find_map(|prompt| line.strip_prefix(prompt)).unwrap_or(line);
    let of_haul = |words: Vec<String>| {
        let skipped = words.iter().take_while(|word| *word == "sudo" || *word == "env" || is_variable(word)).count();
        let words = words[skipped..].to_vec();
        words.first().is_some_and(|name| NAMES.contains(&name.as_str())).then_some(words)
    };
    parts(line).into_iter().filter_map(of_haul).collect()
}

fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Code in a sentence that is a command with words of its own.
fn quoted(line: &str) -> Vec<Vec<String>> {
    let code = line.split('`').skip(1).step_by(2).filter(|code| !code.contains(['|', '[', '<']) && !code.contains(".."));
    // `haul ctl: paused` is what it says, not what is typed.
    let is_command = |words: &Vec<String>| words.get(1).is_some_and(|word| !word.ends_with(':'));
    code.flat_map(typed).filter(is_command).collect()
}

/// Words of the commands in a line, as a shell divides them.
fn parts(line: &str) -> Vec<Vec<String>> {
    let mut parts = vec![Vec::new()];
    let (mut word, mut inside, mut quote) = (String::new(), false, None);
    let mut skip_next = false;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, inside) = (Some(c), true),
            (None, '#') if !inside => break,
            (None, c) if c.is_whitespace() || matches!(c, '|' | '>' | '<' | '&' | ';' | '(' | ')') => {
                if inside && !std::mem::take(&mut skip_next) {
                    parts.last_mut().expect("one at least").push(std::mem::take(&mut word));
                }
                (word, inside) = (String::new(), false);
                match c {
                    '>' | '<' => skip_next = true,
                    '|' | '&' | ';' | '(' | ')' => parts.push(Vec::new()),
                    _ => {}
                }
            }
            (None, c) => {
                word.push(c);
                inside = true;
            }
        }
    }
    if inside && !skip_next {
        parts.last_mut().expect("one at least").push(word);
    }
    parts
}
