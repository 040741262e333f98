//! Paths as they cross the network.

#[cfg(unix)]
#[path = "path/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "path/windows.rs"]
mod system;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path of any bytes that crosses the network. Prints with control characters and invalid UTF-8 escaped.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct WirePath(pub Vec<u8>);

impl WirePath {
    /// As a path of this system.
    pub fn to_path(&self) -> PathBuf {
        system::to_path(&self.0)
    }
}

impl From<&Path> for WirePath {
    fn from(path: &Path) -> Self {
        Self(system::to_bytes(path))
    }
}

impl fmt::Display for WirePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        if !haul_units::push_printable(&mut shown, &self.0, MAX_SHOWN) {
            shown.push_str("...");
        }
        f.write_str(&shown)
    }
}

/// Of a path, so many bytes are shown: the longest that a system takes, with half of it escaped.
const MAX_SHOWN: usize = 16 << 10;

impl fmt::Debug for WirePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
