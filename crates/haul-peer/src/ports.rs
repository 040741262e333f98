//! A range of ports.

use std::ops::RangeInclusive;
use std::str::FromStr;

use thiserror::Error;

/// What is no range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write a port or a range from 1 to 65535, for instance 7700 or 60000-60100")]
pub struct PortRangeError;

/// One port or a range of them, both ends included: `7700`, `60000-60100`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port.
    pub const ALL: Self = Self { first: 1, last: 65535 };

    /// The range from `first` to `last`, if that is one.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first > 0 && first <= last).then_some(Self { first, last })
    }

    /// Both ends.
    pub const fn ends(self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// As the library wants it.
    pub const fn range(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let (first, last) = text.split_once(['-', ':']).unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok();
        port(first).zip(port(last)).and_then(|(first, last)| Self::new(first, last)).ok_or(PortRangeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_port_or_a_range() {
        for (text, ends) in [("7700", (7700, 7700)), ("60000-60100", (60000, 60100)), ("1:65535", (1, 65535))] {
            assert_eq!(text.parse::<PortRange>().map(PortRange::ends), Ok(ends), "{text}");
        }
        for text in ["", "0", "0-5", "9-3", "70000", "a-b", "1-2-3"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }
}
