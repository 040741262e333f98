//! Two members do not agree on a name, and files move already: what has become of that name here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::desk::Desk;
use super::error::Here;
use super::news::News;
use crate::clock;

/// How long the receiver may take to put into place what was whole when it was told to end.
const ENDING: Duration = Duration::from_secs(30);

/// What was done about the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disputed {
    /// Nothing.
    Untouched,
    /// Content was handed on, all of it perhaps.
    Begun,
    /// A directory or a link, which is made as soon as it is heard of.
    Made,
}

impl Disputed {
    /// What has become of it, when the receiver has ended. `renames`: what stands at the top has another name here. `from` is whose content it was.
    pub(super) fn here<B>(self, desk: &mut Desk<'_, B>, path: &Path, renames: bool, from: &str) -> Here {
        let from = from.to_owned();
        match self {
            Self::Untouched => return Here::Untouched,
            Self::Made => return Here::InPlace { from },
            Self::Begun => {}
        }
        let until = clock::now() + ENDING;
        loop {
            let left = until.saturating_duration_since(clock::now());
            match desk.next(left) {
                Ok(Some(News::LocalOver(_))) | Err(_) => break,
                Ok(None) if left.is_zero() => break,
                Ok(_) => {}
            }
        }
        let below: PathBuf = if renames { path.components().skip(1).collect() } else { path.to_owned() };
        if desk.placed.has(&below) { Here::InPlace { from } } else { Here::Begun { from } }
    }
}
