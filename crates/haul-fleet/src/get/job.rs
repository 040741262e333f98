//! What is to be fetched.

use std::path::PathBuf;

use haul_files::{Filter, Options};
use haul_units::BitRate;

use crate::plan::Settings;

/// Files that members have, to come here.
#[derive(Debug, Clone)]
pub struct GetJob {
    /// Paths on the members; at least one. Relative ones start at [`Member::path`](crate::Member::path). Each member is asked for all of them, and need not have all. One that is not there is read as a
    /// pattern of a shell, as [`PullJob::sources`](haul_files::PullJob::sources) are.
    pub sources: Vec<PathBuf>,
    /// Where to, a path here. As with scp: inside, if it is a directory; else the new name of the one source.
    pub destination: PathBuf,
    /// How. [`Options::changed`] means nothing here: of a file that changed since it was announced nothing more is taken from that member.
    pub options: Options,
    /// What is left out of the sources. A member whose program is too old for that is [`GetError::Unsupported`](crate::GetError::Unsupported).
    pub filter: Filter,
    /// How the work is dealt out.
    pub settings: Settings,
    /// All members together send no more than this. Default none. A limit for one of them is [`Member::limit`](crate::Member::limit).
    pub limit: Option<BitRate>,
}

impl GetJob {
    /// With the defaults.
    pub fn new(sources: Vec<PathBuf>, destination: impl Into<PathBuf>) -> Self {
        let (options, filter, settings) = (Options::default(), Filter::default(), Settings::default());
        Self { sources, destination: destination.into(), options, filter, settings, limit: None }
    }
}
