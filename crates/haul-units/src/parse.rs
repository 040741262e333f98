//! What the parsers share: a number, then a suffix.

/// A text that is not the quantity asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}: write {example}")]
pub struct ParseQuantityError {
    /// The text as given.
    pub text: String,
    /// What was wanted, with its article: "a rate".
    pub wanted: &'static str,
    /// What to write: "for instance 10G or 250 Mbit/s".
    pub example: &'static str,
}

/// Splits `text` into a finite number, not negative, and its suffix, both trimmed.
pub(crate) fn number_and_suffix(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, suffix.trim()))
}

/// `value * factor` as a count, unless it does not fit into 63 bits.
pub(crate) fn scaled(value: f64, factor: f64) -> Option<u64> {
    let product = (value * factor).round();
    (product < i64::MAX as f64).then_some(product as u64)
}
