//! One member's view of an upload: what its push is fed with, and what it says.

use std::sync::Arc;
use std::time::Duration;

use haul_files::{Event, Fault, Fed, Feed, FileProblem, Observer};
use haul_units::Bytes;

use super::share::Shared;
use super::state::{News, State};

/// How long a feed that has nothing waits before it looks again.
const LOOK: Duration = Duration::from_millis(100);

/// One member's view.
pub(super) struct Side {
    pub shared: Arc<Shared>,
    pub member: usize,
    name: String,
    /// Where all goes there, without slashes at its end.
    destination: Vec<u8>,
}

impl Feed for Side {
    fn part(&self) -> &[u8] {
        self.name.as_bytes()
    }

    fn ready(&self, answers: bool) {
        let now = self.shared.now();
        if let Some(seat) = self.shared.lock().seats.get_mut(self.member) {
            seat.ready = Some((now, answers));
        }
    }

    fn next(&self) -> Fed {
        let now = self.shared.now();
        self.shared.lock().next(self.member, now)
    }

    fn wait(&self) {
        self.shared.wait(LOOK);
    }

    fn answer(&self, number: u64, missing: u64) {
        let mut state = self.shared.lock();
        let Some(file) = number.checked_sub(1).and_then(|item| state.file_of(item as u32)) else { return };
        let is_part = missing < state.size(file);
        let lacks = state.placement.lacks(file) > 0;
        let Some(seat) = state.seats.get_mut(self.member) else { return };
        if !seat.unanswered.remove(&file) {
            return;
        }
        if missing == 0 {
            state.placement.handle_has(self.member, file);
        } else if is_part && lacks {
            seat.parts.push_back(file);
            state.placement.handle_has(self.member, file);
            let member = self.member;
            state.news.push(News::Ordered { member, file });
        } else {
            seat.held.insert(file);
        }
        state.answered(file);
        state.let_go(file);
        drop(state);
        self.shared.wake();
    }
}

impl Observer for Side {
    fn event(&self, event: Event<'_>) {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let Some(seat) = state.seats.get_mut(self.member) else { return };
        match event {
            Event::Arrived { files, bytes } => seat.arrived = (files, bytes.as_u64()),
            Event::Kept { files, bytes } => seat.kept = (files, bytes.as_u64()),
            Event::FileStarted { path, .. } => seat.file = self.shared.of_source(path.as_os_str().as_encoded_bytes()),
            Event::FileFinished { path, size } => {
                let member = self.member;
                if let Some(path) = self.shared.of_source(path.as_os_str().as_encoded_bytes()) {
                    state.news.push(News::Gone { member, path, size });
                }
                return;
            }
            Event::Problem(problem) => return self.problem(&mut state, problem),
            Event::Note(note) => {
                let (member, note) = (self.member, note.clone());
                return state.news.push(News::Note { member, note });
            }
            _ => return,
        }
        let (files, bytes) = (seat.arrived.0.saturating_add(seat.kept.0), seat.arrived.1.saturating_add(seat.kept.1));
        state.placement.handle_progress(self.member, Bytes(bytes), files, now);
        while let Some((member, file)) = state.placement.poll_finished() {
            state.news.push(News::Finished { member, file });
        }
        drop(state);
        self.shared.wake();
    }

    fn wants_files(&self) -> bool {
        true
    }
}

impl Side {
    pub fn new(shared: Arc<Shared>, (member, name): (usize, &str), destination: &[u8]) -> Self {
        let end = destination.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
        Self { shared, member, name: name.to_owned(), destination: destination.get(..end).unwrap_or_default().to_vec() }
    }

    /// The path that the member names, below the destination.
    fn below<'a>(&self, shown: &'a [u8]) -> &'a [u8] {
        let rest = shown.strip_prefix(&*self.destination).unwrap_or(shown);
        let start = rest.iter().position(|&byte| byte != b'/').unwrap_or(rest.len());
        rest.get(start..).unwrap_or_default()
    }

    /// What could not be read is nobody's; what a member could not write may go elsewhere.
    fn problem(&self, state: &mut State, problem: &FileProblem) {
        let of_source = problem.fault == Fault::Source;
        let path = if of_source { self.shared.of_source(&problem.path.0) } else { Some(self.below(&problem.path.0).to_vec()) };
        let item = path.and_then(|path| state.find(&path));
        let Some(item) = item else {
            state.news.push(News::Problem(problem.clone()));
            if let Some(seat) = state.seats.get_mut(self.member) {
                seat.is_lost = true;
            }
            return;
        };
        let member = self.member;
        match state.file_of(item) {
            Some(file) if of_source => {
                state.placement.handle_lost(member, file);
                if state.refused.insert(file, problem.clone()).is_none() {
                    state.news.push(News::Problem(problem.clone()));
                }
            }
            Some(file) => {
                state.refused.insert(file, problem.clone());
                state.refuse(member, file, &problem.why);
            }
            None => {
                state.news.push(News::Problem(problem.clone()));
                if state.items.get(item as usize).is_some_and(|item| item.target.is_none()) {
                    // A directory: nothing below it arrives. What a member says again is not looked for again: all files are looked at, and everybody waits.
                    if !state.seats.get_mut(member).is_some_and(|seat| seat.barred.insert(item + 1)) {
                        return self.shared.wake();
                    }
                    for file in 0..state.files.len() as u32 {
                        if state.is_barred(member, file) {
                            state.refused.insert(file, problem.clone());
                            state.refuse(member, file, &problem.why);
                        }
                    }
                }
            }
        }
        self.shared.wake();
    }
}

#[cfg(test)]
mod tests {
    use haul_files::WirePath;
    use haul_files::store::FileKind;
    use haul_plan::PlacementSettings;
    use rustix::io::Errno;

    use super::super::state::tests::item;
    use super::*;

    #[test]
    fn what_is_below_a_directory_that_a_member_cannot_have_is_looked_for_once() {
        let shared = Arc::new(Shared::new(PlacementSettings::default(), 1, Vec::new()));
        let directory = shared.take(item(0, "d", FileKind::Directory, 0)).expect("it is taken");
        shared.take(item(directory, "f", FileKind::File, 7)).expect("it is taken");
        let side = Side::new(shared.clone(), (0, "m"), b"/to");
        let problem = FileProblem { path: WirePath(b"/to/d".to_vec()), fault: Fault::Destination, why: Errno::ACCESS.into() };
        side.event(Event::Problem(&problem));
        assert_eq!(shared.lock().refused.drain().map(|(file, _)| file).collect::<Vec<_>>(), [0]);
        for _ in 0..10 {
            side.event(Event::Problem(&problem));
        }
        let state = shared.lock();
        assert!(state.refused.is_empty(), "it was looked for again");
        assert!(state.is_barred(0, 0));
        assert_eq!(state.news.len(), 11, "each is told of");
    }
}
