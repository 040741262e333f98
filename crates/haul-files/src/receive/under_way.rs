//! Which large files have arrived in part, for progress.
//!
//! Files of one piece are never here, so a hundred thousand small ones cost nothing; and a large one costs its number.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use haul_units::Bytes;

use super::Receiver;
use crate::locks::lock;
use crate::observe::{Event, FileUnderWay};
use crate::protocol::{Message, Part, UNDER_WAY};
use crate::store::Store;
use crate::transport::Transport;
use haul_faults::CopyError;
use haul_names::path_of;

/// Most files that are told of at once.
pub(crate) const MAX_TOLD: usize = 4;

/// The files of several pieces whose part file was made; those that are over go when the next report is made.
#[derive(Default)]
pub(super) struct UnderWay(Mutex<BTreeSet<u64>>);

impl UnderWay {
    pub(super) fn add(&self, id: u64) {
        lock(&self.0).insert(id);
    }

    fn first(&self) -> Option<u64> {
        lock(&self.0).first().copied()
    }
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Tells the observer and the sender how much of the files under way has arrived.
    pub(super) fn tell_parts(&self) -> Result<(), CopyError> {
        let (here, there) = (self.session.observer.wants_files(), self.session.peer_has(UNDER_WAY));
        if self.under_way.first().is_none() || !(here || there) {
            return Ok(());
        }
        let mut told = Vec::new();
        let mut over = Vec::new();
        let ids: Vec<u64> = lock(&self.under_way.0).iter().copied().collect();
        for id in ids {
            let file = lock(&self.files).open.get(&id).map(Arc::clone);
            // Announced a moment later than resumed: not over, not told yet.
            let arrived = file.as_ref().and_then(|file| lock(&file.state).arrived());
            match (file, arrived) {
                (Some(file), Some(arrived)) => told.push((file, arrived)),
                (None, _) if id > lock(&self.files).last_id => {}
                _ => over.push(id),
            }
            if told.len() == MAX_TOLD {
                break;
            }
        }
        lock(&self.under_way.0).retain(|id| !over.contains(id));
        if here {
            let files: Vec<FileUnderWay> = told
                .iter()
                .map(|(file, arrived)| FileUnderWay {
                    path: path_of(self.tree.display(file.parent, &file.name).0),
                    size: Bytes(file.size),
                    arrived: Bytes(*arrived),
                })
                .collect();
            self.session.observer.event(Event::UnderWay(&files));
        }
        let parts = told.into_iter().map(|(file, arrived)| Part { id: file.id, arrived }).collect();
        if there { self.session.say(&Message::UnderWay(parts)) } else { Ok(()) }
    }
}
