//! What is no list of hosts.

use std::io;
use std::path::PathBuf;

use haul_peer::OperandError;
use thiserror::Error;

/// Hosts of one fleet. Each costs the client a connection with its thread and its memory.
pub const MAX_HOSTS: usize = 4096;

/// Why something is no list of hosts.
#[derive(Debug, Error)]
pub enum HostsError {
    /// Nobody is named.
    #[error("no hosts named")]
    None,
    /// More than any fleet can have.
    #[error("more than {MAX_HOSTS} hosts")]
    TooMany,
    /// Longer than any list of hosts.
    #[error("{}: too long for a list of hosts", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Brackets that are no ranges.
    #[error("{item}: {why}")]
    Range {
        /// The item.
        item: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something else than a host.
    #[error(transparent)]
    Item(#[from] OperandError),
    /// A word behind a host in a file that says nothing about it.
    #[error("{word}: write user=, port=, path=, data=, name= or limit= behind a host")]
    Word {
        /// The word.
        word: String,
    },
    /// In one line of a file.
    #[error("{}, line {line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, counted from 1.
        line: usize,
        /// What is wrong there.
        source: Box<HostsError>,
    },
    /// A file that cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
