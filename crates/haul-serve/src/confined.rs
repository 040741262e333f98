//! What a far side may serve that ssh has started: whoever wrote its command line decides, not the client.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

use haul_files::{Access, Export, Ownership};
use haul_peer::Refusal;
use thiserror::Error;

use crate::lock_in::Open;

/// What a far side is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    /// A copy.
    Cp,
    /// A measurement.
    Perf,
    /// TCP connections in both directions.
    Proxy,
    /// A command and its standard streams.
    Tunnel,
}

/// What a login is confined to.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// Allowed errands; none: all, or with a root copies alone.
    pub only: Vec<Errand>,
    /// The directory outside of which copies neither read nor write.
    pub root: Option<PathBuf>,
    /// Copies may read only.
    pub read_only: bool,
}

/// Bounds that cannot be kept.
#[derive(Debug, Error)]
pub enum ConfinedError {
    /// A tunnel in a directory.
    #[error("a tunnel runs any command: it cannot be confined to a directory")]
    Tunnel,
    /// There is no such directory.
    #[error("--root {}: {source}", root.display())]
    Root {
        /// As it was spelled.
        root: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The bounds of one login.
#[derive(Debug)]
pub struct Confined {
    /// Allowed errands; none: all.
    only: Option<Vec<Errand>>,
    /// Where copies end.
    root: Option<Export>,
}

impl Confined {
    /// As it was told to.
    pub fn new(bounds: &Bounds) -> Result<Self, ConfinedError> {
        let only = match (&bounds.only[..], &bounds.root) {
            ([], None) => None,
            ([], Some(_)) => Some(vec![Errand::Cp]),
            (only, _) => Some(only.to_vec()),
        };
        let Some(root) = &bounds.root else { return Ok(Self { only, root: None }) };
        if only.as_ref().is_some_and(|only| only.contains(&Errand::Tunnel)) {
            return Err(ConfinedError::Tunnel);
        }
        let failed = |source| ConfinedError::Root { root: root.clone(), source };
        let path = fs::canonicalize(root).map_err(failed)?;
        if !path.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        let root = Export { name: "/".to_owned(), path, writable: !bounds.read_only, ownership: Ownership::Mask };
        Ok(Self { only, root: Some(root) })
    }

    /// Locks the process in to the root (Landlock), unless it is to reach other hosts too: their names are looked up in the system's files.
    pub fn lock_in(&self) {
        let Some(root) = &self.root else { return };
        if self.refuses(Errand::Proxy).is_none() {
            return;
        }
        let open = if root.writable { Open::default().writing(&root.path) } else { Open::default().reading(&root.path) };
        match open.lock_in() {
            Ok(locked) => tracing::debug!(?locked, "locked in"),
            Err(error) => tracing::warn!(%error, "not locked in"),
        }
    }

    /// Why an errand is refused, if it is.
    pub fn refuses(&self, errand: Errand) -> Option<Refusal> {
        let is_allowed = self.only.as_ref().is_none_or(|only| only.contains(&errand));
        let what = match errand {
            Errand::Cp => "copies",
            Errand::Perf => "measuring",
            Errand::Proxy => "a proxy",
            Errand::Tunnel => "commands",
        };
        (!is_allowed).then(|| Refusal {
            error: format!("the key of this login is not for {what} there").into(),
            hint: Some("its line in ssh's authorized_keys there says what it is for (haul remote --only)".into()),
        })
    }

    /// What copies may reach.
    pub fn access(&self) -> Access {
        if let Some(root) = &self.root {
            return Access::Root(root.clone());
        }
        let home = env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" })
            .map(PathBuf::from)
            .or_else(|| env::current_dir().ok());
        Access::Account { home: home.unwrap_or_else(|| PathBuf::from("/")) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn bounds(only: &[Errand], root: Option<&Path>, read_only: bool) -> Bounds {
        Bounds { only: only.to_vec(), root: root.map(Path::to_owned), read_only }
    }

    #[test]
    fn nothing_said_is_everything() {
        let free = Confined::new(&bounds(&[], None, false)).unwrap();
        for errand in [Errand::Cp, Errand::Perf, Errand::Proxy, Errand::Tunnel] {
            assert_eq!(free.refuses(errand), None);
        }
        assert!(matches!(free.access(), Access::Account { .. }));
    }

    #[test]
    fn a_root_is_for_copies_unless_more_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Confined::new(&bounds(&[], Some(dir.path()), true)).unwrap();
        assert_eq!(root.refuses(Errand::Cp), None);
        for errand in [Errand::Perf, Errand::Proxy, Errand::Tunnel] {
            assert!(root.refuses(errand).is_some());
        }
        assert!(matches!(root.access(), Access::Root(Export { writable: false, ownership: Ownership::Mask, .. })));
        let both = Confined::new(&bounds(&[Errand::Cp, Errand::Perf], Some(dir.path()), false)).unwrap();
        assert_eq!(both.refuses(Errand::Perf), None);
        assert!(Confined::new(&bounds(&[Errand::Cp, Errand::Tunnel], Some(dir.path()), false)).is_err());
        assert!(Confined::new(&bounds(&[], Some(&dir.path().join("missing")), false)).is_err());
    }
}
