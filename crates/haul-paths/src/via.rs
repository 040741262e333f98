//! By which ways a user wants a connection to leave: interfaces, addresses, and what each is for.
//!
//! ```text
//!   eth0    192.0.2.7    eth1:backup    wwan0:metered=5GB    fd00::1    [fd00::1]:backup    all
//! ```
//! A *backup* carries data only while no other way works. A *metered* way is a backup that may carry no more than so many bytes, sent and received together.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use haul_units::{Bytes, ParseQuantityError};

/// One way for paths to leave by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via {
    /// Which.
    pub exit: Exit,
    /// What for.
    pub class: Class,
}

/// What paths leave from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// Every interface that has an address of the server's family, those that come later too, unless they are named beside it.
    All,
    /// This interface, whatever its address is.
    Interface(String),
    /// This address, on whichever interface it is.
    Address(IpAddr),
}

/// What a way is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// Data.
    #[default]
    Normal,
    /// Data while no normal way works.
    Backup,
    /// As [`Class::Backup`], and no more than so many bytes of UDP payload, both directions together, for a connection.
    Metered(Option<Bytes>),
}

impl Class {
    /// Whether it carries data only while no normal way works.
    pub const fn is_backup(self) -> bool {
        !matches!(self, Self::Normal)
    }

    /// The most that may pass, if that is limited.
    pub const fn limit(self) -> Option<Bytes> {
        if let Self::Metered(limit) = self { limit } else { None }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Backup => f.write_str("backup"),
            Self::Metered(None) => f.write_str("metered"),
            Self::Metered(Some(limit)) => write!(f, "metered={}", limit.as_u64()),
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.exit, self.class) {
            (Exit::All, _) => f.write_str("all"),
            (Exit::Interface(name), Class::Normal) => f.write_str(name),
            (Exit::Interface(name), class) => write!(f, "{name}:{class}"),
            (Exit::Address(address), Class::Normal) => write!(f, "{address}"),
            (Exit::Address(IpAddr::V6(address)), class) => write!(f, "[{address}]:{class}"),
            (Exit::Address(address), class) => write!(f, "{address}:{class}"),
        }
    }
}

/// What is no way to leave by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViaSyntaxError {
    /// Neither a name nor an address.
    #[error("`{0}` names no interface and no address")]
    Exit(String),
    /// An unknown class.
    #[error("`{0}` is no class of a way: backup, metered or metered=BYTES")]
    Class(String),
    /// `all` is for what is not named.
    #[error("`all` has no class: name the interfaces that have one beside it, as in all,wwan0:metered")]
    AllWithClass,
    /// A limit that is none.
    #[error(transparent)]
    Limit(#[from] ParseQuantityError),
}

impl FromStr for Via {
    type Err = ViaSyntaxError;

    fn from_str(text: &str) -> Result<Self, ViaSyntaxError> {
        if let Ok(address) = text.parse() {
            return Ok(Self { exit: Exit::Address(address), class: Class::Normal });
        }
        let (exit, class) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((exit, "")) => (exit, None),
            Some((exit, rest)) => (exit, Some(rest.strip_prefix(':').ok_or_else(|| ViaSyntaxError::Exit(text.to_owned()))?)),
            None => text.split_once(':').map_or((text, None), |(exit, class)| (exit, Some(class))),
        };
        let class = class.map_or(Ok(Class::Normal), parse_class)?;
        let exit = match exit.parse() {
            Ok(address) => Exit::Address(address),
            Err(_) if exit == "all" && class == Class::Normal => Exit::All,
            Err(_) if exit == "all" => return Err(ViaSyntaxError::AllWithClass),
            Err(_) if is_name(exit) => Exit::Interface(exit.to_owned()),
            Err(_) => return Err(ViaSyntaxError::Exit(text.to_owned())),
        };
        Ok(Self { exit, class })
    }
}

fn parse_class(text: &str) -> Result<Class, ViaSyntaxError> {
    match text.split_once('=').unwrap_or((text, "")) {
        ("backup", "") => Ok(Class::Backup),
        ("metered", "") => Ok(Class::Metered(None)),
        ("metered", limit) => Ok(Class::Metered(Some(limit.parse()?))),
        _ => Err(ViaSyntaxError::Class(text.to_owned())),
    }
}

/// What Linux takes for the name of an interface.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text != "." && text != ".." && text.chars().all(fits)
}

/// IFNAMSIZ, its zero taken off.
const NAME_BYTES_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn via(text: &str) -> Result<Via, String> {
        text.parse().map_err(|error: ViaSyntaxError| error.to_string())
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in
            ["eth0", "all", "192.0.2.7", "fd00::1", "eth1:backup", "wwan0:metered", "[fd00::1]:backup", "192.0.2.7:metered=5000"]
        {
            assert_eq!(via(text).map(|via| via.to_string()), Ok(text.to_owned()));
        }
        let metered = via("wwan0:metered=5GB").map(|via| via.class);
        assert_eq!(metered, Ok(Class::Metered(Some(Bytes(5_000_000_000)))));
        assert_eq!(via("[fd00::1]").map(|via| via.exit), Ok(Exit::Address("fd00::1".parse().unwrap())));
        assert!(metered.is_ok_and(Class::is_backup) && !Class::Normal.is_backup());
    }

    #[test]
    fn what_is_none_is_refused_in_words() {
        for (text, word) in [
            ("", "no interface"),
            ("a-name-that-is-too-long", "no interface"),
            ("a/b", "no interface"),
            ("eth0:spare", "backup, metered"),
            ("eth0:", "backup, metered"),
            ("eth0:backup=3", "backup, metered"),
            ("eth0:metered=much", "much"),
            ("all:backup", "beside it"),
            ("[fd00::1]backup", "no interface"),
        ] {
            assert!(via(text).is_err_and(|error| error.contains(word)), "{text}: {:?}", via(text));
        }
    }
}
