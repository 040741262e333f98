//! Why there is no report.

use std::io;
use std::path::PathBuf;

use haul_plot::PlotError;
use thiserror::Error;

/// Why there is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A file or directory cannot be read or written.
    #[error("{path}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no log.
    #[error("{path}: no log of a job", path = path.display())]
    NoLog {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A log of a version that is not known.
    #[error("{path}: a log of version {version}", path = path.display())]
    Version {
        /// Which.
        path: PathBuf,
        /// What it says.
        version: u64,
    },
    /// A chart cannot be drawn.
    #[error("a chart")]
    Plot(#[from] PlotError),
}
