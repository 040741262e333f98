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
        // Who takes nothing lacks nothing.
        let is_refused = missing == 0 && state.cannot_have(self.member, file);
        let Some(seat) = state.seats.get_mut(self.member) else { return };
        if !seat.unanswered.remove(&file) {
            return;
        }
        if is_refused {
            state.placement.handle_unfit(self.member, file);
        } else if missing == 0 {
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
                // At the end it has all that is below a directory, and its mode, owner or time could not be set.
                if !state.ended && state.items.get(item as usize).is_some_and(|item| item.target.is_none()) {
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

    /// What members are told, all of it.
    fn told(side: &Side) -> Vec<Fed> {
        let next = || Some(side.next()).filter(|fed| !matches!(fed, Fed::Later | Fed::End));
        std::iter::from_fn(next).collect()
    }

    /// So many members, which are ready.
    fn members(shared: &Arc<Shared>, members: usize, answers: bool) -> Vec<Side> {
        let side = |member| {
            let side = Side::new(shared.clone(), (member, "m"), b"/to");
            side.ready(answers);
            shared.up(member, Duration::from_millis(1), None);
            side
        };
        (0..members).map(side).collect()
    }

    fn says(side: &Side, path: &[u8], why: Errno) {
        let problem = FileProblem { path: WirePath(path.to_vec()), fault: Fault::Destination, why: why.into() };
        side.event(Event::Problem(&problem));
    }

    fn numbers(told: &[Fed]) -> Vec<u64> {
        let number = |fed: &Fed| match fed {
            Fed::Directory(thing) | Fed::File(thing) | Fed::Offer(thing) => thing.number,
            Fed::Send(number) => *number,
            fed => panic!("{fed:?}"),
        };
        told.iter().map(number).collect()
    }

    #[test]
    fn what_a_member_refuses_when_it_is_offered_goes_to_another() {
        let shared = Arc::new(Shared::new(PlacementSettings::default(), 2, Vec::new()));
        let directory = shared.take(item(0, "d", FileKind::Directory, 0)).expect("it is taken");
        let below = shared.take(item(directory, "f", FileKind::File, 7)).expect("it is taken");
        let file = shared.take(item(0, "g", FileKind::File, 7)).expect("it is taken");
        let full = shared.take(item(0, "h", FileKind::File, 7)).expect("it is taken");
        let sides = members(&shared, 2, true);
        shared.begin();
        shared.walked();
        for side in &sides {
            assert_eq!(numbers(&told(side)), [directory, below, file, full].map(u64::from));
        }
        // The first can have neither the directory nor one of the files, and has no room for another: it says why, and that it lacks nothing.
        says(&sides[0], b"/to/d", Errno::NOTDIR);
        says(&sides[0], b"/to/g", Errno::ISDIR);
        says(&sides[0], b"/to/h", Errno::NOSPC);
        for number in [below, file, full] {
            sides[0].answer(number.into(), 0);
            sides[1].answer(number.into(), 7);
        }
        assert_eq!(told(&sides[0]), [], "it is given nothing");
        let mut sent = numbers(&told(&sides[1]));
        sent.sort_unstable();
        assert_eq!(sent, [below, file, full].map(u64::from));
        assert_eq!(sides[0].next(), Fed::Later, "the other has nothing yet");
        sides[1].event(Event::Arrived { files: 3, bytes: Bytes(21) });
        assert_eq!((sides[0].next(), sides[1].next()), (Fed::End, Fed::End));
        assert_eq!(shared.lock().placement.short().next(), None);
    }

    #[test]
    fn a_member_is_not_asked_for_what_is_below_a_directory_that_it_cannot_have() {
        let shared = Arc::new(Shared::new(PlacementSettings::default(), 2, Vec::new()));
        let directory = shared.take(item(0, "d", FileKind::Directory, 0)).expect("it is taken");
        let sides = members(&shared, 2, true);
        shared.begin();
        for side in &sides {
            assert_eq!(numbers(&told(side)), [u64::from(directory)]);
        }
        says(&sides[0], b"/to/d", Errno::NOTDIR);
        let below = shared.take(item(directory, "f", FileKind::File, 7)).expect("it is taken");
        // Half of them would be the first's.
        for name in ["a", "b", "c", "d", "e", "g", "h", "i"] {
            shared.take(item(directory, name, FileKind::File, 0)).expect("it is taken");
        }
        shared.walked();
        assert_eq!(told(&sides[0]), []);
        assert_eq!(numbers(&told(&sides[1])).len(), 9);
        sides[1].answer(below.into(), 7);
        assert_eq!(numbers(&told(&sides[1])), [u64::from(below)]);
        sides[1].event(Event::Arrived { files: 9, bytes: Bytes(7) });
        assert_eq!((sides[0].next(), sides[1].next()), (Fed::End, Fed::End));
    }

    #[test]
    fn what_is_in_a_directory_whose_mode_could_not_be_set_is_there() {
        let shared = Arc::new(Shared::new(PlacementSettings::default(), 1, Vec::new()));
        let directory = shared.take(item(0, "d", FileKind::Directory, 0)).expect("it is taken");
        let file = shared.take(item(directory, "f", FileKind::File, 7)).expect("it is taken");
        let sides = members(&shared, 1, false);
        shared.begin();
        shared.walked();
        assert_eq!(numbers(&told(&sides[0])), [directory, file].map(u64::from));
        sides[0].event(Event::Arrived { files: 1, bytes: Bytes(7) });
        assert_eq!(sides[0].next(), Fed::End);
        says(&sides[0], b"/to/d", Errno::PERM);
        let state = shared.lock();
        assert!(state.news.iter().any(|news| matches!(news, News::Problem(_))), "it is told of");
        assert_eq!(state.placement.short().next(), None, "the file is where it is to be");
    }
}
