//! What everybody has, as it is said, and when enough of it is known to begin.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use haul_files::protocol::{Entry, Kind};
use haul_files::{FileProblem, Why, WirePath};
use haul_plan::Policy;
use haul_units::Bytes;
use rustix::io::Errno;

use super::desk::Desk;
use super::doubts;
use super::error::{GetError, Here};
use super::job::{Begin, ReplicasBy};
use super::merge::{Misfit, Tree};
use super::news::{News, Said};
use crate::observe::JobEvent;

/// What there is, as far as members have said.
pub(super) struct Listing {
    pub(super) tree: Tree,
    /// Files and bytes of each member.
    counts: Vec<(u64, u64)>,
    /// The name on which two of them do not agree.
    pub(super) disputed: Option<u32>,
}

/// What a member's word comes to.
pub(super) enum Heard {
    /// Nothing that matters here.
    Nothing,
    /// There may be more than there was; of what was known before, these files are on this member too.
    Entries(Vec<u32>),
    /// It has said all that it has.
    All,
    /// It is gone.
    Gone,
}

/// With what a job begins.
pub(super) struct Start {
    /// How many names stand at the top, for who writes the destination: one, or several.
    pub(super) tops: u32,
    /// The one name at the top is another one here.
    pub(super) renames: bool,
}

/// Waits until enough has been said to begin with.
pub(super) fn begin<B>(desk: &mut Desk<'_, B>) -> Result<(Listing, Start), GetError> {
    let by_hash = desk.job.replicas_by == ReplicasBy::Hash;
    let waits = by_hash || desk.job.begin == Begin::WhenAllAreHeard || desk.job.settings.policy == Policy::RoundRobin;
    let tree = Tree::by_hash(by_hash);
    let mut listing = Listing { tree, counts: vec![(0, 0); desk.supplies.len()], disputed: None };
    let is_directory = haul_copy::is_directory(&desk.job.destination, desk.cancel).map_err(GetError::Destination)?;
    let start = loop {
        if let Some(tops) = listing.enough(desk, waits, is_directory) {
            break Start { tops, renames: tops == 1 && !is_directory };
        }
        desk.tell(None, |_| None, false);
        match desk.next(desk.tells_in())? {
            Some(News::Came(at, newcomer)) => desk.came(at, newcomer),
            Some(News::Absent(at)) => desk.is_absent(at),
            Some(News::NoMore) => desk.no_more(),
            Some(News::Member(at, said)) => drop(listing.hear(desk, at, said)?),
            Some(News::Local(_) | News::LocalOver(_) | News::Woken) | None => {}
        }
    };
    doubts::settle(desk, &mut listing.tree)?;
    Ok((listing, start))
}

impl Listing {
    /// How many names stand at the top, once enough is known to begin; where there may be more than are known, and that makes no difference, two count as many.
    fn enough<B>(&self, desk: &Desk<'_, B>, waits: bool, is_directory: bool) -> Option<u32> {
        let tops = self.tree.tops();
        if desk.is_all_heard() {
            return Some(tops.max(1));
        }
        let one = desk.job.sources.len() == 1 && desk.job.sources.first().is_some_and(|source| is_one_name(source));
        let is_known = tops > 1 || tops == 1 && (one || is_directory);
        (!waits && is_known && desk.supplies.iter().any(|supply| supply.is_listed)).then_some(tops)
    }

    /// Takes what a member says that has not said everything yet.
    pub(super) fn hear<B>(&mut self, desk: &mut Desk<'_, B>, at: usize, said: Said<B>) -> Result<Heard, GetError> {
        let Some(supply) = desk.supplies.get_mut(at) else { return Ok(Heard::Nothing) };
        let is_listed = supply.is_listed;
        match said {
            Said::Over(result) => {
                return Ok(if desk.over(at, result)? { Heard::Gone } else { Heard::Nothing });
            }
            _ if supply.down.is_some() => {}
            Said::Entries(_) | Said::Elsewhere(_) | Said::Listed if is_listed => {
                desk.down(at, "it says what it was not asked");
                return Ok(Heard::Gone);
            }
            Said::Elsewhere(files) => supply.elsewhere = files,
            Said::Entries(entries) => {
                let elsewhere = std::mem::take(&mut supply.elsewhere);
                let mut replicas = Vec::new();
                for entry in entries {
                    if let (Kind::File { size, .. }, Some(count)) = (&entry.kind, self.counts.get_mut(at)) {
                        *count = (count.0 + 1, count.1.saturating_add(*size));
                    }
                    let is_at_hand = elsewhere.binary_search(&entry.id).is_err();
                    replicas.extend(self.enter(desk, at, entry, is_at_hand)?);
                }
                return Ok(Heard::Entries(replicas));
            }
            Said::Listed => {
                if let Some(&(files, bytes)) = self.counts.get(at) {
                    supply.listed();
                    desk.observer.event(&JobEvent::Listed { member: &supply.name, files, bytes: Bytes(bytes) });
                }
                return Ok(Heard::All);
            }
            Said::Problem(problem) => {
                if supply.problems.len() < haul_files::MAX_PROBLEMS {
                    supply.problems.push(problem);
                }
            }
            Said::LeftOut(names) => supply.left_out = names,
            Said::Note(note) => desk.note(at, &note),
            Said::Ended(_) | Said::Delivered(_) | Said::Digests(_) => {
                desk.down(at, "it sends what was not ordered");
                return Ok(Heard::Gone);
            }
        }
        Ok(Heard::Nothing)
    }

    /// One thing more on a member; the file, if it was known before from others and this member has it at hand.
    fn enter<B>(&mut self, desk: &mut Desk<'_, B>, at: usize, entry: Entry, is_at_hand: bool) -> Result<Option<u32>, GetError> {
        let Some(supply) = desk.supplies.get_mut(at) else { return Ok(None) };
        let (id, parent) = (entry.id, supply.node(entry.parent));
        let known = self.tree.len();
        match self.tree.add(at as u16, parent, entry, is_at_hand) {
            Ok(node) => {
                supply.has(id, node);
                Ok((is_at_hand && node < known && self.tree.size(node).is_some()).then_some(node))
            }
            Err(Misfit::TooMany) => Err(GetError::TooManyFiles),
            Err(Misfit::Conflict { node, other }) => {
                self.disputed = Some(node);
                let second = supply.name.clone();
                let first = desk.supplies.get(usize::from(other)).map(|other| other.name.clone()).unwrap_or_default();
                Err(GetError::Conflict { path: self.tree.path(node), first, second, here: Here::Untouched })
            }
        }
    }
}

/// Whether a source is one name on whatever member has it: no pattern, and no place whose name is the member's.
fn is_one_name(source: &Path) -> bool {
    let last = source.components().next_back();
    let is_pattern = source.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte));
    matches!(last, Some(Component::Normal(_))) && !source.as_os_str().as_encoded_bytes().ends_with(b"/.") && !is_pattern
}

/// A source need not be on every member: it is missing where nobody has it. One that is a directory, and was not to be, is told once. Whatever else could not be listed is named with its member.
pub(super) fn problems<B>(desk: &mut Desk<'_, B>) -> Vec<FileProblem> {
    let listed = desk.supplies.iter().filter(|supply| supply.is_listed).count();
    // By source, and whether it is missing.
    let mut once: BTreeMap<(usize, bool), (usize, FileProblem)> = BTreeMap::new();
    let mut named = Vec::new();
    for supply in &mut desk.supplies {
        for mut problem in std::mem::take(&mut supply.problems) {
            let is_missing = problem.why == Errno::NOENT.into() || problem.why == Why::NoMatch;
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
