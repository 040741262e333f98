//! One server of a fleet, as a job sees it.

use std::fmt;
use std::path::{Path, PathBuf};

use haul::Connection;
use haul_files::store::Scheme;
use haul_peer::Connected;
use haul_units::BitRate;

/// A server that is connected and waits for a job. At the other end is what serves copies: `haul remote`, `haul serve`, or a member that was started and has called back.
pub struct Member {
    /// What its user calls it.
    pub name: String,
    /// Carries one job.
    pub connection: Connection,
    /// Where relative paths of a job start there; where its copies usually start, unless it is said.
    pub path: Option<PathBuf>,
    /// No more than this is asked of it.
    pub limit: Option<BitRate>,
    /// What must live as long, such as its ssh.
    pub(crate) keep: Option<Connected>,
}

impl Member {
    /// A server that a [`Connector`](haul_peer::Connector) has reached.
    pub fn reached(name: impl Into<String>, connected: Connected) -> Self {
        Self { name: name.into(), connection: connected.connection.clone(), path: None, limit: None, keep: Some(connected) }
    }

    /// A server that has called back.
    pub fn called_back(name: impl Into<String>, connection: Connection) -> Self {
        Self { name: name.into(), connection, path: None, limit: None, keep: None }
    }

    /// A path of a job, as it is there: what is in a store of its own (`gfarm:`, `ram:`) starts nowhere else.
    pub(crate) fn place(&self, path: &Path) -> PathBuf {
        match &self.path {
            Some(base) if Scheme::split(path.as_os_str().as_encoded_bytes()).0 == Scheme::Local => base.join(path),
            _ => path.to_owned(),
        }
    }

    /// Lets it end, once its work is done.
    pub fn part(self) {
        if let Some(connected) = self.keep {
            connected.end();
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("limit", &self.limit).finish_non_exhaustive()
    }
}
