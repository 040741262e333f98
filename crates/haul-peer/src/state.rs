//! Where the program keeps its own files: the identity key, known hosts, authorised keys, what it has learned about paths.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// There is no directory for keys: none was named, and the environment knows none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no place for the identity key: neither HOME nor XDG_CONFIG_HOME is set")]
pub struct StateError;

/// A directory with an identity key, `known_hosts` and `authorized_keys`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The directory named by `--state`, else `$XDG_CONFIG_HOME/haul`, else `/etc/haul` for root and `~/.config/haul` for others.
    pub fn find(named: Option<&Path>) -> Result<Self, StateError> {
        let root = rustix::process::geteuid().is_root();
        choose(named, env::var_os("XDG_CONFIG_HOME"), env::var_os("HOME"), root).map(Self).ok_or(StateError)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory, for its owner alone.
    pub fn create(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// The private key of this user or machine.
    pub fn identity(&self) -> PathBuf {
        self.0.join("identity")
    }

    /// The keys of the daemons that this user trusts.
    pub fn known_hosts(&self) -> PathBuf {
        self.0.join("known_hosts")
    }

    /// What copies have learned about the ways to hosts.
    pub fn paths(&self) -> PathBuf {
        self.0.join("paths")
    }

    /// The keys that may use the daemon.
    pub fn authorized_keys(&self) -> PathBuf {
        self.0.join("authorized_keys")
    }
}

fn choose(named: Option<&Path>, xdg: Option<OsString>, home: Option<OsString>, root: bool) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    // XDG base directory specification: a relative path is to be ignored.
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    if let Some(xdg) = xdg.and_then(absolute) {
        return Some(xdg.join("haul"));
    }
    if root {
        return Some(PathBuf::from("/etc/haul"));
    }
    home.and_then(absolute).map(|home| home.join(".config/haul"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(named: Option<&str>, xdg: &str, home: &str, root: bool) -> Option<String> {
        let value = |text: &str| (!text.is_empty()).then(|| OsString::from(text));
        choose(named.map(Path::new), value(xdg), value(home), root).map(|path| path.display().to_string())
    }

    #[test]
    fn the_named_directory_wins_then_xdg_then_the_user() {
        assert_eq!(chosen(Some("here"), "/x", "/h", true).as_deref(), Some("here"));
        assert_eq!(chosen(None, "/x", "/h", true).as_deref(), Some("/x/haul"));
        assert_eq!(chosen(None, "", "/root", true).as_deref(), Some("/etc/haul"));
        assert_eq!(chosen(None, "relative", "/h", false).as_deref(), Some("/h/.config/haul"));
        assert_eq!(chosen(None, "", "", false), None);
    }
}
