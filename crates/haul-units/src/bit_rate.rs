//! Rates.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::parse::{ParseQuantityError, number_and_suffix, scaled};
use crate::{Bytes, Ratio};

/// Bits per second. Prints with decimal prefixes, three significant digits: `9.41 Gbit/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct BitRate(u64);

impl BitRate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// Beyond any link: for "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// `n` bits per second.
    pub const fn from_bps(n: u64) -> Self {
        Self(n)
    }

    /// `n` times 10^6 bits per second.
    pub const fn mbps(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` times 10^9 bits per second.
    pub const fn gbps(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// The rate at which `bytes` pass in `time`; [`BitRate::MAX`] where no time passes.
    pub fn of(bytes: Bytes, time: Duration) -> Self {
        let nanos = time.as_nanos();
        if nanos == 0 {
            return Self::MAX;
        }
        Self(u64::try_from(u128::from(bytes.0) * 8_000_000_000 / nanos).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// How much passes in `time`, rounded down.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        Bytes(u64::try_from(u128::from(self.0) * time.as_nanos() / 8_000_000_000).unwrap_or(u64::MAX))
    }

    /// How long `bytes` take, rounded up to a nanosecond; ten years at a rate of zero.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        const TEN_YEARS: Duration = Duration::from_secs(315_360_000);
        if self.0 == 0 {
            return TEN_YEARS;
        }
        let nanos = (u128::from(bytes.0) * 8_000_000_000).div_ceil(u128::from(self.0));
        u64::try_from(nanos).map_or(TEN_YEARS, Duration::from_nanos).min(TEN_YEARS)
    }

    /// The rate times a factor, not below zero.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).max(0.0) as u64)
    }

    /// This rate as a part of another one; zero where the other is zero.
    pub fn ratio_to(self, whole: Self) -> Ratio {
        if whole.0 == 0 { Ratio::ZERO } else { Ratio::new(self.0 as f64 / whole.0 as f64) }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
        let mut value = self.0 as f64;
        let mut prefix = 0;
        while value >= 999.5 && prefix + 1 < PREFIXES.len() {
            value /= 1000.0;
            prefix += 1;
        }
        let decimals = match value {
            _ if prefix == 0 => 0,
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.decimals$} {}bit/s", PREFIXES[prefix]))
    }
}

impl FromStr for BitRate {
    type Err = ParseQuantityError;

    /// `1000000`, `10M`, `1.5G`, `250 Mbit/s`, `10Gbps`: bits per second with decimal prefixes.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let error = || ParseQuantityError {
            text: text.to_owned(),
            wanted: "a rate in bits per second",
            example: "for instance 10G, 250M or 1.5 Gbit/s",
        };
        let (number, suffix) = number_and_suffix(text).ok_or_else(error)?;
        // A capital B means bytes: refused, for a factor of eight must not slip in.
        if suffix.contains('B') {
            return Err(error());
        }
        let suffix = suffix.to_ascii_lowercase();
        let prefix = suffix.strip_suffix("bit/s").or_else(|| suffix.strip_suffix("bps")).unwrap_or(&suffix);
        let factor = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return Err(error()),
        };
        scaled(number, factor).map(Self).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_decimal_prefixes() {
        for (bps, text) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (1_500, "1.50 kbit/s"),
            (94_100_000, "94.1 Mbit/s"),
            (9_999_999_999, "10.0 Gbit/s"),
        ] {
            assert_eq!(BitRate(bps).to_string(), text);
        }
    }

    #[test]
    fn parses_bits_and_refuses_bytes() {
        assert_eq!("10G".parse(), Ok(BitRate::gbps(10)));
        assert_eq!("250 Mbit/s".parse(), Ok(BitRate::mbps(250)));
        assert_eq!("1.5Gbps".parse(), Ok(BitRate::mbps(1500)));
        assert!("10 MB".parse::<BitRate>().is_err());
        assert!("fast".parse::<BitRate>().is_err());
    }

    #[test]
    fn time_and_bytes_agree() {
        let rate = BitRate::gbps(10);
        assert_eq!(rate.time_for(Bytes(1250)), Duration::from_micros(1));
        assert_eq!(rate.bytes_in(Duration::from_micros(1)), Bytes(1250));
        assert_eq!(BitRate::of(Bytes(1250), Duration::from_micros(1)), rate);
    }
}
