//! Words that somebody else chose, made fit to be shown.
//!
//! A terminal obeys what it is sent: an escape sequence recolours, moves, retitles or answers, a line break forges a line of the program's own, and
//! the controls of bidirectional text show another name than the one that is used. So text of a peer is a type of its own, and it is
//! cleaned when it is made, be that from memory or from a message off the network: no raw copy is kept that could be printed by mistake.
//!
//! [`is_unprintable`] is the one table of what must not reach a terminal; everything that shows text uses it.

use std::fmt::{self, Write as _};
use std::ops::Deref;

/// Text of a peer: one line, without anything that a terminal obeys, at most [`MAX_BYTES`](Self::MAX_BYTES) long.
///
/// What is left out is shown as an escape (`\u{1b}`), what is not UTF-8 as its bytes (`\xff`). A backslash stands for itself, so that cleaning what is clean
/// changes nothing; the text is for people, not to be parsed.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct PeerText(String);

impl PeerText {
    /// The longest text that is kept, in bytes of UTF-8: some twenty lines of a terminal, more than any sentence of an honest peer needs.
    pub const MAX_BYTES: usize = 2048;

    /// From bytes that need not be text.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut clean = String::new();
        // Each byte becomes at least one: more than these need not be looked at.
        let (looked_at, rest) = bytes.split_at_checked(Self::MAX_BYTES + 1).unwrap_or((bytes, &[]));
        let fits = push_printable(&mut clean, looked_at, Self::MAX_BYTES);
        if !fits || !rest.is_empty() {
            while clean.len() > Self::MAX_BYTES - CUT.len() {
                clean.pop();
            }
            clean.push_str(CUT);
        }
        Self(clean)
    }

    /// The clean text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for PeerText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<PeerText> for String {
    fn from(text: PeerText) -> Self {
        text.0
    }
}

/// What ends a text that was too long.
const CUT: &str = "...";

/// Whether a character changes how others are shown, or makes the terminal do something: controls (C0, DEL, C1), breaks of lines and paragraphs, marks,
/// embeddings, overrides and isolates of bidirectional text (UAX #9 2), the invisible ones beside them, and tags. Joiners stay: some scripts cannot be
/// written without them.
pub const fn is_unprintable(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Appends bytes as they may be shown, until `most` bytes are reached; false if there would be more.
pub fn push_printable(to: &mut String, bytes: &[u8], most: usize) -> bool {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unprintable(c) {
                to.extend(c.escape_default());
            } else {
                to.push(c);
            }
            if to.len() > most {
                return false;
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(to, "\\x{byte:02x}");
        }
        if to.len() > most {
            return false;
        }
    }
    true
}

impl From<&str> for PeerText {
    fn from(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }
}

impl From<String> for PeerText {
    fn from(text: String) -> Self {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq<str> for PeerText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for PeerText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for PeerText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PeerText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
        Ok(Self::from_bytes(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        for (raw, shown) in [
            (&b"plain \xc3\xa9"[..], "plain \u{e9}"),
            (b"\x1b[2J\x1b]0;title\x07", "\\u{1b}[2J\\u{1b}]0;title\\u{7}"),
            (b"no\nerror: forged", "no\\nerror: forged"),
            (b"a\rb\tc\x7f", "a\\rb\\tc\\u{7f}"),
            ("\u{9b}31m \u{202e}gpj.exe\u{2066} \u{2028}".as_bytes(), "\\u{9b}31m \\u{202e}gpj.exe\\u{2066} \\u{2028}"),
            (b"\xff\xfe!", "\\xff\\xfe!"),
        ] {
            assert_eq!(PeerText::from_bytes(raw).to_string(), shown);
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = PeerText::from("\u{e9}".repeat(PeerText::MAX_BYTES));
        assert!(long.as_str().len() <= PeerText::MAX_BYTES && long.as_str().ends_with(CUT), "{}", long.as_str().len());
        let exact = "x".repeat(PeerText::MAX_BYTES);
        assert_eq!(PeerText::from(exact.clone()), *exact);
        let longer = PeerText::from(exact.repeat(2));
        assert!(longer.as_str().starts_with(&exact[..2000]), "what is cut still says what it can");
    }

    proptest! {
        #[test]
        fn nothing_of_the_kind_is_ever_left(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let text = PeerText::from_bytes(&bytes);
            prop_assert!(!text.as_str().chars().any(is_unprintable));
            prop_assert!(text.as_str().len() <= PeerText::MAX_BYTES);
            prop_assert_eq!(PeerText::from(text.as_str()), text);
        }

        #[test]
        fn any_character_may_come(text in "\\PC*|(?s).{0,200}") {
            let once = PeerText::from(text.as_str());
            prop_assert!(!once.as_str().chars().any(is_unprintable));
            prop_assert_eq!(PeerText::from(once.as_str()), once);
        }
    }
}
