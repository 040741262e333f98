//! What members have, and what of it is needed here, becomes the plan's, as it is said.
//!
//! ```text
//!   a member's entries --> tree --> receiver --wants--> plan
//!   a replica of what the plan has ------------------> plan
//! ```

use std::ops::Range;

use haul_files::CopyError;
use haul_files::protocol::{Needs, Want};
use haul_plan::{CatalogueError, FileId, ServerId};
use haul_units::Bytes;

use super::disputed::Disputed;
use super::error::GetError;
use super::listing::{self, Heard};
use super::merge::{self, NONE};
use super::news::Said;
use super::transfer::Transfer;
use crate::observe::JobEvent;

impl<B: AsRef<[u8]>> Transfer<'_, '_, B> {
    /// A member says something that has not said all that it has.
    pub(super) fn hear(&mut self, at: usize, said: Said<B>) -> Result<(), GetError> {
        match self.listing.hear(self.desk, at, said)? {
            Heard::Nothing => {}
            Heard::Entries(replicas) => {
                self.tell_found()?;
                for node in replicas {
                    if let Some(file) = self.file(node) {
                        self.plan.handle_holder(file, ServerId::new(at as u16));
                    }
                }
            }
            Heard::All => {
                self.up(at);
                self.look_further();
                self.tell_how_much(false);
            }
            Heard::Gone => {
                self.plan.handle_down(ServerId::new(at as u16), self.now());
                self.look_further();
            }
        }
        Ok(())
    }

    /// Tells the receiver what it has not been told of.
    pub(super) fn tell_found(&mut self) -> Result<(), GetError> {
        let known = self.files.len() as u32;
        let found = known..self.listing.tree.len();
        if found.is_empty() {
            return Ok(());
        }
        self.receiver.announce(&self.listing.tree, known);
        self.files.resize(found.end as usize, NONE);
        for node in found {
            let Some(size) = self.listing.tree.size(node) else { continue };
            self.wants.told += 1;
            self.desk.found = (self.desk.found.0 + 1, self.desk.found.1.saturating_add(size));
            if self.wants.says == Some(false) {
                self.want(node, Needs::All)?;
            }
        }
        Ok(())
    }

    /// The receiver's first word: whether it says what it needs.
    pub(super) fn is_asked(&mut self, says: bool) -> Result<(), GetError> {
        self.wants.says = Some(says);
        if !says {
            (0..self.files.len() as u32).try_for_each(|node| self.want(node, Needs::All))?;
        }
        Ok(())
    }

    /// What the receiver needs of files.
    pub(super) fn wanted(&mut self, wants: Vec<Want>) -> Result<(), GetError> {
        for want in wants {
            self.wants.said += 1;
            if let Some(node) = merge::node(want.id) {
                self.want(node, want.needs)?;
            }
        }
        Ok(())
    }

    /// A node is to be fetched, if it is a file with content.
    pub(super) fn want(&mut self, node: u32, needs: Needs) -> Result<(), GetError> {
        let Some(size) = self.listing.tree.size(node).filter(|size| *size > 0).map(Bytes) else { return Ok(()) };
        let holders: Vec<ServerId> = self.listing.tree.holders(node).iter().map(|member| ServerId::new(*member)).collect();
        let found = match needs {
            Needs::Nothing => return Ok(()),
            needs if holders.is_empty() => {
                self.wait_for_holder(node, needs);
                return Ok(());
            }
            Needs::All => self.plan.handle_found(size, &holders),
            Needs::Ranges(ranges) => {
                let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(start, end)| start..end).collect();
                self.plan.handle_found_part(size, &ranges, &holders)
            }
        };
        match found {
            Ok(file) => {
                if !self.is_anybody_up(&holders) {
                    self.look_further();
                }
                self.nodes.push(node);
                if let Some(known) = self.files.get_mut(node as usize) {
                    *known = file.index() as u32;
                }
                Ok(())
            }
            Err(CatalogueError::Full) => Err(GetError::TooManyFiles),
            // What is not a file cannot be wanted.
            Err(_) => Err(GetError::Destination(CopyError::PeerMisbehaved("wants of no file"))),
        }
    }

    /// The plan's file of a node, if something of it is needed.
    pub(super) fn file(&self, node: u32) -> Option<FileId> {
        self.files.get(node as usize).filter(|file| **file != NONE).map(|file| FileId::new(*file))
    }

    /// Once everybody is heard: what is missing everywhere, and what nobody can give.
    pub(super) fn find_all(&mut self) -> Result<(), GetError> {
        if self.is_all_found || !self.desk.is_all_heard() {
            return Ok(());
        }
        if !self.desk.supplies.iter().any(|supply| supply.is_listed) {
            return Err(GetError::AllDown { members: self.desk.gone() });
        }
        self.is_all_found = true;
        self.desk.placed.end();
        let problems = listing::problems(self.desk);
        self.receiver.found_all(problems);
        self.tell_how_much(true);
        for file in std::mem::take(&mut self.lost_for_now) {
            if self.plan.catalogue().holders(file).is_empty() && !self.plan.is_complete(file) {
                self.lost(file);
            }
        }
        Ok(())
    }

    fn tell_how_much(&self, complete: bool) {
        let (files, bytes) = self.desk.found;
        self.desk.observer.event(&JobEvent::Found { files, bytes: Bytes(bytes), complete });
    }

    /// What was done about the name on which two members do not agree, if there is one.
    pub(super) fn disputed(&self) -> Option<Disputed> {
        let node = self.listing.disputed?;
        let is_told = (node as usize) < self.files.len();
        let is_begun = |file| self.plan.is_complete(file) || self.tallies.contains_key(&file);
        Some(match self.listing.tree.size(node) {
            None if is_told => Disputed::Made,
            // The receiver makes an empty one at once.
            Some(0) if is_told => Disputed::Begun,
            Some(_) if self.file(node).is_some_and(is_begun) => Disputed::Begun,
            _ => Disputed::Untouched,
        })
    }
}
