//! What is known in an upload: what was found, who was given what, and what each member is to be sent next.
//!
//! A member is told of all directories and symbolic links first, then of its files. Members that answer are offered each file, and it is placed when all of them have said what they have of it: where it is
//! already it counts, where a part of it is it goes on.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use haul_files::store::Metadata;
use haul_files::{Fed, FileProblem, Note, Thing, Why};
use haul_plan::{Placement, PlacementSettings, Task};
use haul_units::{Bytes, Time};
use rustix::io::Errno;

/// Files that a member was offered and that are not decided: each takes a little memory there, and ten thousand round trips a second need no more.
const MAX_OFFERED: usize = 1024;

/// What was found, in the order in which it was.
pub(super) struct Item {
    /// The number of the directory that it is in, that is its place in the list and one; 0: none.
    pub parent: u32,
    /// Which of the sources it is, if it is one.
    pub source: Option<u32>,
    pub name: Box<[u8]>,
    pub metadata: Metadata,
    /// Of a symbolic link: what it says.
    pub target: Option<Box<[u8]>>,
}

/// What is to be told to the job's observer.
pub(super) enum News {
    Ordered { member: usize, file: u32 },
    Gone { member: usize, path: Vec<u8>, size: Bytes },
    Finished { member: usize, file: u32 },
    Problem(FileProblem),
    Note { member: usize, note: Note },
}

pub(super) struct State {
    pub items: Vec<Item>,
    /// Directories and symbolic links.
    pub(super) structure: Vec<u32>,
    /// The items that are files, by their numbers in the placement.
    pub files: Vec<u32>,
    pub bytes: u64,
    /// Names that the filter has left out.
    pub left_out: u64,
    pub placement: Placement,
    pub seats: Vec<Seat>,
    /// Nothing more will be found.
    pub walked: bool,
    /// Everybody who will come is there: placing may begin.
    pub(super) begun: bool,
    /// Files that are the placement's business.
    pub(super) taken_in: usize,
    /// For each of these, members that have not said yet what they have of it.
    due: Vec<u16>,
    /// Members are told that it was all.
    pub(super) ended: bool,
    pub news: Vec<News>,
    /// Why a member could not have a file, the last one.
    pub refused: HashMap<u32, FileProblem>,
    /// Files that a member has taken with it after members were told that it was all: others were not asked any more.
    pub(super) lost_late: HashSet<u32>,
    index: HashMap<(u32, Box<[u8]>), u32>,
    indexed: usize,
}

/// A member's place.
#[derive(Default)]
pub(super) struct Seat {
    /// When it was ready, and whether it answers.
    pub ready: Option<(Time, bool)>,
    pub is_up: bool,
    pub is_over: bool,
    /// It is to be hung up on: it says what nobody understands.
    pub is_lost: bool,
    pub(super) asks: bool,
    told: usize,
    /// Files that are its own from the start.
    direct: VecDeque<u32>,
    /// Files that it has a part of.
    pub(super) parts: VecDeque<u32>,
    drops: VecDeque<u32>,
    pub(super) offered: usize,
    pub(super) unanswered: HashSet<u32>,
    pub(super) held: BTreeSet<u32>,
    /// Directories that it cannot have.
    pub(super) barred: HashSet<u32>,
    pub arrived: (u64, u64),
    pub kept: (u64, u64),
    /// What it works on.
    pub file: Option<Vec<u8>>,
}

impl State {
    pub fn new(settings: PlacementSettings, members: usize) -> Self {
        Self {
            items: Vec::new(),
            structure: Vec::new(),
            files: Vec::new(),
            bytes: 0,
            left_out: 0,
            placement: Placement::new(settings, members),
            seats: (0..members).map(|_| Seat::default()).collect(),
            walked: false,
            begun: false,
            taken_in: 0,
            due: Vec::new(),
            ended: false,
            news: Vec::new(),
            refused: HashMap::new(),
            lost_late: HashSet::new(),
            index: HashMap::new(),
            indexed: 0,
        }
    }

    /// The path of an item, below the destination.
    pub fn path(&self, item: u32) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut at = item + 1;
        while let Some(item) = at.checked_sub(1).and_then(|at| self.items.get(at as usize)) {
            parts.push(&item.name);
            at = item.parent;
        }
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        parts.join(&b'/')
    }

    pub fn path_of_file(&self, file: u32) -> Vec<u8> {
        self.files.get(file as usize).map_or_else(Vec::new, |item| self.path(*item))
    }

    pub fn size(&self, file: u32) -> u64 {
        self.item_of(file).map_or(0, |item| item.metadata.size)
    }

    fn item_of(&self, file: u32) -> Option<&Item> {
        self.items.get(*self.files.get(file as usize)? as usize)
    }

    /// Whether a file is empty: it cannot be offered, for a receiver makes it at once.
    pub(super) fn is_empty(&self, file: u32) -> bool {
        self.size(file) == 0
    }

    fn thing(&self, item: u32) -> Option<Thing> {
        let found = self.items.get(item as usize)?;
        Some(Thing {
            number: u64::from(item) + 1,
            parent: u64::from(found.parent),
            source: found.source.map(|source| source as usize),
            name: found.name.to_vec(),
            metadata: found.metadata,
        })
    }

    /// Hands what was found to the placement.
    pub(super) fn take_in(&mut self, replicas: usize) {
        if !self.begun {
            return;
        }
        let asking = self.seats.iter().filter(|seat| seat.asks).count() as u16;
        while self.taken_in < self.files.len() {
            let file = self.taken_in as u32;
            self.taken_in += 1;
            if self.is_empty(file) {
                self.due.push(0);
                self.give_empty(file, replicas);
                self.placement.release(file);
                continue;
            }
            self.due.push(asking);
            if asking == 0 {
                self.placement.release(file);
            }
        }
        if self.walked {
            self.placement.complete();
        }
    }

    /// Empty files are nobody's burden, and members cannot say whether they have one: they go where their names say, so that the next run sends them there again.
    fn give_empty(&mut self, file: u32, replicas: usize) {
        let mut hasher = DefaultHasher::new();
        self.path_of_file(file).hash(&mut hasher);
        let members = self.seats.len();
        let first = (hasher.finish() % members.max(1) as u64) as usize;
        let mut left = replicas;
        for member in (first..members).chain(0..first) {
            if self.is_barred(member, file) {
                continue;
            }
            let Some(seat) = self.seats.get_mut(member).filter(|seat| left > 0 && seat.is_up && !seat.is_over) else { continue };
            seat.direct.push_back(file);
            self.placement.handle_has(member, file);
            self.news.push(News::Ordered { member, file });
            left -= 1;
        }
    }

    /// One member more has said what it has of a file, or will not say it any more.
    pub(super) fn answered(&mut self, file: u32) {
        let Some(due) = self.due.get_mut(file as usize).filter(|due| **due > 0) else { return };
        *due -= 1;
        if *due == 0 {
            self.placement.release(file);
            self.let_go(file);
        }
    }

    /// Whoever holds an offer of a file that needs no more members is told.
    pub(super) fn let_go(&mut self, file: u32) {
        if self.placement.lacks(file) > 0 || self.due.get(file as usize).is_some_and(|due| *due > 0) {
            return;
        }
        for seat in &mut self.seats {
            if seat.held.remove(&file) {
                seat.drops.push_back(file);
            }
        }
    }

    /// The item with this path.
    pub(super) fn find(&mut self, path: &[u8]) -> Option<u32> {
        for at in self.indexed..self.items.len() {
            let item = self.items.get(at)?;
            let key = (self.named_parent(item.parent), item.name.clone());
            self.index.insert(key, at as u32);
        }
        self.indexed = self.items.len();
        let mut at = None;
        for part in path.split(|&byte| byte == b'/') {
            at = Some(*self.index.get(&(at.map_or(0, |at: u32| at + 1), part.into()))?);
        }
        at
    }

    /// A directory without a name is the destination.
    fn named_parent(&self, parent: u32) -> u32 {
        let found = parent.checked_sub(1).and_then(|at| self.items.get(at as usize));
        if found.is_some_and(|item| item.name.is_empty()) { 0 } else { parent }
    }

    pub(super) fn file_of(&self, item: u32) -> Option<u32> {
        self.files.binary_search(&item).ok().map(|file| file as u32)
    }

    /// Whether a member has said that it cannot have a file, or a directory above it.
    pub(super) fn cannot_have(&self, member: usize, file: u32) -> bool {
        self.placement.is_unfit(member, file) || self.is_barred(member, file)
    }

    pub(super) fn is_barred(&self, member: usize, file: u32) -> bool {
        let Some(seat) = self.seats.get(member).filter(|seat| !seat.barred.is_empty()) else { return false };
        let mut at = self.item_of(file).map_or(0, |item| item.parent);
        while at > 0 {
            if seat.barred.contains(&at) {
                return true;
            }
            at = self.items.get(at as usize - 1).map_or(0, |item| item.parent);
        }
        false
    }

    /// A member cannot have a file: others may.
    pub(super) fn refuse(&mut self, member: usize, file: u32, why: &Why) {
        let is_offered = self.seats.get(member).is_some_and(|seat| seat.unanswered.contains(&file));
        let is_given = self.placement.holders(file).any(|holder| holder == member);
        // All that is offered takes room together, and most of it goes elsewhere: others as large may fit.
        if is_given && why.is_full() {
            self.placement.handle_full(member, file);
        } else if is_given || is_offered {
            self.placement.handle_unfit(member, file);
        }
    }

    /// Why a file is on fewer members than it should be: it is on so many of those that are there.
    pub(super) fn why_short(&self, file: u32, holders: usize, there: usize) -> Why {
        if self.lost_late.contains(&file) {
            return Errno::HOSTDOWN.into();
        }
        // Who is there and was not given it has said that it has no room; else there are too few.
        let missing = if there > holders { Errno::NOSPC } else { Errno::HOSTDOWN };
        self.refused.get(&file).map_or_else(|| missing.into(), |problem| problem.why.clone())
    }

    /// What a member is to be sent.
    pub(super) fn next(&mut self, member: usize, now: Time) -> Fed {
        if let Some(item) = self.structure.get(self.seats.get(member).map_or(0, |seat| seat.told)).copied() {
            if let Some(seat) = self.seats.get_mut(member) {
                seat.told += 1;
            }
            let Some(thing) = self.thing(item) else { return Fed::Later };
            let target = self.items.get(item as usize).and_then(|item| item.target.as_ref());
            return target.map_or(Fed::Directory(thing.clone()), |target| Fed::Symlink(thing, target.to_vec()));
        }
        if self.ended {
            return Fed::End;
        }
        let Some(seat) = self.seats.get_mut(member).filter(|seat| seat.is_up && !seat.is_over) else { return Fed::Later };
        if let Some(file) = seat.direct.pop_front() {
            return self.file(file, Fed::File);
        }
        if let Some(file) = seat.parts.pop_front() {
            return self.file(file, |thing| Fed::Send(thing.number));
        }
        if let Some(file) = seat.drops.pop_front() {
            return self.file(file, |thing| Fed::Drop(thing.number));
        }
        if let Some(file) = self.next_offer(member) {
            return self.file(file, Fed::Offer);
        }
        while let Task::Take(file) = self.placement.poll(member, now) {
            if self.is_barred(member, file) {
                self.placement.handle_unfit(member, file);
                continue;
            }
            self.news.push(News::Ordered { member, file });
            let was_held = self.seats.get_mut(member).is_some_and(|seat| seat.held.remove(&file));
            self.let_go(file);
            return self.file(file, |thing| if was_held { Fed::Send(thing.number) } else { Fed::File(thing) });
        }
        if self.walked && self.taken_in == self.files.len() && self.placement.is_settled() {
            self.ended = true;
            return Fed::End;
        }
        self.make_room(member, now)
    }

    /// The next file that a member is to be asked about: empty ones are passed over, however many there are, and those that it cannot have, of which it would say nothing.
    fn next_offer(&mut self, member: usize) -> Option<u32> {
        loop {
            let seat = self.seats.get_mut(member)?;
            if !seat.asks || seat.offered >= self.taken_in || seat.unanswered.len() + seat.held.len() >= MAX_OFFERED {
                return None;
            }
            let file = seat.offered as u32;
            seat.offered += 1;
            if self.is_empty(file) {
                continue;
            }
            if self.is_barred(member, file) {
                self.placement.handle_unfit(member, file);
                self.answered(file);
                continue;
            }
            self.seats.get_mut(member)?.unanswered.insert(file);
            return Some(file);
        }
    }

    /// Where offers stand in the way of further ones, and nobody works on anything, the earliest is let go.
    fn make_room(&mut self, member: usize, now: Time) -> Fed {
        let is_idle = (0..self.seats.len()).all(|member| self.placement.load(member, now).0 == Bytes(0));
        let due = &self.due;
        let is_decided = |file: &u32| due.get(*file as usize).is_some_and(|due| *due == 0);
        let Some(seat) = self.seats.get_mut(member).filter(|seat| is_idle && seat.held.len() >= MAX_OFFERED) else {
            return Fed::Later;
        };
        let Some(file) = seat.held.iter().copied().find(is_decided) else { return Fed::Later };
        seat.held.remove(&file);
        self.file(file, |thing| Fed::Drop(thing.number))
    }

    fn file(&self, file: u32, what: impl FnOnce(Thing) -> Fed) -> Fed {
        let thing = self.files.get(file as usize).and_then(|item| self.thing(*item));
        thing.map_or(Fed::Later, what)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use haul_files::protocol::Stamp;
    use haul_files::store::{FileKind, Identity};

    use super::*;

    /// Something that a walk has found.
    pub fn item(parent: u32, name: &str, kind: FileKind, size: u64) -> Item {
        let (mtime, identity) = (Stamp { secs: 0, nanos: 0 }, Identity { device: 0, inode: 0 });
        let (mode, changed) = (0o755, (0, 0));
        let metadata = Metadata { kind, size, data: size, mode, uid: 0, gid: 0, mtime, changed, names: 1, identity };
        Item { parent, source: None, name: name.as_bytes().into(), metadata, target: None }
    }

    #[test]
    fn a_hundred_thousand_empty_files_are_passed_over_without_a_stack_of_them() {
        const FILES: u32 = 100_000;
        let mut state = State::new(PlacementSettings::default(), 1);
        state.placement.handle_up(0, Duration::ZERO, Time::ZERO);
        state.begun = true;
        (state.seats[0].is_up, state.seats[0].asks) = (true, true);
        for at in 0..FILES {
            state.items.push(item(0, &at.to_string(), FileKind::File, 0));
            state.files.push(at);
            state.placement.add_file(Bytes(0));
        }
        state.take_in(1);
        for _ in 0..FILES {
            assert!(matches!(state.next(0, Time::ZERO), Fed::File(_)), "each is made at once");
        }
        assert_eq!(state.next(0, Time::ZERO), Fed::Later, "none of them is asked about");
        state.items.push(item(0, "full", FileKind::File, 7));
        state.files.push(FILES);
        state.placement.add_file(Bytes(7));
        state.take_in(1);
        assert!(matches!(state.next(0, Time::ZERO), Fed::Offer(thing) if thing.name == b"full"));
    }
}
