//! Which controller a connection uses, by name.

use std::fmt;
use std::str::FromStr;

use haul_units::{BitRate, Bytes, Time};

use crate::{Controller, Cubic, Fixed, Lfn};

/// A controller by name: `lfn`, `cubic`, `fixed:10G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ControllerChoice {
    /// For long fat networks: finds the rate of the path and does not take random loss for congestion. The default, for it is what
    /// haul is for.
    #[default]
    Lfn,
    /// CUBIC with HyStart++, as most TCP traffic: any loss is congestion.
    Cubic,
    /// A rate that is known and reserved: loss is ignored.
    Fixed(BitRate),
}

/// What a controller is told about its path at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStart {
    /// When.
    pub now: Time,
    /// A full packet, UDP payload.
    pub packet: Bytes,
    /// Seed of whatever the controller draws by chance.
    pub seed: u64,
}

impl ControllerChoice {
    /// The controller for a new path.
    pub fn build(self, start: &PathStart) -> Box<dyn Controller> {
        match self {
            Self::Lfn => Box::new(Lfn::new(start)),
            Self::Cubic => Box::new(Cubic::new(start)),
            Self::Fixed(rate) => Box::new(Fixed::new(rate, start)),
        }
    }
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lfn => f.pad("lfn"),
            Self::Cubic => f.pad("cubic"),
            // In full, so that it parses back to the same rate.
            Self::Fixed(rate) => f.pad(&format!("fixed:{}", rate.as_bps())),
        }
    }
}

/// A text that names no controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a controller: write lfn, cubic or fixed:RATE, for instance fixed:10G")]
pub struct ParseControllerError(String);

impl FromStr for ControllerChoice {
    type Err = ParseControllerError;

    fn from_str(text: &str) -> Result<Self, ParseControllerError> {
        let error = || ParseControllerError(text.to_owned());
        match text.trim() {
            "lfn" => Ok(Self::Lfn),
            "cubic" => Ok(Self::Cubic),
            other => {
                let rate: BitRate = other.strip_prefix("fixed:").ok_or_else(error)?.parse().map_err(|_| error())?;
                if rate == BitRate::ZERO { Err(error()) } else { Ok(Self::Fixed(rate)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_print() {
        let fixed = ControllerChoice::Fixed(BitRate::gbps(10));
        assert_eq!("fixed:10G".parse(), Ok(fixed));
        for choice in [ControllerChoice::Lfn, ControllerChoice::Cubic, fixed] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for wrong in ["", "reno2", "fixed", "fixed:", "fixed:fast", "fixed:0"] {
            assert!(wrong.parse::<ControllerChoice>().is_err(), "{wrong}");
        }
    }
}
