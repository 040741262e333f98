//! Where the program keeps its own files: the identity key, known hosts, authorised keys, what it has learned about paths.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::system::{config_dir, make_private};

/// There is no directory for keys: none was named, and the environment knows none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no place for the identity key: neither HOME nor XDG_CONFIG_HOME is set")]
pub struct StateError;

/// A directory with an identity key, `known_hosts` and `authorized_keys`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The directory named by `--state`, else `$XDG_CONFIG_HOME/haul`, else `/etc/haul` for root and `~/.config/haul` for others, or `%APPDATA%\haul` on Windows.
    pub fn find(named: Option<&Path>) -> Result<Self, StateError> {
        choose(named, env::var_os("XDG_CONFIG_HOME"), config_dir).map(Self).ok_or(StateError)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory, for its owner alone.
    pub fn create(&self) -> io::Result<()> {
        make_private(&self.0)
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

    /// With what this user returns to daemons.
    pub fn tokens(&self) -> PathBuf {
        self.0.join("tokens")
    }

    /// The keys that may use the daemon.
    pub fn authorized_keys(&self) -> PathBuf {
        self.0.join("authorized_keys")
    }
}

fn choose(named: Option<&Path>, xdg: Option<OsString>, usual: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    match xdg.map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(xdg) => Some(xdg.join("haul")),
        None => usual(),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(named: Option<&str>, xdg: &str) -> Option<String> {
        let xdg = (!xdg.is_empty()).then(|| OsString::from(xdg));
        choose(named.map(Path::new), xdg, || Some("/usual".into())).map(|path| path.display().to_string())
    }

    #[test]
    fn the_named_directory_wins_then_xdg_then_the_user() {
        assert_eq!(chosen(Some("here"), "/x").as_deref(), Some("here"));
        assert_eq!(chosen(None, "/x").as_deref(), Some("/x/haul"));
        assert_eq!(chosen(None, "").as_deref(), Some("/usual"));
        assert_eq!(chosen(None, "relative").as_deref(), Some("/usual"));
    }
}
