//! Which names a file can have on Windows.
//!
//! A file system there may take more, but what looks for a file by name does not find them: a trailing dot or space is cut off, `CON` and `com1.txt` are devices, `a:b` is a stream of the
//! file `a`. So no such name is made. Sources: Microsoft, "Naming Files, Paths, and Namespaces".

/// Longest name, in units of UTF-16.
const MAX_UNITS: usize = 255;

/// Names of devices, whatever their case and whatever follows behind a dot.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// The name in UTF-16, if a file can be made with it.
pub fn to_make(name: &[u8]) -> Option<Vec<u16>> {
    let text = std::str::from_utf8(name).ok()?;
    let takes = |c: char| c >= ' ' && !matches!(c, '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*');
    if !text.chars().all(takes) || text.ends_with(['.', ' ']) || is_device(text) {
        return None;
    }
    units(text)
}

/// The name in UTF-16, if a file that is there could have it: what other systems made on the same disk may have a name that is not made here. It is one component, and no stream of a file.
pub fn to_open(name: &[u8]) -> Option<Vec<u16>> {
    let text = std::str::from_utf8(name).ok()?;
    if matches!(text, "." | "..") || text.contains(['\0', '/', '\\', ':']) {
        return None;
    }
    units(text)
}

fn units(text: &str) -> Option<Vec<u16>> {
    let units: Vec<u16> = text.encode_utf16().collect();
    (1..=MAX_UNITS).contains(&units.len()).then_some(units)
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ');
    // COM0 and LPT0 are none; superscript digits count.
    let is_numbered = |stem: &str| {
        let mut chars = stem.chars();
        let (Some(number), rest) = (chars.next_back(), chars.as_str()) else { return false };
        matches!(number, '1'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}')
            && ["COM", "LPT"].iter().any(|port| rest.eq_ignore_ascii_case(port))
    };
    DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) || is_numbered(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_windows_would_take_for_something_else_is_not_made() {
        for name in [
            "",
            ".",
            "..",
            "a.",
            "a ",
            "...",
            "con",
            "CON",
            "nul.txt",
            "Aux.tar.gz",
            "prn .x",
            "com1",
            "LPT9.log",
            "com\u{b9}",
            "CONIN$",
            "a:b",
            "a:",
            "what?",
            "*",
            "a\\b",
            "a/b",
            "<a>",
            "a|b",
            "\"q\"",
            "line\nbreak",
            "nul\0",
            "tab\t",
        ] {
            assert_eq!(to_make(name.as_bytes()), None, "{name:?}");
        }
        assert_eq!(to_make(b"\xff"), None, "no UTF-8");
        assert_eq!(to_make("\u{1f600}".repeat(128).as_bytes()), None, "256 units");
        for name in [
            " a",
            ".a",
            "a.b",
            "console",
            "com0",
            "com10",
            "lpt",
            "null",
            "nul-1",
            "c o n",
            "\u{e9}\u{65e5}",
            "'`~!@#$%^&()-_=+[]{};,",
            "a. b",
        ] {
            assert_eq!(to_make(name.as_bytes()), Some(name.encode_utf16().collect()), "{name:?}");
        }
        assert_eq!(to_make("\u{65e5}".repeat(255).as_bytes()).map(|units| units.len()), Some(255), "more bytes than Linux takes");
    }

    #[test]
    fn what_is_there_can_be_opened() {
        for name in ["CON", "a.", "a ", "what?"] {
            assert!(to_open(name.as_bytes()).is_some(), "{name:?}");
        }
        for name in ["", ".", "..", "a:b", "a\\b", "a/b", "a\0"] {
            assert!(to_open(name.as_bytes()).is_none(), "{name:?}");
        }
    }
}
