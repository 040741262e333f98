//! A file of what is worth remembering for a day: one entry a line, in JSON, the oldest first.
//!
//! It is a hint and nothing more: whatever cannot be read, or is older than [`LIFETIME`], is as good as absent, and a file that cannot be written is no reason to fail.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::keys::table;

/// Older than that, and it says little about the path of today.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Entries kept; the oldest go first.
pub(crate) const MOST: usize = 256;

/// An entry, as a line has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dated<T> {
    /// Seconds since 1970.
    pub at: u64,
    #[serde(flatten)]
    pub entry: T,
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct Cache<T> {
    pub file: PathBuf,
    /// Seconds since 1970.
    pub now: u64,
    entries: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Cache<T> {
    /// As of now.
    pub fn new(file: PathBuf, now: u64) -> Self {
        Self { file, now, entries: PhantomData }
    }

    /// Entries that are young enough, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = T> + use<T> {
        self.dated().map(|dated| dated.entry)
    }

    /// Keeps an entry in the place of those that it `replaces`.
    pub fn keep(&self, entry: T, replaces: impl Fn(&T) -> bool) {
        let mut entries: Vec<_> = self.dated().filter(|dated| !replaces(&dated.entry)).collect();
        entries.push(Dated { at: self.now, entry });
        let excess = entries.len().saturating_sub(MOST);
        let lines: Vec<_> = entries[excess..].iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
        if let Err(error) = table::write(&self.file, &lines) {
            tracing::debug!(file = %self.file.display(), %error, "what was learned is not kept");
        }
    }

    fn dated(&self) -> impl DoubleEndedIterator<Item = Dated<T>> + use<T> {
        let lines = table::read(&self.file).unwrap_or_default();
        let now = self.now;
        let young = move |dated: &Dated<T>| dated.at <= now && now - dated.at < LIFETIME.as_secs();
        lines.into_iter().filter_map(|line| serde_json::from_str::<Dated<T>>(&line).ok()).filter(young)
    }
}
