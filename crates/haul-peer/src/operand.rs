//! What an operand of `haul cp` names: a local path, a path behind ssh, a path behind a daemon, or a standard stream.
//!
//! scp's rule decides between local and remote: a `:` before any `/` makes it remote, unless it is the first character. Paths are bytes,
//! not text: any name that a file system holds can be given. `gfarm:` and `ram:` are no hosts but stores that this machine reaches, and `any:` is one that another
//! machine chooses; a host of such a name is written `scp://gfarm/path`, `user@gfarm:path` or `[gfarm]:path`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::system::{is_path_here, os_str};

/// The port that `haul serve` listens on unless told otherwise.
pub const DAEMON_PORT: u16 = 7700;

/// What stands before the path in a store that is no directory of this machine and that this machine reaches without another one.
pub const STORES: [&str; 2] = ["gfarm:", "ram:"];

/// What stands before the name of a file whose place the machine chooses that stores it: behind a host only.
const CHOSEN_THERE: &str = "any:";

/// A source or a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// `-`: standard input as a source, standard output as a target.
    Stdio,
    /// A path on this machine, or in one of its [`STORES`], with the store before it.
    Local(PathBuf),
    /// A path on a machine that ssh reaches.
    Ssh(SshHost, OsString),
    /// A path below a root of a daemon.
    Daemon(DaemonHost, OsString),
}

/// A machine that ssh reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// Who logs in, unless ssh's configuration says.
    pub user: Option<OsString>,
    /// Name or address, or an alias of ssh's configuration.
    pub host: OsString,
    /// The ssh server's port, from an `scp://` address.
    pub port: Option<u16>,
}

/// A machine where a daemon runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonHost {
    /// Name or address.
    pub host: String,
    /// The daemon's UDP port.
    pub port: u16,
}

/// An operand that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OperandError {
    /// Nothing between two quotes, for instance from an unset variable.
    #[error("an empty name")]
    Empty,
    /// No host, or one that ssh would take for an option.
    #[error("{0}: not a host name")]
    BadHost(String),
    /// An address without a host.
    #[error("{0}: no host named: write haul://HOST/ROOT/path, or scp://HOST/path")]
    NoHost(String),
    /// A port that is not one.
    #[error("{0}: not a port")]
    BadPort(String),
    /// `%` without two hexadecimal digits, in an address.
    #[error("{0}: a % must be followed by two hexadecimal digits")]
    BadEscape(String),
    /// A daemon's address with a user in it.
    #[error("{0}: a daemon knows keys, not users: leave out the part before the @")]
    UserAtDaemon(String),
    /// A daemon's address that names no root.
    #[error("{0}: no root named: write haul://host/ROOT/path")]
    NoRoot(String),
    /// A place that is another machine's choice, and no other machine.
    #[error(
        "{0}: any: is a place of another machine's choice: write HOST:any:NAME; a file here that is called so is ./{0}, on a host called any [any]:PATH"
    )]
    NotHere(String),
    /// An address of some other kind.
    #[error("{0}: only scp:// and haul:// addresses are understood")]
    UnknownScheme(String),
}

impl Operand {
    /// Understands one operand.
    pub fn parse(text: &OsStr) -> Result<Self, OperandError> {
        let bytes = text.as_encoded_bytes();
        if bytes.is_empty() {
            return Err(OperandError::Empty);
        }
        if bytes == b"-" {
            return Ok(Self::Stdio);
        }
        if let Some((scheme, rest)) = scheme(bytes) {
            return match scheme {
                b"scp" => ssh_address(rest, text),
                b"haul" => daemon_address(rest, text),
                _ => Err(OperandError::UnknownScheme(shown(text))),
            };
        }
        if is_path_here(bytes) || STORES.iter().any(|store| bytes.starts_with(store.as_bytes())) {
            return Ok(Self::Local(PathBuf::from(text)));
        }
        if bytes.starts_with(CHOSEN_THERE.as_bytes()) {
            return Err(OperandError::NotHere(shown(text)));
        }
        match host_and_path(bytes) {
            None => Ok(Self::Local(PathBuf::from(text))),
            Some((authority, path)) => {
                let (user, host) = user_and_host(authority);
                Ok(Self::Ssh(SshHost::new(user, host, None, text)?, os_str(path).into_owned()))
            }
        }
    }

    /// Whether it is on another machine.
    pub const fn is_remote(&self) -> bool {
        matches!(self, Self::Ssh(..) | Self::Daemon(..))
    }
}

impl SshHost {
    /// `[user@]host`, as ssh takes it.
    pub fn parse(text: &OsStr) -> Result<Self, OperandError> {
        let (user, host) = user_and_host(text.as_encoded_bytes());
        Self::new(user, host, None, text)
    }

    fn new(user: Option<&[u8]>, host: &[u8], port: Option<u16>, whole: &OsStr) -> Result<Self, OperandError> {
        let host = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host);
        // A host or user that starts with a dash would be an option to ssh; control characters and blanks are never part of one.
        let sound = |name: &[u8]| !name.is_empty() && name[0] != b'-' && name.iter().all(|&b| b > b' ' && b != 0x7f);
        if !sound(host) || !user.is_none_or(sound) {
            return Err(OperandError::BadHost(shown(whole)));
        }
        Ok(Self { user: user.map(|user| os_str(user).into_owned()), host: os_str(host).into_owned(), port })
    }
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{}@", user.display())?;
        }
        write!(f, "{}", self.host.display())
    }
}

impl fmt::Display for DaemonHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.host.contains(':');
        let (open, close) = if brackets { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.host, self.port)
    }
}

impl DaemonHost {
    /// `host`, `host:port`, `[v6]` or `[v6]:port`; the daemon's own port where none is given.
    pub fn parse(text: &str) -> Result<Self, OperandError> {
        Self::parse_or(text, DAEMON_PORT)
    }

    /// The same with another port where none is given.
    pub fn parse_or(text: &str, default_port: u16) -> Result<Self, OperandError> {
        if text.is_empty() {
            return Err(OperandError::Empty);
        }
        let bad_host = || OperandError::BadHost(text.to_owned());
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(bad_host)?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or_else(bad_host)?)
            }
            None if text.matches(':').count() > 1 => (text, ""),
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%') || !c.is_ascii();
        if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
            return Err(bad_host());
        }
        let port = match port {
            "" => default_port,
            port => port.parse().ok().filter(|&port| port > 0).ok_or_else(|| OperandError::BadPort(port.to_owned()))?,
        };
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("-"),
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::Ssh(host, path) => {
                let path = Path::new(path).display();
                let is_address = host.host.as_encoded_bytes().contains(&b':');
                let brackets = is_address || (host.user.is_none() && host.port.is_none() && is_store(&host.host));
                let (open, close) = if brackets { ("[", "]") } else { ("", "") };
                let user = host.user.as_ref().map(|user| format!("{}@", user.display())).unwrap_or_default();
                let name = format!("{user}{open}{}{close}", host.host.display());
                match host.port {
                    None => write!(f, "{name}:{path}"),
                    Some(port) => write!(f, "scp://{name}:{port}/{}", path.to_string().replace('%', "%25")),
                }
            }
            Self::Daemon(host, path) => write!(f, "haul://{host}/{}", Path::new(path).display()),
        }
    }
}

/// Whether a host's name with a colon behind it would be taken for a store.
fn is_store(host: &OsStr) -> bool {
    let is_named = |store: &str| store.strip_suffix(':').is_some_and(|name| host == name);
    STORES.iter().copied().chain([CHOSEN_THERE]).any(is_named)
}

/// Splits `scheme://rest`.
fn scheme(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(3).position(|window| window == b"://")?;
    let (scheme, rest) = bytes.split_at(end);
    let named = !scheme.is_empty() && scheme.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    named.then(|| (scheme, &rest[3..]))
}

/// Splits `[user@]host:path`, or says that it is local.
fn host_and_path(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes[0] == b':' {
        return None;
    }
    let start = bytes.iter().position(|&b| b == b'@').map_or(0, |at| at + 1);
    let bracketed = bytes[start..].first() == Some(&b'[') && !bytes[..start].contains(&b'/');
    let colon = if bracketed {
        start + bytes[start..].windows(2).position(|window| window == b"]:")? + 1
    } else {
        bytes.iter().position(|&b| matches!(b, b':' | b'/')).filter(|&at| bytes[at] == b':')?
    };
    Some((&bytes[..colon], &bytes[colon + 1..]))
}

/// The last `@` divides: a user name may hold one, a host name may not.
fn user_and_host(authority: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match authority.iter().rposition(|&b| b == b'@') {
        Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
        None => (None, authority),
    }
}

fn ssh_address(rest: &[u8], whole: &OsStr) -> Result<Operand, OperandError> {
    let (authority, path) = authority_and_path(rest);
    if authority.is_empty() {
        return Err(OperandError::NoHost(shown(whole)));
    }
    let (user, host) = user_and_host(authority);
    let user = user.map(|user| unescaped(user, whole)).transpose()?;
    let (host, port) = ssh_host_and_port(host, whole)?;
    let path = os_str(&unescaped(path, whole)?).into_owned();
    Ok(Operand::Ssh(SshHost::new(user.as_deref(), host, port, whole)?, path))
}

fn ssh_host_and_port<'a>(host: &'a [u8], whole: &OsStr) -> Result<(&'a [u8], Option<u16>), OperandError> {
    let name_end = if host.first() == Some(&b'[') { host.iter().position(|&b| b == b']').map_or(0, |at| at + 1) } else { 0 };
    let Some(colon) = host[name_end..].iter().position(|&b| b == b':').map(|at| at + name_end) else { return Ok((host, None)) };
    let port = std::str::from_utf8(&host[colon + 1..]).ok().and_then(|text| text.parse::<u16>().ok()).filter(|&port| port > 0);
    match port {
        Some(port) => Ok((&host[..colon], Some(port))),
        None => Err(OperandError::BadPort(shown(whole))),
    }
}

fn daemon_address(rest: &[u8], whole: &OsStr) -> Result<Operand, OperandError> {
    let (authority, path) = authority_and_path(rest);
    if authority.contains(&b'@') {
        return Err(OperandError::UserAtDaemon(shown(whole)));
    }
    if authority.is_empty() || authority[0] == b':' {
        return Err(OperandError::NoHost(shown(whole)));
    }
    let bad_host = || OperandError::BadHost(shown(whole));
    let authority = std::str::from_utf8(authority).map_err(|_| bad_host())?;
    let host = DaemonHost::parse(authority).map_err(|error| match error {
        OperandError::BadHost(_) => bad_host(),
        error => error,
    })?;
    let path = unescaped(path, whole)?;
    if path.iter().all(|&b| b == b'/') {
        return Err(OperandError::NoRoot(shown(whole)));
    }
    Ok(Operand::Daemon(host, os_str(&path).into_owned()))
}

/// The path is without the slash that ends the authority: `scp://host/path` is relative to the home directory, `scp://host//path` is not.
fn authority_and_path(rest: &[u8]) -> (&[u8], &[u8]) {
    match rest.iter().position(|&b| b == b'/') {
        Some(slash) => (&rest[..slash], &rest[slash + 1..]),
        None => (rest, b""),
    }
}

/// Decodes `%41` to `A` (RFC 3986 2.1).
fn unescaped(text: &[u8], whole: &OsStr) -> Result<Vec<u8>, OperandError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            decoded.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok()).filter(|pair| !pair.starts_with('+'));
        let value = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        // A NUL would end the name early in every system call.
        decoded.push(value.filter(|&value| value != 0).ok_or_else(|| OperandError::BadEscape(shown(whole)))?);
        rest = &tail[2..];
    }
    Ok(decoded)
}

fn shown(text: &OsStr) -> String {
    text.display().to_string()
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn parsed(text: &str) -> Result<Operand, OperandError> {
        Operand::parse(OsStr::new(text))
    }

    fn ssh(user: Option<&str>, host: &str, port: Option<u16>, path: &str) -> Operand {
        Operand::Ssh(SshHost { user: user.map(Into::into), host: host.into(), port }, path.into())
    }

    fn daemon(host: &str, port: u16, path: &str) -> Operand {
        Operand::Daemon(DaemonHost { host: host.into(), port }, path.into())
    }

    #[test]
    fn local_paths_and_streams() {
        for text in ["a", "/a:b", "./a:b", "dir/x:y", ":a", "..", "a b", "@", "a@b", "./-", "user@/x:y", "x/scp://y"] {
            assert_eq!(parsed(text), Ok(Operand::Local(text.into())), "{text}");
        }
        assert_eq!(parsed("-"), Ok(Operand::Stdio));
        assert_eq!(parsed(""), Err(OperandError::Empty));
    }

    #[test]
    fn stores_are_no_hosts() {
        for text in ["gfarm:/a/b", "gfarm:", "ram:x", "./gfarm:", "gfarm://host/x"] {
            let parsed = parsed(text);
            let store = !text.contains("://");
            assert_eq!(parsed.is_ok(), store, "{text}: {parsed:?}");
            assert!(!store || parsed == Ok(Operand::Local(text.into())), "{text}");
        }
        for (text, user) in [("me@gfarm:/a", Some("me")), ("[gfarm]:/a", None), ("scp://gfarm//a", None)] {
            assert_eq!(parsed(text), Ok(ssh(user, "gfarm", None, "/a")), "{text}");
        }
        assert_eq!(parsed("host:gfarm:/a"), Ok(ssh(None, "host", None, "gfarm:/a")));
    }

    #[test]
    fn the_choice_of_another_machine_is_behind_its_name() {
        for text in ["any:", "any:x", "any:/a/b"] {
            let error = parsed(text).expect_err(text);
            assert_eq!(error, OperandError::NotHere(text.to_owned()));
            assert!(error.to_string().contains("write HOST:any:NAME"), "{error}");
        }
        assert_eq!(parsed("host:any:x"), Ok(ssh(None, "host", None, "any:x")));
        for (text, user) in [("me@any:/a", Some("me")), ("[any]:/a", None), ("scp://any//a", None)] {
            assert_eq!(parsed(text), Ok(ssh(user, "any", None, "/a")), "{text}");
        }
        for text in ["./any:x", "any", "any/x:y"] {
            assert_eq!(parsed(text), Ok(Operand::Local(text.into())), "{text}");
        }
    }

    #[test]
    fn hosts_as_scp_has_them() {
        assert_eq!(parsed("host:"), Ok(ssh(None, "host", None, "")));
        assert_eq!(parsed("host:a:b/c"), Ok(ssh(None, "host", None, "a:b/c")));
        assert_eq!(parsed("me@host:/x y"), Ok(ssh(Some("me"), "host", None, "/x y")));
        assert_eq!(parsed("me@corp@host:x"), Ok(ssh(Some("me@corp"), "host", None, "x")));
        assert_eq!(parsed("[::1]:x"), Ok(ssh(None, "::1", None, "x")));
        assert_eq!(parsed("me@[fe80::1%eth0]:x"), Ok(ssh(Some("me"), "fe80::1%eth0", None, "x")));
    }

    #[test]
    fn addresses_of_scp() {
        assert_eq!(parsed("scp://host"), Ok(ssh(None, "host", None, "")));
        assert_eq!(parsed("scp://me@host:2222/a%20b"), Ok(ssh(Some("me"), "host", Some(2222), "a b")));
        assert_eq!(parsed("scp://[::1]:22//etc/x"), Ok(ssh(None, "::1", Some(22), "/etc/x")));
        assert_eq!(parsed("scp://host:0/x"), Err(OperandError::BadPort("scp://host:0/x".into())));
        assert_eq!(parsed("scp://host/%zz"), Err(OperandError::BadEscape("scp://host/%zz".into())));
        assert!(matches!(parsed("scp://host/%00"), Err(OperandError::BadEscape(_))));
    }

    #[test]
    fn addresses_of_daemons() {
        assert_eq!(parsed("haul://Host/pub/a"), Ok(daemon("host", 7700, "pub/a")));
        assert_eq!(parsed("haul://[::1]:7000/pub"), Ok(daemon("::1", 7000, "pub")));
        assert_eq!(parsed("haul://host/"), Err(OperandError::NoRoot("haul://host/".into())));
        assert_eq!(parsed("haul://host"), Err(OperandError::NoRoot("haul://host".into())));
        assert!(matches!(parsed("haul://me@host/pub"), Err(OperandError::UserAtDaemon(_))));
        assert!(matches!(parsed("haul://host:x/pub"), Err(OperandError::BadPort(_))));
        assert_eq!(parsed("haul://ho st/pub"), Err(OperandError::BadHost("haul://ho st/pub".into())));
    }

    #[test]
    fn an_address_without_a_host_is_named_and_answered() {
        for text in ["haul:///pub", "haul://:7700/pub", "scp:///pub", "haul://"] {
            let error = parsed(text).expect_err(text).to_string();
            assert!(error.starts_with(&format!("{text}: no host named: write haul://HOST/")), "{error}");
        }
        assert_eq!(DaemonHost::parse(""), Err(OperandError::Empty));
    }

    #[test]
    fn what_ssh_would_take_for_an_option_is_refused() {
        for text in ["-oProxyCommand=x:y", "-l@host:x", "me@-host:x", "scp://-host/x", "@host:x", "me@:x", "[]:x"] {
            assert!(matches!(parsed(text), Err(OperandError::BadHost(_))), "{text}: {:?}", parsed(text));
        }
        assert!(matches!(parsed("sftp://host/x"), Err(OperandError::UnknownScheme(_))));
    }

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_text() {
        let name = OsStr::from_bytes(b"host:\xff\xfe");
        let Ok(Operand::Ssh(_, path)) = Operand::parse(name) else { panic!("refused") };
        assert_eq!(path.as_bytes(), b"\xff\xfe");
    }

    #[test]
    fn prints_as_it_was_written() {
        for text in [
            "me@host:x",
            "haul://host:7700/pub/a",
            "-",
            "./a:b",
            "me@[::1]:x",
            "scp://me@host:22//x%25",
            "[any]:x",
            "[ram]:x",
            "me@gfarm:x",
        ] {
            assert_eq!(parsed(text).map(|operand| operand.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn hosts_with_and_without_a_port() {
        let parsed = |text: &str| DaemonHost::parse_or(text, 9).map(|host| (host.host, host.port)).ok();
        assert_eq!(parsed("far"), Some(("far".into(), 9)));
        assert_eq!(parsed("Far:70"), Some(("far".into(), 70)));
        assert_eq!(parsed("[::1]:70"), Some(("::1".into(), 70)));
        assert_eq!(parsed("[::1]"), Some(("::1".into(), 9)));
        assert_eq!(parsed("fe80::1"), Some(("fe80::1".into(), 9)));
        for wrong in ["", ":70", "far:0", "far:x", "far:70000", "-x", "me@far", "[::1", "[::1]x"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
