//! Lengths of time as people type them, with their unit: `--rtt 50` would be fifty seconds to one and milliseconds to most.

use std::str::FromStr;
use std::time::Duration;

use crate::parse::ParseQuantityError;
use crate::time::parse_duration;

/// A length of time that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// What is no [`Span`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// No time at all.
    #[error(transparent)]
    NoTime(#[from] ParseQuantityError),
    /// A bare number.
    #[error("`{text}` has no unit: write for instance {text}ms or {text}s")]
    NoUnit {
        /// As it was typed.
        text: String,
    },
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let time = parse_duration(text)?;
        if !time.is_zero() && text.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(SpanError::NoUnit { text: text.to_owned() });
        }
        Ok(Self(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!("50ms".parse(), Ok(Span(Duration::from_millis(50))));
        assert_eq!("0".parse(), Ok(Span(Duration::ZERO)));
        let error = "50".parse::<Span>().expect_err("nobody knows of what").to_string();
        assert!(error.contains("50ms or 50s"), "{error}");
        assert!("fast".parse::<Span>().is_err());
    }
}
