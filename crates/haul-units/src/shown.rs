//! Text as a terminal may have it: whole lines, JSON, and what a program at the far side prints.

use std::fmt::Write as _;

use crate::peer_text::{is_unprintable, push_printable};

/// The longest line that is shown, in bytes; a wide table of a mesh of 64 hosts stays below.
const MAX_LINE: usize = 64 << 10;
/// Further lines of one text begin with this: as wide as `error: `.
pub const SET_IN: &str = "       ";

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
pub fn shown_json(json: &str) -> String {
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

/// What a program at the far side prints, part by part: line breaks and tabs stay, a carriage return becomes a break (what it would overwrite is kept), the rest is
/// escaped. Characters may be cut in two between one part and the next.
#[derive(Debug, Default)]
pub struct PeerStream {
    /// The beginning of a character, at most three bytes.
    cut: Vec<u8>,
    /// The last byte was a carriage return.
    returned: bool,
}

impl PeerStream {
    /// The next part, as it may be shown.
    pub fn clean(&mut self, bytes: &[u8]) -> String {
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
        let mut output = PeerStream::default();
        let parts: [&[u8]; 6] = [b"one\r", b"\ntwo\t\xc3", b"\xa9 \x1b[31mred\n", b"10%\r20%\r", b"\xff\n", b"\xe2\x82"];
        let clean: Vec<String> = parts.iter().map(|part| output.clean(part)).collect();
        assert_eq!(clean, ["one\n", "two\t", "\u{e9} \\u{1b}[31mred\n", "10%\n20%\n", "\\xff\n", ""]);
    }
}
