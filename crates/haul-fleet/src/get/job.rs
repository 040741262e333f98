//! What is to be fetched.

use std::path::PathBuf;

use haul_files::{Filter, Options};

use haul_plan::Settings;

use crate::limit::JobLimit;

/// When files of one name on several members are one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplicasBy {
    /// Where size and time of modification are equal. The default: it costs nothing.
    #[default]
    Time,
    /// Where their content is: files of one size and different times are read and hashed by the members that have them, before anything is fetched. Equal times are trusted.
    Hash,
}

/// When the first file moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Begin {
    /// As soon as one member has said what it has; what others turn out to have joins in. The default. So two contents under one name may be found when one of them is in place already.
    ///
    /// A job with [`ReplicasBy::Hash`], or [`Policy::RoundRobin`](haul_plan::Policy::RoundRobin), waits for all whatever is said here: which time a file gets, and who is dealt what, is known then. So does one of several sources, or of a pattern,
    /// whose destination is no directory, until it is known that several names are to come.
    #[default]
    AtOnce,
    /// When all have said what they have, or are gone: two contents under one name are then found before anything is written.
    WhenAllAreHeard,
}

/// Files that members have, to come here.
#[derive(Debug, Clone)]
pub struct GetJob {
    /// Paths on the members; at least one. Relative ones start at [`Member::path`](crate::Member::path). Each member is asked for all of them, and need not have all. One that is not there is read as a
    /// pattern of a shell, as [`PullJob::sources`](haul_files::PullJob::sources) are.
    pub sources: Vec<PathBuf>,
    /// Where to, a path here or in a store of this machine (`gfarm:`, `ram:`). As with scp: inside, if it is a directory; else the new name of the one source.
    pub destination: PathBuf,
    /// How. [`Options::changed`] means nothing here: of a file that changed since it was announced nothing more is taken from that member.
    pub options: Options,
    /// What is left out of the sources. A member whose program is too old for that is [`GetError::Unsupported`](crate::GetError::Unsupported).
    pub filter: Filter,
    /// What counts as a replica.
    pub replicas_by: ReplicasBy,
    /// When the first file moves.
    pub begin: Begin,
    /// How the work is dealt out.
    pub settings: Settings,
    /// All members together send no more than this. Default none. A limit for one of them is [`Member::limit`](crate::Member::limit).
    pub limit: JobLimit,
}

impl GetJob {
    /// With the defaults.
    pub fn new(sources: Vec<PathBuf>, destination: impl Into<PathBuf>) -> Self {
        let (options, filter, settings) = (Options::default(), Filter::default(), Settings::default());
        Self {
            sources,
            destination: destination.into(),
            options,
            filter,
            replicas_by: ReplicasBy::default(),
            begin: Begin::default(),
            settings,
            limit: JobLimit::default(),
        }
    }
}
