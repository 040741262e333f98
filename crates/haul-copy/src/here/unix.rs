//! Directories, memory and Gfarm.

use haul_files::{CopyError, StoreError};
use haul_gfarm::{Gfarm, OpenError, StorageServer, storage_servers};
use haul_peer::chain;
use haul_units::{Bytes, Cancel, PeerText};
use rustix::fs::AtFlags;

use super::unavailable;
use crate::storage::{MAX_STORAGE, StorageReport};

pub(crate) use haul_files::{Local, pull};

type Dir = <Local as haul_files::Store>::Dir;

pub(crate) fn gfarm(cancel: &Cancel) -> Result<Gfarm, CopyError> {
    Gfarm::open(cancel).map_err(|error| match error {
        OpenError::Cancelled => CopyError::Cancelled,
        error => unavailable(&chain(&error)),
    })
}

/// Nothing where Gfarm's programs are not there: the room as a whole is told without them.
pub(crate) fn storage(cancel: &Cancel) -> Vec<StorageReport> {
    match storage_servers(cancel) {
        Ok(servers) => servers.into_iter().take(MAX_STORAGE).map(StorageReport::from).collect(),
        Err(error) => {
            tracing::info!(%error, "the storage servers of Gfarm are not known");
            Vec::new()
        }
    }
}

impl From<StorageServer> for StorageReport {
    fn from(server: StorageServer) -> Self {
        let free_bytes = server.free.map(Bytes::as_u64);
        Self {
            host: PeerText::from(&*server.host),
            architecture: PeerText::from(&*server.architecture),
            processors: server.processors,
            load1: server.load1,
            free_bytes,
            total_bytes: free_bytes.zip(server.used).map(|(free, used)| free.saturating_add(used.as_u64())),
        }
    }
}

/// Makes a directory that is not there.
pub(crate) fn make(dir: &Dir, name: &[u8]) -> Result<(), StoreError> {
    Ok(rustix::fs::mkdirat(dir, name, 0o777.into())?)
}

/// Removes a name.
pub(crate) fn remove(dir: &Dir, name: &[u8], is_directory: bool) -> Result<(), StoreError> {
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(rustix::fs::unlinkat(dir, name, flags)?)
}

/// Gives something another name.
pub(crate) fn rename(from: (&Dir, &[u8]), to: (&Dir, &[u8])) -> Result<(), StoreError> {
    Ok(rustix::fs::renameat(from.0, from.1, to.0, to.1)?)
}
