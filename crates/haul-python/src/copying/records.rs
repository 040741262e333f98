//! Files beside a copy: the manifest and the log.

use std::path::PathBuf;

use haul_copy::{CopyLog, Manifest, Sum};
use haul_files::Event;
use haul_peer::chain;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::outcome::Outcome;
use crate::errors::{Failure, OrRaise};
use crate::settings::given;

/// What is kept of a copy.
#[derive(Default)]
pub struct Records {
    manifest: Option<(Manifest, Sum)>,
    log: Option<CopyLog>,
}

impl Records {
    /// As the arguments have it; what cannot be written to is known before anything is copied.
    pub fn open(kwargs: &Bound<'_, PyDict>, operands: &[String]) -> PyResult<Self> {
        let py = kwargs.py();
        let sum: Option<String> = given(kwargs, "manifest_hash")?;
        let sum = match sum.as_deref() {
            None | Some("blake3") => Sum::Blake3,
            Some("sha256") => Sum::Sha256,
            Some(other) => {
                return Err(Failure::usage(format_args!("{other}: blake3 and sha256 are possible")).into_py_err(py));
            }
        };
        let failed = |error: &dyn std::error::Error| Failure::new("LocalError", chain(error));
        let log = given::<PathBuf>(kwargs, "log_file")?.map(|path| CopyLog::open(&path)).transpose();
        let log = log.map_err(|error| failed(&error)).or_raise(py)?;
        let manifest = given::<PathBuf>(kwargs, "manifest")?.map(|path| Manifest::create(&path)).transpose();
        let manifest = manifest.map_err(|error| failed(&error)).or_raise(py)?.map(|manifest| (manifest, sum));
        if let Some(log) = &log {
            log.say(&format!("start: {}", operands.join(" ")));
        }
        Ok(Self { manifest, log })
    }

    /// Hears of the copy.
    pub fn event(&self, event: &Event<'_>) {
        if let Some((manifest, _)) = &self.manifest {
            manifest.event(event);
        }
        if let Some(log) = &self.log {
            log.event(event);
        }
    }

    /// Whether they want to hear of each file's content.
    pub const fn wants_content(&self) -> bool {
        self.manifest.is_some()
    }

    /// Writes the rest. A copy whose manifest cannot be written has failed in that.
    pub fn close(&self, ended: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        let ended = ended.and_then(|outcome| match &self.manifest {
            Some((manifest, sum)) => match manifest.write(*sum, outcome.problems()) {
                Ok(()) => Ok(outcome),
                Err(error) => Err(Failure::new("LocalError", chain(&error))
                    .hint("all that could be copied is there; the list of checksums is not whole")),
            },
            None => Ok(outcome),
        });
        if let Some(log) = &self.log {
            match &ended {
                Ok(outcome) => log.say(&format!("end: {}", outcome.in_short())),
                Err(failure) => log.say(&format!("end: {failure}")),
            }
        }
        ended
    }
}
