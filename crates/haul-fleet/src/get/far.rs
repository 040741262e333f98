//! Files that members can give and do not have at hand: they would fetch them from other machines.
//!
//! Who has a file at hand gives it. Where nobody has, those who can fetch it do: once all have said what they have who will come, or when those are gone who had it.

use haul_files::protocol::Needs;
use haul_plan::{FileId, ServerId};

use super::error::GetError;
use super::supply::Supply;
use super::transfer::Transfer;

impl<B: AsRef<[u8]>> Transfer<'_, '_, B> {
    /// A file is needed that nobody has at hand who was heard so far.
    pub(super) fn wait_for_holder(&mut self, node: u32, needs: Needs) {
        self.waiting.files.push((node, needs));
    }

    /// Somebody has said all, or is gone.
    pub(super) fn look_further(&mut self) {
        self.waiting.is_due = true;
    }

    /// Asks those who would fetch them for the files that nobody who is there has at hand.
    pub(super) fn reach_further(&mut self) -> Result<(), GetError> {
        // Who is still to come may have it at hand.
        if !self.desk.is_all_heard() {
            return Ok(());
        }
        for (node, needs) in std::mem::take(&mut self.waiting.files) {
            if self.listing.tree.holders(node).is_empty() {
                let far = self.listing.tree.take_far(node);
                self.listing.tree.settle(node, &far);
            }
            self.want(node, needs)?;
        }
        if !std::mem::take(&mut self.waiting.is_due) {
            return Ok(());
        }
        for node in self.listing.tree.far() {
            if let Some(file) = self.file(node).filter(|file| !self.is_at_hand(*file)) {
                self.reach(file);
            }
        }
        Ok(())
    }

    /// Makes those its holders who would fetch it, if there are any.
    pub(super) fn reach(&mut self, file: FileId) -> bool {
        let far = self.nodes.get(file.index()).map_or_else(Vec::new, |node| self.listing.tree.take_far(*node));
        for member in &far {
            self.plan.handle_holder(file, ServerId::new(*member));
        }
        !far.is_empty()
    }

    /// Somebody who is there has it at hand, or it has come.
    fn is_at_hand(&self, file: FileId) -> bool {
        self.plan.is_complete(file) || self.is_anybody_up(self.plan.catalogue().holders(file))
    }

    /// Somebody of these is there.
    pub(super) fn is_anybody_up(&self, holders: &[ServerId]) -> bool {
        holders.iter().any(|holder| self.desk.supplies.get(holder.index()).is_some_and(Supply::is_up))
    }
}
