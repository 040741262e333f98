//! A dry run: what the receiver says instead of doing it.
//!
//! What a copy has removed is said in the same words. It runs as always, over a store that is never written to ([`Unwritten`](crate::store::unwritten::Unwritten)), and wants nothing of any file.

use std::sync::atomic::Ordering;

use super::Receiver;
use super::remembered::Location;
use crate::locks::lock;
use crate::observe::Event;
use crate::protocol::{Change, Entry, Kind, Message, Would};
use crate::store::{FileKind, Metadata, Store};
use crate::transport::Transport;
use haul_faults::CopyError;

/// Words that are told at once.
const BATCH: usize = 512;

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Of a file that is not what is there.
    pub(super) fn would_copy(&self, parent: u64, name: &[u8], size: u64, existing: Option<&Metadata>) -> Result<(), CopyError> {
        self.counts.files.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(size, Ordering::Relaxed);
        let change = if existing.is_some() { Change::Replaced(size) } else { Change::New(size) };
        self.would(parent, name, change)
    }

    /// Of a directory or symbolic link; whether it would be made.
    pub(super) fn would_make(&self, entry: &Entry, name: &[u8]) -> Result<bool, CopyError> {
        let change = match &entry.kind {
            Kind::Directory if self.tree.is_new(entry.id) => Change::Directory,
            Kind::Symlink { target } if self.tree.link_there(entry.parent, name).as_ref() != Some(&target.0) => Change::Link,
            _ => return Ok(false),
        };
        self.would(entry.parent, name, change)?;
        Ok(true)
    }

    /// Of a hard link: it is there where both names are those of one file.
    pub(super) fn would_link(
        &self,
        place: Location<'_>,
        existing: Option<&Metadata>,
        at: Option<Location<'_>>,
    ) -> Result<(), CopyError> {
        let file = at.and_then(|(parent, name)| self.tree.existing(parent, name).ok()?);
        let is_file = |there: &&Metadata| there.kind == FileKind::File;
        match (existing.filter(is_file), file.as_ref().filter(is_file)) {
            (Some(there), Some(file)) if there.identity == file.identity => Ok(()),
            _ => {
                self.counts.hard_links.fetch_add(1, Ordering::Relaxed);
                self.would(place.0, place.1, Change::Link)
            }
        }
    }

    pub(super) fn would(&self, parent: u64, name: &[u8], change: Change) -> Result<(), CopyError> {
        let would = Would { path: self.tree.display(parent, name), change };
        let told = if self.options.dry_run { Event::Would(&would) } else { Event::Removed(&would.path) };
        self.session.observer.event(told);
        if !self.serves {
            return Ok(());
        }
        let mut list = lock(&self.would);
        list.push(would);
        let full = list.len() >= BATCH;
        drop(list);
        if full { self.tell_would() } else { Ok(()) }
    }

    /// Tells the client what has come together.
    pub(super) fn tell_would(&self) -> Result<(), CopyError> {
        let list = std::mem::take(&mut *lock(&self.would));
        if list.is_empty() { Ok(()) } else { self.session.say(&Message::Would(list)) }
    }
}
