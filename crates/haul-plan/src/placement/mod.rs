//! Which member gets which file: the pure part of an upload.
//!
//! Whoever drives it says what has happened (`handle_*`, with the time) and asks for each member what it is to do ([`Placement::poll`]). A member asks as long as it is given files: it
//! gets no more than keeps it busy for two of its round trips and two seconds, so that the fast ones get more and a death costs little. A file counts as placed when a member was given it; one that
//! dies gives back all that it was given, whether it had got it or not.
//!
//! With replicas a file goes to as many different members; those that somebody has begun are given to others before new ones. Towards the end a member leaves a file alone that
//! another one would have sooner, behind what that one has to do.
//!
//! Invariant: a file is never given to one member twice, nor to more members than it is to have, nor to one that has no room for it.

mod holder;
mod settings;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::load::Load;

use holder::Holder;

pub use settings::{MAX_REPLICAS, PlacementPolicy, PlacementSettings};

/// No file.
const NO_FILE: u32 = u32::MAX;
/// No member.
const NOBODY: u16 = u16::MAX;

/// What a member is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Take this file.
    Take(u32),
    /// Nothing now; to be asked again when something has happened, or a tenth of a second later.
    Wait,
}

/// Decides which member gets which file.
#[derive(Debug)]
pub struct Placement {
    settings: PlacementSettings,
    members: Vec<Holder>,
    sizes: Vec<u64>,
    /// For each file as many places as it is to have replicas.
    places: Vec<u16>,
    /// With round robin, for each file as many members at most whose turn with it is to come.
    turns: Vec<u16>,
    /// Files that may be placed and that nobody has, the largest last.
    fresh: BTreeSet<(u64, u32)>,
    /// Files that lack replicas and are not fresh, in the order in which they were begun or came back.
    begun: Vec<u32>,
    /// Files that nobody can have now; until somebody comes up, or has room.
    stuck: Vec<u32>,
    /// Bytes of all replicas that nobody was given, and how many they are.
    missing: (u128, u64),
    /// Members that cannot have a file.
    unfit: HashSet<(u32, u16)>,
    /// Files that cannot be read.
    lost: HashSet<u32>,
    /// Files that nobody has said yet whether he has them.
    unreleased: u64,
    is_complete: bool,
    /// Whom the next file is dealt to.
    turn: usize,
    finished: VecDeque<(usize, u32)>,
    /// Places that were looked at to see whose turn with a file is to come.
    #[cfg(test)]
    looked_at: std::cell::Cell<usize>,
}

impl Placement {
    /// For so many members, none of which is up.
    pub fn new(settings: PlacementSettings, members: usize) -> Self {
        let replicas = settings.replicas.clamp(1, MAX_REPLICAS);
        Self {
            settings: PlacementSettings { replicas, ..settings },
            members: (0..members.min(usize::from(NOBODY))).map(|_| Holder::new()).collect(),
            sizes: Vec::new(),
            places: Vec::new(),
            turns: Vec::new(),
            fresh: BTreeSet::new(),
            begun: Vec::new(),
            stuck: Vec::new(),
            missing: (0, 0),
            unfit: HashSet::new(),
            lost: HashSet::new(),
            unreleased: 0,
            is_complete: false,
            turn: 0,
            finished: VecDeque::new(),
            #[cfg(test)]
            looked_at: std::cell::Cell::default(),
        }
    }

    /// A file was found; its number. It is not placed before it is [released](Self::release).
    pub fn add_file(&mut self, size: Bytes) -> u32 {
        let file = self.sizes.len() as u32;
        self.sizes.push(size.as_u64());
        self.places.extend(std::iter::repeat_n(NOBODY, self.settings.replicas));
        if self.settings.policy == PlacementPolicy::RoundRobin {
            self.turns.extend(std::iter::repeat_n(NOBODY, self.settings.replicas));
        }
        self.unreleased += 1;
        self.missing.0 += u128::from(size.as_u64()) * self.settings.replicas as u128;
        self.missing.1 += self.settings.replicas as u64;
        file
    }

    /// No more files will be found.
    pub fn complete(&mut self) {
        self.is_complete = true;
    }

    /// It is known who has it already: it may be placed.
    pub fn release(&mut self, file: u32) {
        self.unreleased = self.unreleased.saturating_sub(1);
        self.bring_back(file);
    }

    /// A member can be worked with.
    pub fn handle_up(&mut self, member: usize, rtt: Duration, now: Time) {
        if let Some(holder) = self.members.get_mut(member) {
            holder.up(rtt, now);
        }
        self.unstick();
    }

    /// So busy is a member's machine with other things: what counts until it has been measured.
    pub fn handle_load(&mut self, member: usize, load: Load) {
        if let Some(holder) = self.members.get_mut(member) {
            holder.share = load.share();
        }
    }

    /// So much room a member has at this moment.
    pub fn handle_room(&mut self, member: usize, free: Bytes) {
        if let Some(holder) = self.members.get_mut(member) {
            holder.set_room(free);
        }
        self.unstick();
    }

    /// A member has this file already, or a part of it: there it is to be.
    pub fn handle_has(&mut self, member: usize, file: u32) {
        let size = self.size(file);
        let Some(holder) = self.members.get_mut(member).filter(|holder| holder.is_up) else { return };
        holder.has(file, size);
        self.put_down(member, file);
    }

    /// A member says how many bytes and files of all that it was given it has.
    pub fn handle_progress(&mut self, member: usize, bytes: Bytes, files: u64, now: Time) {
        if let Some(holder) = self.members.get_mut(member) {
            holder.progress(bytes.as_u64(), files, now);
        }
        self.retire(member, now);
    }

    /// A member cannot have this file, whether it was given it or not.
    pub fn handle_unfit(&mut self, member: usize, file: u32) {
        self.unfit.insert((file, member as u16));
        if self.take_back(member, file) {
            self.bring_back(file);
        }
    }

    /// Whether that was said of a member and a file.
    pub fn is_unfit(&self, member: usize, file: u32) -> bool {
        self.unfit.contains(&(file, member as u16))
    }

    /// A member had no room for this file, which it was given: nor has it for others as large.
    pub fn handle_full(&mut self, member: usize, file: u32) {
        let size = self.size(file);
        if let Some(holder) = self.members.get_mut(member) {
            holder.is_full_for(size);
        }
        self.handle_unfit(member, file);
    }

    /// A file could not be read when it was this member's turn: nobody is given it any more. Others that were given it have got it, or the same will be said for each of them.
    pub fn handle_lost(&mut self, member: usize, file: u32) {
        if self.lost.insert(file) {
            let lacks = self.lacking_places(file);
            self.missing.0 -= u128::from(self.size(file)) * lacks as u128;
            self.missing.1 -= lacks as u64;
            self.fresh.remove(&(self.size(file), file));
        }
        self.take_back(member, file);
    }

    /// A member is gone, and what it has with it.
    pub fn handle_down(&mut self, member: usize) {
        let Some(holder) = self.members.get_mut(member).filter(|holder| holder.is_up) else { return };
        let dealt: Vec<u32> = holder.dealt.iter().copied().collect();
        holder.down();
        for &file in &dealt {
            self.turn_is_over(member, file);
        }
        let held: Vec<u32> = (0..self.sizes.len() as u32).filter(|&file| self.pick_up(member, file)).collect();
        for file in held.into_iter().chain(dealt) {
            self.bring_back(file);
        }
    }

    /// What a member is to do.
    pub fn poll(&mut self, member: usize, now: Time) -> Task {
        self.retire(member, now);
        let ready = self.members.get(member).is_some_and(|holder| holder.is_up && holder.has_time(self.settings.pause, now));
        if now < self.settings.start_at || !ready {
            return Task::Wait;
        }
        let file = match self.settings.policy {
            PlacementPolicy::RoundRobin => self.next_dealt(member),
            _ => self.next_pulled(member, now),
        };
        let Some(file) = file else { return Task::Wait };
        self.fresh.remove(&(self.size(file), file));
        let size = self.size(file);
        if let Some(holder) = self.members.get_mut(member) {
            holder.give(file, size, now);
        }
        let first = self.holders(file).next().is_none();
        self.put_down(member, file);
        if first && self.lacks(file) > 0 && self.settings.policy != PlacementPolicy::RoundRobin {
            self.begun.push(file);
        }
        Task::Take(file)
    }

    /// A file that a member has finished. Members say how many they have and not which, so this is the one that was given to it first.
    pub fn poll_finished(&mut self) -> Option<(usize, u32)> {
        self.finished.pop_front()
    }

    /// How many files a member has finished.
    pub fn finished_files(&self, member: usize) -> u64 {
        self.members.get(member).map_or(0, Holder::finished_files)
    }

    /// Whether nothing is under way any more and nothing more can be placed.
    pub fn is_settled(&self) -> bool {
        let idle = self.members.iter().filter(|holder| holder.is_up).all(|holder| holder.is_idle() && holder.dealt.is_empty());
        let over = self.is_complete && self.unreleased == 0 && idle;
        // Only where all are idle: the rest is then few files, or many that fit nowhere.
        over && (self.missing.1 == 0 || !self.unplaced().any(|file| self.could_go(file)))
    }

    /// Files with fewer replicas than they are to have, those that cannot be read left out, and on how many members they are.
    pub fn short(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let files = 0..self.sizes.len() as u32;
        files.filter(|&file| self.lacks(file) > 0).map(|file| (file, self.holders(file).count()))
    }

    /// The members that have a file, or were given it.
    pub fn holders(&self, file: u32) -> impl Iterator<Item = usize> + '_ {
        self.slots(file).iter().filter(|&&member| member != NOBODY).map(|&member| usize::from(member))
    }

    /// How many replicas a file lacks that could be made; none of one that cannot be read.
    pub fn lacks(&self, file: u32) -> usize {
        if self.lost.contains(&file) { 0 } else { self.lacking_places(file) }
    }

    /// Bytes that a member was given and has not got, and how fast it is.
    pub fn load(&self, member: usize, now: Time) -> (Bytes, BitRate) {
        self.members.get(member).map_or((Bytes(0), BitRate::ZERO), |holder| (Bytes(holder.outstanding()), holder.bit_rate(now)))
    }

    fn lacking_places(&self, file: u32) -> usize {
        self.slots(file).iter().filter(|&&member| member == NOBODY).count()
    }

    fn size(&self, file: u32) -> u64 {
        self.sizes.get(file as usize).copied().unwrap_or_default()
    }

    fn slots(&self, file: u32) -> &[u16] {
        let start = file as usize * self.settings.replicas;
        self.places.get(start..start + self.settings.replicas).unwrap_or_default()
    }

    fn slots_mut(&mut self, file: u32) -> &mut [u16] {
        let start = file as usize * self.settings.replicas;
        self.places.get_mut(start..start + self.settings.replicas).unwrap_or_default()
    }

    fn turns(&self, file: u32) -> &[u16] {
        let start = file as usize * self.settings.replicas;
        let turns = self.turns.get(start..start + self.settings.replicas).unwrap_or_default();
        #[cfg(test)]
        self.looked_at.set(self.looked_at.get() + turns.len());
        turns
    }

    fn turns_mut(&mut self, file: u32) -> &mut [u16] {
        let start = file as usize * self.settings.replicas;
        self.turns.get_mut(start..start + self.settings.replicas).unwrap_or_default()
    }

    /// A file is in a member's queue no more.
    fn turn_is_over(&mut self, member: usize, file: u32) {
        if let Some(turn) = self.turns_mut(file).iter_mut().find(|turn| usize::from(**turn) == member) {
            *turn = NOBODY;
        }
    }

    fn put_down(&mut self, member: usize, file: u32) {
        let size = self.size(file);
        if let Some(slot) = self.slots_mut(file).iter_mut().find(|slot| **slot == NOBODY) {
            *slot = member as u16;
            if !self.lost.contains(&file) {
                self.missing.0 -= u128::from(size);
                self.missing.1 -= 1;
            }
        }
    }

    fn pick_up(&mut self, member: usize, file: u32) -> bool {
        let size = self.size(file);
        let Some(slot) = self.slots_mut(file).iter_mut().find(|slot| usize::from(**slot) == member) else { return false };
        *slot = NOBODY;
        if !self.lost.contains(&file) {
            self.missing.0 += u128::from(size);
            self.missing.1 += 1;
        }
        true
    }

    /// A member will not have a file; whether it was given it.
    fn take_back(&mut self, member: usize, file: u32) -> bool {
        let (size, was_given) = (self.size(file), self.pick_up(member, file));
        if let Some(holder) = self.members.get_mut(member).filter(|_| was_given) {
            holder.take_back(file, size);
        }
        was_given
    }

    /// A file lacks a replica again.
    fn bring_back(&mut self, file: u32) {
        if self.lacks(file) == 0 {
            return;
        }
        match self.settings.policy {
            PlacementPolicy::RoundRobin => self.deal(file),
            _ if self.holders(file).next().is_none() => drop(self.fresh.insert((self.size(file), file))),
            _ => self.begun.push(file),
        }
    }

    /// Looks once more at what nobody could have.
    fn unstick(&mut self) {
        for file in std::mem::take(&mut self.stuck) {
            self.bring_back(file);
        }
    }

    fn retire(&mut self, member: usize, now: Time) {
        let Some(holder) = self.members.get_mut(member) else { return };
        while let Some(file) = holder.finished(self.settings.pause, now) {
            self.finished.push_back((member, file));
        }
    }

    /// Whether a member may have a file.
    fn fits(&self, member: usize, file: u32) -> bool {
        let holder = self.members.get(member).filter(|holder| holder.is_up);
        holder.is_some_and(|holder| holder.has_room(self.size(file)))
            && !self.slots(file).contains(&(member as u16))
            && !self.is_unfit(member, file)
    }

    fn could_go(&self, file: u32) -> bool {
        (0..self.members.len()).any(|member| self.fits(member, file))
    }

    fn unplaced(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.sizes.len() as u32).filter(|&file| self.lacks(file) > 0)
    }

    /// Gives a file's missing replicas to those whose turn it is.
    fn deal(&mut self, file: u32) {
        let dealt = self.turns(file).iter().filter(|&&member| member != NOBODY).count();
        let mut lacks = self.lacks(file).saturating_sub(dealt);
        for _ in 0..self.members.len() {
            if lacks == 0 {
                return;
            }
            let member = self.turn % self.members.len();
            self.turn = member + 1;
            // Not looked for in the members' queues, which may be as long as the list of files.
            if self.fits(member, file) && !self.turns(file).contains(&(member as u16)) {
                if let Some(turn) = self.turns_mut(file).iter_mut().find(|turn| **turn == NOBODY) {
                    *turn = member as u16;
                }
                if let Some(holder) = self.members.get_mut(member) {
                    holder.dealt.push_back(file);
                }
                lacks -= 1;
            }
        }
        if lacks > 0 {
            self.stuck.push(file);
        }
    }

    fn next_dealt(&mut self, member: usize) -> Option<u32> {
        loop {
            let file = self.members.get_mut(member)?.dealt.pop_front()?;
            self.turn_is_over(member, file);
            if self.lacks(file) == 0 {
                continue;
            }
            if self.fits(member, file) {
                return Some(file);
            }
            // It has filled up since.
            self.deal(file);
        }
    }

    fn next_pulled(&mut self, member: usize, now: Time) -> Option<u32> {
        self.next_begun(member, now).or_else(|| self.next_fresh(member, now))
    }

    /// The first of the files that others have begun which this member is to have.
    fn next_begun(&mut self, member: usize, now: Time) -> Option<u32> {
        let mut at = self.members.get(member)?.looked;
        let mut is_first = true;
        let found = loop {
            let Some(&file) = self.begun.get(at) else { break None };
            let over = self.lacks(file) == 0 || self.slots(file).contains(&(member as u16));
            if over {
                at += 1;
                continue;
            }
            if is_first && let Some(holder) = self.members.get_mut(member) {
                // What was looked at and is over is not looked at again.
                (holder.looked, is_first) = (at, false);
            }
            if self.fits(member, file) && self.suits(member, file, now) {
                break Some(file);
            }
            if !self.could_go(file) {
                self.stuck.push(file);
                if let Some(place) = self.begun.get_mut(at) {
                    *place = NO_FILE;
                }
                at += 1;
                continue;
            }
            at += 1;
            if at > self.members.get(member).map_or(0, |holder| holder.looked) + LOOKED_AT {
                break None;
            }
        };
        if is_first && let Some(holder) = self.members.get_mut(member) {
            holder.looked = at;
        }
        found
    }

    /// The largest file that nobody has and this member is to have.
    fn next_fresh(&mut self, member: usize, now: Time) -> Option<u32> {
        let mut most = u64::MAX;
        loop {
            let &(size, file) = self.fresh.range(..=(most, u32::MAX)).next_back()?;
            if self.fits(member, file) && self.suits(member, file, now) {
                return Some(file);
            }
            if self.could_go(file) {
                // The largest of all is for somebody: he takes it when he asks. Half as much may do here.
                most = size.checked_sub(1)?.min(size / 2);
            } else {
                self.fresh.remove(&(size, file));
                self.stuck.push(file);
            }
        }
    }

    /// Whether the policy wants this file there.
    fn suits(&self, member: usize, file: u32, now: Time) -> bool {
        if self.settings.policy == PlacementPolicy::Space {
            // Where nobody knows, what each was given says most.
            let rank = |member: usize| {
                self.members.get(member).map(|holder| (holder.room(), Reverse(holder.given_bytes()), Reverse(member)))
            };
            let better = |&other: &usize| other != member && rank(other) > rank(member) && self.fits(other, file);
            return (0..self.members.len()).filter(better).count() < self.lacks(file);
        }
        let size = self.size(file) as f64;
        let mean = self.mean_rate(now);
        let rate = |holder: &Holder| holder.rate(now).unwrap_or(mean * holder.share).max(1.0);
        let seconds = |holder: &Holder| (holder.outstanding() as f64 + size) / rate(holder);
        let Some(own) = self.members.get(member).map(seconds) else { return false };
        let up = || self.members.iter().filter(|holder| holder.is_up);
        // When all would be done, if work could be divided at will.
        let work: f64 = up().map(|holder| holder.outstanding() as f64).sum::<f64>() + self.missing.0 as f64;
        let all = work / up().map(rate).sum::<f64>().max(1.0);
        if own <= all {
            return true;
        }
        let others = (0..self.members.len()).filter(|&other| other != member && self.fits(other, file));
        let sooner = others.filter_map(|other| self.members.get(other)).filter(|other| seconds(other) < own);
        sooner.count() < self.lacks(file)
    }

    /// What a member is taken for that has not been measured and is not known to be busy.
    fn mean_rate(&self, now: Time) -> f64 {
        let rates: Vec<f64> = self.members.iter().filter(|holder| holder.is_up).filter_map(|holder| holder.rate(now)).collect();
        if rates.is_empty() { UNKNOWN_BYTES_PER_S } else { rates.iter().sum::<f64>() / rates.len() as f64 }
    }
}

/// Files that others have begun and that are not for a member now: so many are looked at before new ones are. More of them than this lack room or time there, and the next ones will too.
const LOOKED_AT: usize = 64;
/// A member that nobody has measured, where nobody has been: 1 Gbit/s, the lower end of what haul is made for.
const UNKNOWN_BYTES_PER_S: f64 = 125e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_thousand_files_are_dealt_in_steps_that_grow_with_their_number() {
        const FILES: usize = 100_000;
        const MEMBERS: usize = 5;
        const REPLICAS: usize = 2;
        let settings =
            PlacementSettings { policy: PlacementPolicy::RoundRobin, replicas: REPLICAS, ..PlacementSettings::default() };
        let mut placement = Placement::new(settings, MEMBERS);
        for member in 0..MEMBERS {
            placement.handle_up(member, Duration::ZERO, Time::ZERO);
        }
        for _ in 0..FILES {
            let file = placement.add_file(Bytes(0));
            placement.release(file);
        }
        placement.complete();
        let dealt = |placement: &Placement| placement.members.iter().map(|holder| holder.dealt.len()).collect::<Vec<_>>();
        assert_eq!(dealt(&placement), [FILES * REPLICAS / MEMBERS; MEMBERS]);
        // What was dealt to one goes to others, none of which has it in its queue already.
        placement.handle_down(0);
        assert_eq!(dealt(&placement)[0], 0);
        assert_eq!(dealt(&placement).iter().sum::<usize>(), FILES * REPLICAS);
        let mut placed = HashSet::new();
        for member in 1..MEMBERS {
            while let Task::Take(file) = placement.poll(member, Time::ZERO) {
                assert!(placed.insert((member, file)), "{member} has {file} twice");
                let files = placement.finished_files(member) + 1;
                placement.handle_progress(member, Bytes(0), files, Time::ZERO);
            }
        }
        assert!(placed.len() == FILES * REPLICAS && placement.is_settled());
        assert_eq!(placement.short().count(), 0);
        // Each is dealt once, and those of one member once more; for each deal all turns are looked at for each member, at the most.
        assert!(placement.looked_at.get() <= 2 * FILES * REPLICAS * (MEMBERS + 1), "{}", placement.looked_at.get());
    }
}
