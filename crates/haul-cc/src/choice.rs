//! Which controller a connection uses, by name.

use std::fmt;
use std::str::FromStr;

use haul_units::BitRate;

use crate::bbr::Bbr;
use crate::bic::Bic;
use crate::coupled::{Balia, Lia, Olia};
use crate::cubic::Cubic;
use crate::fast::Fast;
use crate::highspeed::HighSpeed;
use crate::ledbat::Ledbat;
use crate::reno::Reno;
use crate::scalable::Scalable;
use crate::udt::Udt;
use crate::window::{Law, Windowed};
use crate::{Controller, Fixed, Lfn, Mode, PathStart};

/// A controller by name: `fair`, `cubic`, `fixed:10G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ControllerChoice {
    /// For long fat networks: finds the rate of the path, does not take random loss for congestion, and shares with others. The default,
    /// for it is what haul is for.
    #[default]
    Fair,
    /// As fair, with a start that measures the path by its first packets.
    Quickstart,
    /// Takes what others leave, keeps the queue short and the rate steady.
    Modest,
    /// Takes what it can get.
    Aggressive,
    /// One packet more a round trip, half on loss: the standard others are measured against. RFC 5681
    Reno,
    /// CUBIC with HyStart++, as most TCP traffic: any loss is congestion. RFC 9438
    Cubic,
    /// Reno that grows faster and cuts less the larger its window is. RFC 3649
    HighSpeed,
    /// Scalable TCP: a hundredth more a round trip, an eighth less on loss.
    Scalable,
    /// A binary search for the window below the one at which loss came.
    Bic,
    /// FAST TCP: a fixed number of our packets in the queue, by delay.
    Fast,
    /// UDT's control: steps by the bandwidth that is left, a ninth less on loss.
    Udt,
    /// BBR, version 3: bandwidth and smallest round-trip time, bounded where more than 2 % is lost.
    Bbr,
    /// LEDBAT++: the scavenger, out of the way at 60 ms of queue.
    Ledbat,
    /// Reno over several paths, that together take what one flow takes on the best of them. RFC 6356
    Lia,
    /// As LIA, and moves to the paths on which less is lost.
    Olia,
    /// As LIA, between quick answers and fairness.
    Balia,
    /// A rate that is known and reserved: loss is ignored.
    Fixed(BitRate),
}

impl ControllerChoice {
    /// All but `fixed`, which needs a rate.
    pub const NAMED: &'static [Self] = &[
        Self::Fair,
        Self::Quickstart,
        Self::Modest,
        Self::Aggressive,
        Self::Reno,
        Self::Cubic,
        Self::HighSpeed,
        Self::Scalable,
        Self::Bic,
        Self::Fast,
        Self::Udt,
        Self::Bbr,
        Self::Ledbat,
        Self::Lia,
        Self::Olia,
        Self::Balia,
    ];

    /// The controller for a new path.
    pub fn build(self, start: &PathStart) -> Box<dyn Controller> {
        match self {
            Self::Fair => Box::new(Lfn::new(Mode::Fair, start)),
            Self::Quickstart => Box::new(Lfn::new(Mode::Quickstart, start)),
            Self::Modest => Box::new(Lfn::new(Mode::Modest, start)),
            Self::Aggressive => Box::new(Lfn::new(Mode::Aggressive, start)),
            Self::Reno => Box::new(Windowed::<Reno>::new(start)),
            Self::Cubic => Box::new(Windowed::<Cubic>::new(start)),
            Self::HighSpeed => Box::new(Windowed::<HighSpeed>::new(start)),
            Self::Scalable => Box::new(Windowed::<Scalable>::new(start)),
            Self::Bic => Box::new(Windowed::<Bic>::new(start)),
            Self::Fast => Box::new(Windowed::<Fast>::new(start)),
            Self::Udt => Box::new(Udt::new(start)),
            Self::Bbr => Box::new(Bbr::new(start)),
            Self::Ledbat => Box::new(Windowed::<Ledbat>::new(start)),
            Self::Lia => Box::new(Windowed::<Lia>::new(start)),
            Self::Olia => Box::new(Windowed::<Olia>::new(start)),
            Self::Balia => Box::new(Windowed::<Balia>::new(start)),
            Self::Fixed(rate) => Box::new(Fixed::new(rate, start)),
        }
    }

    /// Whether its start is better if the receiver reports the first packets in small groups.
    pub const fn measures_dispersion(self) -> bool {
        matches!(self, Self::Fair | Self::Quickstart | Self::Udt)
    }

    /// Whether it has a rule of its own for what several paths take together, wherever they lead.
    pub const fn is_coupled(self) -> bool {
        matches!(self, Self::Lia | Self::Olia | Self::Balia)
    }

    /// The name; without the rate for `fixed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => Mode::Fair.name(),
            Self::Quickstart => Mode::Quickstart.name(),
            Self::Modest => Mode::Modest.name(),
            Self::Aggressive => Mode::Aggressive.name(),
            Self::Reno => Reno::NAME,
            Self::Cubic => Cubic::NAME,
            Self::HighSpeed => HighSpeed::NAME,
            Self::Scalable => Scalable::NAME,
            Self::Bic => Bic::NAME,
            Self::Fast => Fast::NAME,
            Self::Udt => Udt::NAME,
            Self::Bbr => Bbr::NAME,
            Self::Ledbat => Ledbat::NAME,
            Self::Lia => Lia::NAME,
            Self::Olia => Olia::NAME,
            Self::Balia => Balia::NAME,
            Self::Fixed(_) => "fixed",
        }
    }

    /// What may be written, as a sentence has it: "fair, cubic or fixed:RATE".
    pub fn names() -> String {
        let named: Vec<&str> = Self::NAMED.iter().map(|choice| choice.name()).collect();
        format!("{} or fixed:RATE", named.join(", "))
    }
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // In full, so that it parses back to the same rate.
            Self::Fixed(rate) => f.pad(&format!("fixed:{}", rate.as_bps())),
            named => f.pad(named.name()),
        }
    }
}

/// A text that names no controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode: write {names}, for instance fixed:10G", names = ControllerChoice::names())]
pub struct ParseControllerError(String);

impl FromStr for ControllerChoice {
    type Err = ParseControllerError;

    fn from_str(text: &str) -> Result<Self, ParseControllerError> {
        let error = || ParseControllerError(text.to_owned());
        let text = text.trim();
        if let Some(named) = Self::NAMED.iter().find(|choice| choice.name() == text) {
            return Ok(*named);
        }
        let rate: BitRate = text.strip_prefix("fixed:").ok_or_else(error)?.parse().map_err(|_| error())?;
        if rate == BitRate::ZERO { Err(error()) } else { Ok(Self::Fixed(rate)) }
    }
}

#[cfg(test)]
mod tests {
    use haul_units::{Bytes, Time};

    use super::*;

    #[test]
    fn names_parse_and_print() {
        let fixed = ControllerChoice::Fixed(BitRate::gbps(10));
        assert_eq!("fixed:10G".parse(), Ok(fixed));
        for choice in ControllerChoice::NAMED.iter().copied().chain([fixed]) {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for wrong in ["", "reno2", "lfn", "fixed", "fixed:", "fixed:fast", "fixed:0"] {
            let error = wrong.parse::<ControllerChoice>().expect_err(wrong).to_string();
            assert!(error.contains("write fair, "), "{error}");
        }
    }

    #[test]
    fn each_name_builds_the_controller_it_names() {
        let start = PathStart::new(Time::ZERO, Bytes(1472), 1);
        for choice in ControllerChoice::NAMED {
            assert_eq!(choice.build(&start).snapshot().algorithm, choice.name());
        }
    }
}
