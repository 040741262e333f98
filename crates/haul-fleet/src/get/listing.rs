//! First: what everybody has.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_files::protocol::{Entry, Kind};
use haul_files::{FileProblem, Why, WirePath};
use haul_units::Bytes;

use super::desk::Desk;
use super::merge::{Misfit, Tree};
use super::news::{News, Said};
use super::{GetError, ReplicasBy, doubts};
use crate::observe::JobEvent;

/// What a system says of a name that is not there.
const NO_SUCH_FILE: Why = Why::Os(2);

/// What there is.
pub(super) struct Listed {
    pub(super) tree: Tree,
    /// What is missing everywhere, or could not be listed somewhere.
    pub(super) problems: Vec<FileProblem>,
}

/// Waits until every member has said what it has, or is gone.
pub(super) fn list<B>(desk: &mut Desk<'_, B>) -> Result<Listed, GetError> {
    let mut tree = Tree::by_hash(desk.job.replicas_by == ReplicasBy::Hash);
    let mut counts = vec![(0_u64, 0_u64); desk.supplies.len()];
    for supply in &desk.supplies {
        let rtt = Duration::from_micros((supply.path)().rtt_us);
        desk.observer.event(&JobEvent::Up { member: &supply.name, rtt });
    }
    while desk.supplies.iter().any(|supply| !supply.is_listed && supply.down.is_none()) {
        desk.tell(None, |_| None, false);
        let Some(News::Member(at, said)) = desk.next(desk.tells_in())? else { continue };
        let is_down = desk.supplies.get(at).is_none_or(|supply| supply.down.is_some());
        let is_listed = desk.supplies.get(at).is_some_and(|supply| supply.is_listed);
        match said {
            Said::Over(result) => {
                desk.over(at, result)?;
            }
            _ if is_down => {}
            Said::Entries(_) | Said::Listed if is_listed => {
                desk.down(at, "it says what it was not asked");
            }
            Said::Entries(entries) => {
                for entry in entries {
                    if let (Kind::File { size, .. }, Some(count)) = (&entry.kind, counts.get_mut(at)) {
                        *count = (count.0 + 1, count.1.saturating_add(*size));
                    }
                    enter(desk, &mut tree, at, entry)?;
                }
            }
            Said::Listed => {
                if let (Some(supply), Some(&(files, bytes))) = (desk.supplies.get_mut(at), counts.get(at)) {
                    supply.listed();
                    desk.observer.event(&JobEvent::Listed { member: &supply.name, files, bytes: Bytes(bytes) });
                }
            }
            Said::Problem(problem) => {
                if let Some(supply) = desk.supplies.get_mut(at)
                    && supply.problems.len() < haul_files::MAX_PROBLEMS
                {
                    supply.problems.push(problem);
                }
            }
            Said::Note(note) => desk.observer.event(&JobEvent::Note(&note)),
            Said::Ended(_) | Said::Delivered(_) | Said::Digests(_) => {
                desk.down(at, "it sends what was not ordered");
            }
        }
    }
    doubts::settle(desk, &mut tree)?;
    if desk.supplies.iter().all(|supply| supply.down.is_some()) {
        return Err(GetError::AllDown { members: desk.gone() });
    }
    let sizes = (0..tree.len()).filter_map(|at| tree.size(at));
    desk.found = sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes.saturating_add(size)));
    let (files, bytes) = desk.found;
    desk.observer.event(&JobEvent::Found { files, bytes: Bytes(bytes), complete: true });
    Ok(Listed { tree, problems: problems(desk) })
}

fn enter<B>(desk: &mut Desk<'_, B>, tree: &mut Tree, at: usize, entry: Entry) -> Result<(), GetError> {
    let Some(supply) = desk.supplies.get_mut(at) else { return Ok(()) };
    let (id, parent) = (entry.id, supply.node(entry.parent));
    match tree.add(at as u16, parent, entry) {
        Ok(node) => {
            supply.has(id, node);
            Ok(())
        }
        Err(Misfit::TooMany) => Err(GetError::TooManyFiles),
        Err(Misfit::Conflict { path, other }) => {
            let second = supply.name.clone();
            let first = desk.supplies.get(usize::from(other)).map(|other| other.name.clone()).unwrap_or_default();
            Err(GetError::Conflict { path, first, second })
        }
    }
}

/// A source need not be on every member: it is missing where nobody has it. One that is a directory, and was not to be, is told once. Whatever else could not be listed is named with its member.
fn problems<B>(desk: &mut Desk<'_, B>) -> Vec<FileProblem> {
    let listed = desk.supplies.iter().filter(|supply| supply.is_listed).count();
    // By source, and whether it is missing.
    let mut once: BTreeMap<(usize, bool), (usize, FileProblem)> = BTreeMap::new();
    let mut named = Vec::new();
    for supply in &mut desk.supplies {
        for mut problem in std::mem::take(&mut supply.problems) {
            let is_missing = problem.why == NO_SUCH_FILE || problem.why == Why::NoMatch;
            let asked = || supply.sources.iter().position(|source| WirePath::from(source.as_path()) == problem.path);
            let is_told_once = is_missing || problem.why == Why::DirectoryWithoutRecursive;
            if let Some((at, source)) = is_told_once.then(asked).flatten().and_then(|at| Some((at, desk.job.sources.get(at)?))) {
                problem.path = source.as_path().into();
                once.entry((at, is_missing)).or_insert((0, problem)).0 += 1;
            } else {
                problem.path = WirePath([supply.name.as_bytes(), b":", &problem.path.0].concat());
                named.push(problem);
            }
        }
    }
    let told = once.into_iter().filter(|((_, is_missing), (count, _))| !is_missing || *count >= listed);
    named.extend(told.map(|(_, (_, problem))| problem));
    named
}
