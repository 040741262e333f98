//! Lengths of time on the command line, with their unit: `--rtt 50` would be fifty seconds to one and milliseconds to most.

use std::str::FromStr;
use std::time::Duration;

use haul_units::parse_duration;

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = parse_duration(text).map_err(|error| error.to_string())?;
        if !time.is_zero() && text.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(format!("`{text}` has no unit: write for instance {text}ms or {text}s"));
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
        let error = "50".parse::<Span>().expect_err("nobody knows of what");
        assert!(error.contains("50ms or 50s"), "{error}");
        assert!("fast".parse::<Span>().is_err());
    }
}
