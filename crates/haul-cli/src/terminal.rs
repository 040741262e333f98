//! The way to standard output and standard error: everything that is shown goes through here, and nothing that a terminal obeys comes through.
//!
//! Words of a peer are clean when they get here ([`PeerText`](haul_units::PeerText)). What is printed is cleaned again all the same, whole lines of it: an error of a
//! library may hold a name that nobody thought of. A text of several lines is printed with all but the first of them set in, so that none of them can be taken
//! for a line of the program's own. `cargo xtask check words` finds printing that goes around this file.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::Stdio;

use haul_units::{is_unprintable, push_printable};

/// The longest line that is printed, in bytes; a wide table of a mesh of 64 hosts stays below.
const MAX_LINE: usize = 64 << 10;
/// Further lines of one text begin with this: as wide as `error: `.
const SET_IN: &str = "       ";

/// Prints a text to standard error; a closed one is nobody's loss.
pub fn err(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(text));
}

/// Prints a text to standard error behind a label, coloured where colours are welcome.
pub fn err_labelled(label: &str, colour: &str, text: &str) {
    let text = shown(text);
    let mut stderr = io::stderr().lock();
    let _ = if colours() { writeln!(stderr, "{colour}{label}\x1b[0m {text}") } else { writeln!(stderr, "{label} {text}") };
}

/// Replaces the last line on standard error, where that is a terminal; an empty text takes it away.
pub fn err_in_place(text: &str) {
    if is_terminal() {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{}", shown(text)).and_then(|()| stderr.flush());
    }
}

/// Prints a text to standard output at once; a closed one is noticed nowhere else, and what is under way goes on.
pub fn out(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{}", shown(text)).and_then(|()| stdout.flush());
}

/// Prints lines of the program's own to standard output, a table for instance: each is cleaned, none is set in.
pub fn out_lines(text: &str) {
    text.lines().for_each(out);
}

/// Standard error, for the output of a program of the user's own.
pub fn for_program() -> Stdio {
    io::stderr().into()
}

/// Empties the screen where standard output is a terminal.
pub fn clear() {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let _ = write!(stdout, "\x1b[H\x1b[2J").and_then(|()| stdout.flush());
    }
}

/// Prints JSON to standard output.
pub fn out_json(json: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{}", shown_json(json)).and_then(|()| stdout.flush());
}

/// Writes what is no text for people to standard output, and says whether that could be done: pages, scripts, keys of this program's own making.
pub fn out_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Whether standard error is a terminal.
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// How many columns the terminal on standard error has, if it says so.
pub fn width() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| size.ws_col.into()).filter(|columns| *columns > 0)
}

/// How many lines the terminal on standard error has, if it says so.
pub fn height() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| size.ws_row.into())
}

/// Whether standard error is for coloured text. See no-color.org: set and not empty means no.
pub fn colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !unwanted && !dumb && is_terminal()
}

/// A text as it may be shown: lines after the first are set in.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            shown.push('\n');
            shown.push_str(if line.starts_with(SET_IN) || line.is_empty() { "" } else { SET_IN });
        }
        let most = shown.len() + MAX_LINE;
        if !push_printable(&mut shown, line.as_bytes(), most) {
            shown.push_str("...");
        }
    }
    shown
}

/// JSON as it may be shown: the same document, with escapes for what a terminal would obey. Serde escapes C0 only.
fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unprintable(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Passes on to standard error what a program at the far side prints there: line breaks and tabs stay, a carriage return becomes a break (what it would
/// overwrite is kept), the rest is escaped. Characters may be cut in two between one part and the next.
#[derive(Debug, Default)]
pub struct PeerOutput {
    /// The beginning of a character, at most three bytes.
    cut: Vec<u8>,
    /// The last byte was a carriage return.
    returned: bool,
    /// Nobody looks at it: a program reads it, byte by byte as it was written.
    raw: bool,
}

impl PeerOutput {
    /// For the standard error of a command that another program has started: cleaned only where it goes to a terminal.
    pub fn of_a_command() -> Self {
        Self { raw: !is_terminal(), ..Self::default() }
    }

    fn clean(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        let whole = all.utf8_chunks().last().map_or(0, |last| {
            // Only a character that may go on in the next part is kept back.
            let tail = last.invalid();
            let begins = matches!(std::str::from_utf8(tail), Err(error) if error.error_len().is_none());
            if begins { all.len() - tail.len() } else { all.len() }
        });
        self.cut = all.split_off(whole);
        let mut text = String::with_capacity(all.len());
        for part in all.split_inclusive(|byte| matches!(byte, b'\n' | b'\r' | b'\t')) {
            let (last, rest) = part.split_last().unwrap_or((&0, &[]));
            let (kept, end) = match last {
                b'\n' if self.returned && rest.is_empty() => (rest, ""),
                b'\n' | b'\r' => (rest, "\n"),
                b'\t' => (rest, "\t"),
                _ => (part, ""),
            };
            self.returned = *last == b'\r';
            push_printable(&mut text, kept, usize::MAX);
            text.push_str(end);
        }
        text
    }
}

impl io::Write for PeerOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = if self.raw { bytes.to_vec() } else { self.clean(bytes).into_bytes() };
        let mut stderr = io::stderr().lock();
        stderr.write_all(&text).and_then(|()| stderr.flush())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_forge_a_line() {
        assert_eq!(shown("no: \x1b[2Jgone\nerror: forged\r\n"), "no: \\u{1b}[2Jgone\n       error: forged\\r\n");
        assert_eq!(shown("a\n       set in already"), "a\n       set in already");
        assert!(shown(&"x".repeat(2 * MAX_LINE)).len() < MAX_LINE + 10);
    }

    #[test]
    fn json_stays_the_same_document() {
        let value = serde_json::json!({ "name": "a\u{9b}31m\u{202e}\u{7f}\u{e0001}\x1b" });
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = shown_json(&json);
            assert!(!shown.chars().any(|c| is_unprintable(c) && c != '\n'), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn output_of_a_program_keeps_its_lines() {
        let mut output = PeerOutput::default();
        let parts: [&[u8]; 6] = [b"one\r", b"\ntwo\t\xc3", b"\xa9 \x1b[31mred\n", b"10%\r20%\r", b"\xff\n", b"\xe2\x82"];
        let clean: Vec<String> = parts.iter().map(|part| output.clean(part)).collect();
        assert_eq!(clean, ["one\n", "two\t", "\u{e9} \\u{1b}[31mred\n", "10%\n20%\n", "\\xff\n", ""]);
    }
}
