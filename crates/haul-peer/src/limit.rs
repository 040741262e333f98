//! Rates as users write them.

use std::str::FromStr;

use haul_units::{BitRate, ParseQuantityError};
use thiserror::Error;

/// What is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LimitError {
    /// More bits a second than can be counted.
    #[error("too large for a rate")]
    TooLarge,
    /// No bits at all.
    #[error("nothing would ever be sent at a rate of zero")]
    Zero,
    /// Something else than a rate.
    #[error(transparent)]
    NotARate(#[from] ParseQuantityError),
}

/// A limit on the rate. A bare number is in Kbit/s, as scp has it; with a prefix or a unit it is what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub BitRate);

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let rate = match text.trim().parse::<u64>() {
            Ok(kbps) => kbps.checked_mul(1000).map(BitRate::from_bps).ok_or(LimitError::TooLarge)?,
            Err(_) => text.parse::<BitRate>()?,
        };
        if rate == BitRate::ZERO {
            return Err(LimitError::Zero);
        }
        Ok(Self(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_limit_is_in_kilobits() {
        let bps = |text: &str| text.parse::<Limit>().map(|limit| limit.0.as_bps());
        assert_eq!(bps("8000"), Ok(8_000_000));
        assert_eq!(bps("1G"), Ok(1_000_000_000));
        assert_eq!(bps("250Mbit/s"), Ok(250_000_000));
        for text in ["0", "0G", "fast", "10MB", "-1", "99999999999999999999"] {
            assert!(bps(text).is_err(), "{text}");
        }
    }
}
