//! The paper's policy: whole files, dealt to their holders before anything is sent.

use haul_units::Time;

use super::Plan;
use super::order::Why;
use super::settings::Policy;
use crate::catalogue::{FileId, ServerId};

impl Plan {
    pub(super) fn feed_dealt(&mut self, at: usize, now: Time) -> bool {
        if !std::mem::replace(&mut self.is_dealt, true) {
            let files: Vec<FileId> = self.catalogue.files().collect();
            for file in files {
                self.deal(file);
            }
        }
        while let Some(file) = self.servers[at].dealt.pop_front() {
            // It has turned out not to have it, with some of it told: its other holders have been dealt it since.
            if !self.catalogue.holders(file).contains(&ServerId(at as u16)) {
                continue;
            }
            if let Some(range) = self.work.take_whole(&self.catalogue, file) {
                // What a dead one had begun may be several ranges.
                let more = self.work.begun(file).is_some();
                self.send(ServerId(at as u16), file, range, Why::Next, now);
                if more {
                    self.servers[at].dealt.push_front(file);
                }
                return true;
            }
        }
        false
    }

    /// Gives a file to the next of its holders that is up.
    pub(super) fn deal(&mut self, file: FileId) {
        let holders = self.catalogue.holders(file);
        let up: Vec<usize> = holders.iter().map(|holder| holder.index()).filter(|at| self.servers[*at].is_up).collect();
        // Nobody is: it waits for the first.
        let at = if up.is_empty() { holders.first().map(|holder| holder.index()) } else { Some(up[file.index() % up.len()]) };
        if let Some(at) = at {
            self.servers[at].dealt.push_back(file);
        }
    }

    pub(super) fn redeal(&mut self, server: ServerId) {
        if self.settings.policy == Policy::RoundRobin && self.is_dealt {
            let begun: Vec<FileId> = self
                .catalogue
                .files()
                .filter(|file| self.work.begun(*file).is_some_and(|begun| begun.pieces.is_empty()))
                .collect();
            let dealt = std::mem::take(&mut self.servers[server.index()].dealt);
            dealt.into_iter().chain(begun).for_each(|file| self.deal(file));
        }
    }
    /// Somebody has come up: what waits for those that are not may be its.
    pub(super) fn deal_what_waits(&mut self) {
        if !self.is_dealt {
            return;
        }
        let down = self.servers.iter_mut().filter(|server| !server.is_up);
        let waiting: Vec<FileId> = down.flat_map(|server| std::mem::take(&mut server.dealt)).collect();
        for file in waiting {
            self.deal(file);
        }
    }
}
