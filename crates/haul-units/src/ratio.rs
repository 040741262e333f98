//! Parts of a whole.

use std::fmt;
use std::str::FromStr;

use crate::parse::{ParseQuantityError, number_and_suffix};

/// A part of a whole, 0 or more; 1 is the whole. Prints as a percentage: `0.10 %`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "f64", into = "f64"))]
pub struct Ratio(f64);

impl Ratio {
    /// Nothing of it.
    pub const ZERO: Self = Self(0.0);
    /// The whole.
    pub const ONE: Self = Self(1.0);

    /// A ratio; what is negative or not a number counts as zero.
    pub fn new(value: f64) -> Self {
        Self(if value > 0.0 { value } else { 0.0 })
    }

    /// `n` per cent.
    pub fn percent(n: f64) -> Self {
        Self::new(n / 100.0)
    }

    /// The plain number.
    pub const fn as_f64(self) -> f64 {
        self.0
    }
}

/// What is no part of a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// No ratio.
    #[error(transparent)]
    NoRatio(#[from] ParseQuantityError),
    /// Too much.
    #[error("`{text}` is more than all packets: 100% at most")]
    MoreThanAll {
        /// As it was typed.
        text: String,
    },
}

/// `0.1%` or `0.001`, up to `100%`: a part of the packets.
pub fn part(text: &str) -> Result<Ratio, PartError> {
    let ratio: Ratio = text.parse()?;
    if ratio > Ratio::ONE { Err(PartError::MoreThanAll { text: text.to_owned() }) } else { Ok(ratio) }
}

impl From<f64> for Ratio {
    fn from(value: f64) -> Self {
        Self::new(value)
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> Self {
        ratio.0
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let decimals = match percent {
            0.0 => 0,
            p if p < 0.01 => 4,
            p if p < 10.0 => 2,
            _ => 1,
        };
        f.pad(&format!("{percent:.decimals$} %"))
    }
}

impl FromStr for Ratio {
    type Err = ParseQuantityError;

    /// `0.1%`, `5 %`, or a plain number from 0 to 1.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let error = || ParseQuantityError { text: text.to_owned(), wanted: "a ratio", example: "for instance 0.1% or 0.001" };
        let (number, suffix) = number_and_suffix(text).ok_or_else(error)?;
        match suffix {
            "%" => Ok(Self::percent(number)),
            "" if number <= 1.0 => Ok(Self::new(number)),
            _ => Err(error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_percent() {
        assert_eq!(Ratio::percent(0.1).to_string(), "0.10 %");
        assert_eq!(Ratio::percent(52.34).to_string(), "52.3 %");
        assert_eq!(Ratio::ZERO.to_string(), "0 %");
        assert_eq!("0.1%".parse(), Ok(Ratio::new(0.001)));
        assert_eq!("0.5".parse(), Ok(Ratio::new(0.5)));
        assert!("50".parse::<Ratio>().is_err());
    }

    #[test]
    fn no_more_than_all_of_them() {
        assert_eq!(part("100%"), Ok(Ratio::ONE));
        assert_eq!(part("0.001"), Ok(Ratio::percent(0.1)));
        assert!(part("150%").is_err_and(|error| error.to_string().contains("100% at most")));
        assert!(part("much").is_err());
    }
}
