//! The laws by name: those that haul brings, and those that the kernel has.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The longest name of a congestion control in the kernel.
const LONGEST_NAME: usize = 15;

/// Congestion control that haul brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// Fair to all connections, blind to random loss.
    Fair,
    /// As fair, and starts with what it remembers of the peer's path.
    Quickstart,
    /// Keeps the queue short and gives way.
    Modest,
    /// As much as can be had.
    Aggressive,
    /// FAST TCP.
    Fast,
    /// HighSpeed TCP (RFC 3649).
    Highspeed,
    /// Scalable TCP.
    Scalable,
    /// BIC TCP.
    Bic,
    /// After TCP Westwood+.
    Westwood,
    /// LIA (RFC 6356): the subflows of a Multipath TCP connection grow together.
    Lia,
    /// OLIA (draft-khalili-mptcp-congestion-control).
    Olia,
    /// BALIA (draft-walid-mptcp-congestion-control).
    Balia,
}

impl Law {
    /// In the order of `enum law` in bpf/flow.h.
    pub const ALL: [Self; 12] = [
        Self::Fair,
        Self::Quickstart,
        Self::Modest,
        Self::Aggressive,
        Self::Fast,
        Self::Highspeed,
        Self::Scalable,
        Self::Bic,
        Self::Westwood,
        Self::Lia,
        Self::Olia,
        Self::Balia,
    ];

    /// As users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Quickstart => "quickstart",
            Self::Modest => "modest",
            Self::Aggressive => "aggressive",
            Self::Fast => "fast",
            Self::Highspeed => "highspeed",
            Self::Scalable => "scalable",
            Self::Bic => "bic",
            Self::Westwood => "westwood",
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
        }
    }

    /// As the kernel calls it.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::Fair => "haul_fair",
            Self::Quickstart => "haul_quickstart",
            Self::Modest => "haul_modest",
            Self::Aggressive => "haul_aggressive",
            Self::Fast => "haul_fast",
            Self::Highspeed => "haul_highspeed",
            Self::Scalable => "haul_scalable",
            Self::Bic => "haul_bic",
            Self::Westwood => "haul_westwood",
            Self::Lia => "haul_lia",
            Self::Olia => "haul_olia",
            Self::Balia => "haul_balia",
        }
    }

    /// One line for a list.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Fair => "fair among all connections, blind to random loss",
            Self::Quickstart => "as fair, starting with what is remembered of the peer's path",
            Self::Modest => "short queues; gives way to others",
            Self::Aggressive => "as much as can be had, whoever else is there",
            Self::Fast => "FAST TCP: a fixed number of its packets wait in the queue",
            Self::Highspeed => "HighSpeed TCP, RFC 3649",
            Self::Scalable => "Scalable TCP: recovers in the same number of round trips at any rate",
            Self::Bic => "BIC TCP: binary search for the window",
            Self::Westwood => "Westwood+: falls to the rate that was delivered",
            Self::Lia => "LIA, RFC 6356: the subflows of a Multipath TCP connection together as one flow",
            Self::Olia => "OLIA: as lia, and moves to the subflows that lose less",
            Self::Balia => "BALIA: as lia, between it and olia",
        }
    }

    /// The map of operations in the object.
    pub(crate) fn operations(self) -> String {
        format!("{}_law", self.name())
    }
}

/// Congestion control by name: haul's, or the kernel's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// One that haul loads.
    Own(Law),
    /// One that the kernel has or not, by the kernel's name.
    Kernel(String),
}

/// What no kernel takes for a name of a congestion control: letters, digits, `_` and `-`, at most fifteen of them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no name of a congestion control")]
pub struct NoControl(pub String);

impl Choice {
    /// As the kernel calls it.
    pub fn kernel_name(&self) -> String {
        match self {
            Self::Own(law) => law.kernel_name().to_owned(),
            Self::Kernel(name) => name.clone(),
        }
    }

    /// Of what the kernel calls it.
    pub fn of_kernel(name: &str) -> Self {
        let own = name.strip_prefix("haul_").and_then(|own| Law::ALL.into_iter().find(|law| law.name() == own));
        own.map_or_else(|| Self::Kernel(name.to_owned()), Self::Own)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(law) => f.write_str(law.name()),
            Self::Kernel(name) => f.write_str(name),
        }
    }
}

impl FromStr for Choice {
    type Err = NoControl;

    fn from_str(text: &str) -> Result<Self, NoControl> {
        if text == "standard" {
            return Ok(Self::Kernel("reno".to_owned()));
        }
        if let Some(law) = Law::ALL.into_iter().find(|law| law.name() == text || law.kernel_name() == text) {
            return Ok(Self::Own(law));
        }
        let named = text.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
        if named && (1..=LONGEST_NAME).contains(&text.len()) {
            Ok(Self::Kernel(text.to_owned()))
        } else {
            Err(NoControl(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_into_the_kernels_field() {
        for law in Law::ALL {
            assert!(law.kernel_name().len() <= LONGEST_NAME && law.kernel_name() == format!("haul_{}", law.name()));
            assert_eq!(law.name().parse(), Ok(Choice::Own(law)));
            assert_eq!(law.kernel_name().parse(), Ok(Choice::Own(law)));
            assert_eq!(Choice::of_kernel(law.kernel_name()), Choice::Own(law));
        }
    }

    #[test]
    fn other_names_are_the_kernels() {
        assert_eq!("cubic".parse(), Ok(Choice::Kernel("cubic".into())));
        assert_eq!("standard".parse(), Ok(Choice::Kernel("reno".into())));
        for wrong in ["", "a b", "sixteen_letters_", "../x", "fair\n"] {
            assert!(wrong.parse::<Choice>().is_err(), "{wrong:?}");
        }
    }
}
