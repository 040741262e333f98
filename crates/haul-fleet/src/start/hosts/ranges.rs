//! `node[01-13,20]`: names with ranges of numbers in them.
//!
//! Own code, because the order of the list matters here (the first host may be the representative) and what comes of it is counted before it is made. The crates for this (nodeset, hostlist) keep sorted sets, know
//! operators and groups that are looked up by running commands, or bring a command line with them.

use super::error::HostsError;

/// Digits of a number in a range: what fits 64 bits for certain.
const MAX_DIGITS: usize = 18;

/// The items between commas that stand in no bracket; empty ones are left out.
pub fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let between = move |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(between).map(str::trim).filter(|item| !item.is_empty())
}

/// All that an item stands for, in order; no more than `room` of them.
pub fn expanded(item: &str, room: usize) -> Result<Vec<String>, HostsError> {
    let wrong = |why| HostsError::Range { item: item.to_owned(), why };
    let (scheme, rest) = item.split_at(item.find("://").map_or(0, |at| at + 3));
    let (name, path) = rest.split_at(end_of_name(rest, !scheme.is_empty()));
    let mut grown = vec![scheme.to_owned()];
    let mut left = name;
    while let Some((before, after)) = left.split_once('[') {
        let (inside, after) = after.split_once(']').ok_or_else(|| wrong("a bracket is not closed"))?;
        left = after;
        if inside.contains(':') {
            for text in &mut grown {
                text.extend([before, "[", inside, "]"]);
            }
            continue;
        }
        let parts = inside.split(',').map(Range::parse).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let count = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.count()));
        if count.saturating_mul(grown.len() as u64) > room as u64 {
            return Err(HostsError::TooMany);
        }
        let numbers: Vec<String> = parts.iter().flat_map(Range::numbers).collect();
        grown = grown.iter().flat_map(|start| numbers.iter().map(move |number| format!("{start}{before}{number}"))).collect();
    }
    if left.contains(']') {
        return Err(wrong("a bracket is closed that was not opened"));
    }
    if grown.len() > room {
        return Err(HostsError::TooMany);
    }
    Ok(grown.into_iter().map(|start| format!("{start}{left}{path}")).collect())
}

/// Where the path begins: at the first colon outside of brackets, or, in an address with a scheme, at the first slash. Brackets of a path are a pattern of the user's.
fn end_of_name(text: &str, has_scheme: bool) -> usize {
    let mut depth = 0_usize;
    let end = text.find(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == '/' || c == ':' && !has_scheme)
    });
    end.unwrap_or(text.len())
}

/// `01-13`, or one number.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u64,
    last: u64,
    /// Zeros fill it up to so many digits.
    width: usize,
}

impl Range {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.trim(), last.trim());
        let number = |text: &str| -> Result<u64, &'static str> {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return Err("in brackets there are numbers, and ranges of them: node[01-13,20]");
            }
            if text.len() > MAX_DIGITS {
                return Err("a number is too long");
            }
            text.parse().map_err(|_| "a number is too long")
        };
        let width = if first.starts_with('0') { first.len() } else { 0 };
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err("a range ends before it begins") } else { Ok(Self { first, last, width }) }
    }

    const fn count(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    fn numbers(&self) -> impl Iterator<Item = String> + use<> {
        let width = self.width;
        (self.first..=self.last).map(move |number| format!("{number:0width$}"))
    }
}
