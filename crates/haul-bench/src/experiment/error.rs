//! What can go wrong around an experiment.

use crate::plot::PlotError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Nobody has this name.
    #[error("no experiment `{name}`: there are {known}{}", nearest.map_or(String::new(), |nearest| format!("; did you mean `{nearest}`?")))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
        /// The most similar name, if one is.
        nearest: Option<&'static str>,
    },
    /// A chart cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A file cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Which.
        path: std::path::PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}
