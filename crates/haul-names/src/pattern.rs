//! Patterns as a shell has them, for one component of a path: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that means itself.
//!
//! A leading dot is matched by a dot only. Characters are those of UTF-8; a byte that is none counts as one of its own. Matching
//! goes back to the last `*` only, so a name of n characters takes n^2 steps at most, whatever the pattern.

/// One component of a pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone)]
enum Token {
    One(u32),
    /// `?`
    Any,
    /// `*`
    Run,
    /// `[..]`: ranges that rise and are apart, and whether they are what must not stand there.
    Class(Vec<(u32, u32)>, bool),
}

/// Whether a shell would expand this.
pub fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|b| b"*?[\\".contains(b))
}

impl Pattern {
    /// Of one component of a path.
    pub fn new(component: &[u8]) -> Self {
        let chars = characters(component);
        let mut tokens = Vec::new();
        let mut rest = chars.as_slice();
        while let Some((&first, tail)) = rest.split_first() {
            rest = tail;
            tokens.push(match char::from_u32(first) {
                Some('*') if matches!(tokens.last(), Some(Token::Run)) => continue,
                Some('*') => Token::Run,
                Some('?') => Token::Any,
                Some('[') => match class(tail) {
                    Some((token, after)) => {
                        rest = after;
                        token
                    }
                    None => Token::One(first),
                },
                Some('\\') if !tail.is_empty() => {
                    let (&escaped, after) = tail.split_first().unwrap_or((&first, tail));
                    rest = after;
                    Token::One(escaped)
                }
                _ => Token::One(first),
            });
        }
        Self { tokens }
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &[u8]) -> bool {
        if name.first() == Some(&b'.') && !matches!(self.tokens.first(), Some(Token::One(46))) {
            return false;
        }
        let name = characters(name);
        let (mut at, mut token) = (0, 0);
        // Where to go on when the rest does not fit: behind the last run, which then takes one character more.
        let mut back = None;
        loop {
            match (self.tokens.get(token), name.get(at)) {
                (None, None) => return true,
                (Some(Token::Run), _) => {
                    token += 1;
                    back = Some((token, at));
                    continue;
                }
                (Some(wanted), Some(&c)) if wanted.takes(c) => {
                    (token, at) = (token + 1, at + 1);
                    continue;
                }
                _ => {}
            }
            match back {
                Some((behind, taken)) if taken < name.len() => {
                    (token, at) = (behind, taken + 1);
                    back = Some((behind, taken + 1));
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn takes(&self, c: u32) -> bool {
        match self {
            Self::One(one) => *one == c,
            Self::Any | Self::Run => true,
            Self::Class(ranges, negated) => {
                let before = ranges.partition_point(|&(low, _)| low <= c);
                let inside = before.checked_sub(1).and_then(|last| ranges.get(last)).is_some_and(|&(_, high)| c <= high);
                inside != *negated
            }
        }
    }
}

/// What follows a `[`: the class and what is behind its `]`; none where it has no end, so that the bracket means itself.
fn class(body: &[u32]) -> Option<(Token, &[u32])> {
    let c = |text: char| text as u32;
    let negated = body.first().is_some_and(|&first| first == c('!') || first == c('^'));
    let mut at = usize::from(negated);
    let start = at;
    let mut ranges = Vec::new();
    // One character, which a backslash may precede, and where the next begins.
    let one = |at: usize| match body.get(at) {
        Some(&first) if first == c('\\') => Some((*body.get(at + 1)?, at + 2)),
        first => Some((*first?, at + 1)),
    };
    loop {
        if at > start && *body.get(at)? == c(']') {
            break;
        }
        let (low, next) = one(at)?;
        at = next;
        let mut high = low;
        if body.get(at) == Some(&c('-')) && body.get(at + 1).is_some_and(|&after| after != c(']')) {
            (high, at) = one(at + 1)?;
        }
        if low <= high {
            ranges.push((low, high));
        }
    }
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joined = next.0 <= last.1;
        if joined {
            last.1 = last.1.max(next.1);
        }
        joined
    });
    Some((Token::Class(ranges, negated), body.get(at + 1..).unwrap_or_default()))
}

fn characters(bytes: &[u8]) -> Vec<u32> {
    /// Beyond the last character of Unicode.
    const BYTES: u32 = 0x11_0000;
    let chunks = bytes.utf8_chunks();
    chunks
        .flat_map(|chunk| chunk.valid().chars().map(u32::from).chain(chunk.invalid().iter().map(|&b| BYTES + u32::from(b))))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: impl AsRef<[u8]>) -> bool {
        Pattern::new(pattern.as_bytes()).matches(name.as_ref())
    }

    #[test]
    fn as_a_shell_matches() {
        for (pattern, yes, no) in [
            ("*.log", &["a.log", "b.c.log"][..], &["log", "a.log2", ".log", ".a.log"][..]),
            ("*", &["a", "a.b", "*"], &[".a", "."]),
            (".*", &[".a", ".log"], &["a"]),
            ("a?c", &["abc", "a?c", "aäc"], &["ac", "abbc"]),
            ("?", &["a", "ä", "\u{1f600}"], &[".", "ab"]),
            ("[a-cx]*", &["a", "bz", "x1"], &["d", "A", ""]),
            ("[!a-c]", &["d", "-"], &["a", "c", "."]),
            ("[^a]", &["b"], &["a"]),
            ("[]a]", &["]", "a"], &["b", "[]"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[a\\]b]", &["a", "]", "b"], &["\\"]),
            ("[ab", &["[ab"], &["a", "[a"]),
            ("a\\*b", &["a*b"], &["axb", "a\\*b"]),
            ("[.]a", &[], &[".a"]),
            ("*a*b*c", &["abc", "xaxbxc", "aabbcc"], &["acb", "abcx"]),
            ("[ä-ü]", &["ö"], &["a"]),
            ("", &[""], &["a"]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "{pattern} takes {name}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern} does not take {name}");
            }
        }
        assert!(matches("?x", b"\xffx") && matches("*", b"\xff\xfe") && !matches("?", b"\xff\xfe"));
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let name = "a".repeat(255);
        assert!(!matches(&("*a".repeat(120) + "b"), &name));
        assert!(!matches(&"[!b-c]*".repeat(10_000), &name));
        assert!(!matches(&format!("*[{}]", "b-cz-x".repeat(100_000)), &name));
        assert!(matches(&"*".repeat(1 << 20), &name));
    }

    /// Tries every way.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => naive(rest, name) || name.split_first().is_some_and(|(_, tail)| naive(pattern, tail)),
            (Some((b'?', rest)), Some((_, tail))) => naive(rest, tail),
            (Some((p, rest)), Some((n, tail))) if p == n => naive(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_trying_every_way(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &name), naive(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn any_bytes_are_a_pattern(pattern in prop::collection::vec(any::<u8>(), 0..60), name in prop::collection::vec(any::<u8>(), 0..60)) {
            Pattern::new(&pattern).matches(&name);
        }
    }
}
