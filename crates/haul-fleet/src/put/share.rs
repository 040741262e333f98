//! What the threads of an upload share, and what the walk through the sources adds to it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul_files::store::{FileKind, base_name};
use haul_files::walk::{self, Found};
use haul_files::{FileProblem, WirePath};
use haul_plan::{Load, PlacementSettings};
use haul_units::{Bytes, Time};

use super::state::{Item, News, State};
use crate::clock;

/// Word to waiting members after so many files were found; they look by themselves too.
const TOLD_OF: usize = 64;

pub(super) struct Shared {
    pub state: Mutex<State>,
    changed: Condvar,
    started: Instant,
    sources: Vec<WirePath>,
    replicas: usize,
}

impl Shared {
    pub fn new(settings: PlacementSettings, members: usize, sources: Vec<WirePath>) -> Self {
        let state = State::new(settings, members);
        Self { state: Mutex::new(state), changed: Condvar::new(), started: clock::now(), sources, replicas: settings.replicas }
    }

    pub fn now(&self) -> Time {
        Time::ZERO + (clock::now() - self.started)
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Until something has changed, or for so long.
    pub fn wait(&self, most: Duration) {
        let state = self.lock();
        drop(self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner));
    }

    /// A member can be given files.
    pub fn up(&self, member: usize, rtt: Duration, load: Option<Load>) {
        let now = self.now();
        let mut state = self.lock();
        if let Some(load) = load {
            state.placement.handle_load(member, load);
        }
        state.placement.handle_up(member, rtt, now);
        if let Some(seat) = state.seats.get_mut(member) {
            seat.is_up = true;
        }
    }

    /// A member is gone, with all that it has.
    pub fn down(&self, member: usize) {
        let mut state = self.lock();
        if state.ended {
            let held = |file: &u32| state.placement.holders(*file).any(|holder| holder == member);
            let held: Vec<u32> = (0..state.files.len() as u32).filter(held).collect();
            state.lost_late.extend(held);
        }
        state.placement.handle_down(member);
        let taken_in = state.taken_in;
        let Some(seat) = state.seats.get_mut(member) else { return };
        seat.is_over = true;
        let mut silent: Vec<u32> = seat.unanswered.drain().collect();
        if std::mem::take(&mut seat.asks) {
            silent.extend(seat.offered as u32..taken_in as u32);
        }
        for file in silent {
            if !state.is_empty(file) {
                state.answered(file);
            }
        }
        drop(state);
        self.wake();
    }

    /// Everybody who will come is there.
    pub fn begin(&self) {
        let mut state = self.lock();
        state.begun = true;
        for seat in &mut state.seats {
            seat.asks = !seat.is_over && seat.ready.is_some_and(|(_, answers)| answers);
        }
        state.take_in(self.replicas);
        drop(state);
        self.wake();
    }

    pub fn is_begun(&self) -> bool {
        self.lock().begun
    }

    /// The walk is over.
    pub fn walked(&self) {
        let mut state = self.lock();
        state.walked = true;
        state.take_in(self.replicas);
        drop(state);
        self.wake();
    }

    /// The path of a source's thing, as a user would name it, below the destination.
    pub fn of_source(&self, shown: &[u8]) -> Option<Vec<u8>> {
        let rest = |source: &WirePath| -> Option<Vec<u8>> {
            let rest = shown.strip_prefix(&*source.0)?;
            let is_whole = rest.is_empty() || rest.starts_with(b"/") || source.0.ends_with(b"/");
            is_whole.then(|| join(&base_name(&source.0), rest.strip_prefix(b"/").unwrap_or(rest)))
        };
        let longest =
            self.sources.iter().filter_map(|source| Some((source.0.len(), rest(source)?))).max_by_key(|(length, _)| *length);
        longest.map(|(_, path)| if path.ends_with(b"/") { path.get(..path.len() - 1).unwrap_or_default().to_vec() } else { path })
    }

    /// The sources as they were named.
    pub fn sources(&self) -> &[WirePath] {
        &self.sources
    }

    /// The sources, and what each is called at the destination.
    pub fn named_sources(&self) -> Vec<(WirePath, Vec<u8>)> {
        self.sources.iter().map(|source| (source.clone(), base_name(&source.0))).collect()
    }

    /// Takes a thing; its number, or none where nobody needs any more.
    pub fn take(&self, item: Item) -> Option<u32> {
        let mut state = self.lock();
        if state.seats.iter().all(|seat| seat.is_over) {
            return None;
        }
        // The highest numbers mean none.
        let at = u32::try_from(state.items.len()).ok().filter(|at| *at < u32::MAX - 1)?;
        match item.metadata.kind {
            FileKind::Directory | FileKind::Symlink => state.structure.push(at),
            FileKind::File | FileKind::Special => {
                state.files.push(at);
                state.bytes = state.bytes.saturating_add(item.metadata.data);
                state.placement.add_file(Bytes(item.metadata.data));
            }
        }
        state.items.push(item);
        state.take_in(self.replicas);
        if state.items.len().is_multiple_of(TOLD_OF) {
            self.wake();
        }
        Some(at + 1)
    }
}

impl Found for Shared {
    fn item(&self, item: walk::Item<'_>) -> Option<u64> {
        let item = Item {
            parent: item.parent as u32,
            source: item.source.map(|source| source as u32),
            name: item.name.into(),
            metadata: item.metadata,
            target: item.target.map(Vec::into_boxed_slice),
        };
        self.take(item).map(u64::from)
    }

    fn left_out(&self) {
        self.lock().left_out += 1;
    }

    fn problem(&self, problem: FileProblem) {
        self.lock().news.push(News::Problem(problem));
    }
}

/// As a user would write a name in a directory.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let between: &[u8] = if dir.is_empty() || dir.ends_with(b"/") { b"" } else { b"/" };
    [dir, between, name].concat()
}

#[cfg(test)]
mod tests {
    use haul_files::{Fed, Why};
    use rustix::io::Errno;

    use super::super::state::tests::item;
    use super::*;

    #[test]
    fn what_a_member_takes_with_it_at_the_end_had_no_lack_of_room() {
        let settings = PlacementSettings::default();
        let shared = Shared::new(settings, 2, Vec::new());
        for member in 0..2 {
            shared.up(member, Duration::ZERO, None);
            shared.lock().placement.handle_room(member, Bytes(1 << 30));
        }
        // The second fits nowhere.
        for (name, size) in [("small", 7), ("huge", 1 << 40)] {
            shared.take(item(0, name, FileKind::File, size));
        }
        shared.begin();
        shared.walked();
        let next = |member| shared.lock().next(member, Time::ZERO);
        let member = (0..2).find(|member| matches!(next(*member), Fed::File(_))).expect("it is sent to one");
        shared.lock().placement.handle_progress(member, Bytes(7), 1, Time::ZERO);
        assert_eq!((next(member), next(1 - member)), (Fed::End, Fed::End));
        shared.down(member);
        let state = shared.lock();
        let short: Vec<Why> = state.placement.short().map(|(file, holders)| state.why_short(file, holders, 1)).collect();
        assert_eq!(short, [Errno::HOSTDOWN.into(), Errno::NOSPC.into()]);
    }
}
