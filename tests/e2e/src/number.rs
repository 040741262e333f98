//! Numbers that the environment names.

use std::str::FromStr;

/// The number that this variable names.
pub fn number<T: FromStr>(variable: &str, unless_set: T) -> T {
    let parsed = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text}"));
    std::env::var(variable).map_or(unless_set, parsed)
}
