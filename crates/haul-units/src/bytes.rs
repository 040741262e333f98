//! Sizes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

use crate::parse::{ParseQuantityError, number_and_suffix, scaled};

/// A number of bytes. Prints with binary prefixes, three significant digits: `1.50 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bytes(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `n` KiB (1024 bytes each).
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The count.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The difference, zero where it would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PREFIXES: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut prefix = 0;
        // 1023.5 would print as 1024: the next prefix reads better.
        while value >= 1023.5 && prefix + 1 < PREFIXES.len() {
            value /= 1024.0;
            prefix += 1;
        }
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        f.pad(&format!("{value:.decimals$} {}", PREFIXES[prefix]))
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    /// `4096`, `64K`, `64KiB` (1024 each), `1.5G`; with `B` after a decimal prefix, as in `1GB`, powers of 1000.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let error =
            || ParseQuantityError { text: text.to_owned(), wanted: "a size", example: "for instance 4096, 64K, 16MiB or 1GB" };
        let (number, suffix) = number_and_suffix(text).ok_or_else(error)?;
        let factor = match suffix.to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1048576.0,
            "g" | "gib" => 1073741824.0,
            "t" | "tib" => 1099511627776.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            _ => return Err(error()),
        };
        scaled(number, factor).map(Self).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_significant_digits_and_the_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536 << 10, "1.50 MiB"),
            (10 << 20, "10.0 MiB"),
            (100 << 30, "100 GiB"),
            ((1 << 30) - 1, "1.00 GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn parses_what_people_type() {
        for (text, bytes) in [("4096", 4096), ("64k", 65536), ("1.5 MiB", 1572864), ("1GB", 1_000_000_000), ("0", 0)] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_and_names_it() {
        for text in ["", "x", "-1", "1 Q", "1e3", "nan", "99999999999T"] {
            let error = text.parse::<Bytes>().expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
