//! `any:NAME`: of several places of a machine, the one that a name is in, or that it goes to.
//!
//! Each place is a directory, `ram:` or `gfarm:/path`; which there are is the machine's list or its user's. A name is read where it is. It is stored where it is already, or where this very job has left something of it
//! when it was interrupted; else where most room is, in the first of equals. Not in the first place with room enough: how much a copy brings is not known when it begins (content leaves while the tree is still listed, a
//! fleet decides file by file who gets it, a stream has no length), and what has no room where most of it is has none anywhere.
//!
//! A place that cannot be used at the moment is passed over. A name that is in two of them is an error that names both.

use std::fmt;
use std::sync::Arc;

use haul_files::store::{At, Scheme, Space};
use haul_files::{Access, Asking, CopyError, Note, Store, StoreError, Transport, WirePath};
use haul_names::{is_pattern, stage_id};
use haul_peer::chain;
use haul_units::Cancel;

use crate::here::{Local, unavailable};
use crate::stores::{InStore, failed_at, in_store_of};

/// The places of which one is chosen for `any:NAME`. The default is none.
#[derive(Clone, Default)]
pub struct Places(Option<Arc<List>>);

/// Tells the places, or why it cannot.
type List = dyn Fn() -> Result<Vec<WirePath>, String> + Send + Sync;

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Places").finish_non_exhaustive()
    }
}

impl Places {
    /// Those that are told when somebody asks for one.
    pub fn told_by(list: impl Fn() -> Result<Vec<WirePath>, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(list)))
    }

    /// All of them, each with this name in it; with none, as they are.
    pub(crate) fn each(&self, asked: &WirePath) -> Result<Vec<WirePath>, CopyError> {
        let name = name_in(asked)?;
        let places = self.0.as_ref().map_or_else(|| Ok(Vec::new()), |list| list());
        let places = places.map_err(|why| unavailable(&format!("{asked}: {why}")))?;
        if places.is_empty() {
            return Err(unavailable(&format!("{asked}: {NO_LIST}")));
        }
        Ok(places.iter().map(|place| joined(place, name)).collect())
    }

    /// What a client asks for, with `any:` replaced by places: for who may do all that the account of this process may.
    pub(crate) fn resolve<'a, 's, T: Transport>(
        &self,
        access: &Access,
        asking: Asking<'a, 's, T>,
        cancel: &Cancel,
    ) -> Result<Asking<'a, 's, T>, CopyError> {
        let asked = asking.paths();
        if !asked.iter().any(is_any) {
            return Ok(asking);
        }
        let look = Look { places: self, own: &Local::of(access.clone()), cancel };
        if let (Some(job), [asked]) = (asking.writes(), asked) {
            let (at, was_there) = look.to_write(asked, job)?;
            let note = Note::Placed { path: asked.clone(), at: at.clone(), was_there };
            Ok(asking.at(vec![at], Some(note)))
        } else {
            let at = asked.iter().map(|asked| if is_any(asked) { look.to_read(asked) } else { Ok(asked.clone()) });
            let at = at.collect::<Result<_, _>>()?;
            Ok(asking.at(at, None))
        }
    }
}

/// Whether a path leaves the place open.
pub(crate) fn is_any(path: &WirePath) -> bool {
    Scheme::split(&path.0).0 == Scheme::Any
}

/// What stands behind `any:`: no name of it leads out of a place.
fn name_in(asked: &WirePath) -> Result<&[u8], CopyError> {
    let (_, name) = Scheme::split(&asked.0);
    if name.split(|&byte| byte == b'/').any(|part| part == b"..") {
        return Err(unavailable(&format!("{asked}: a name in a place has no .. in it")));
    }
    Ok(name.get(name.iter().take_while(|byte| **byte == b'/').count()..).unwrap_or_default())
}

/// A name must be there: what is in a place is found by it.
fn has_name(asked: &WirePath) -> Result<(), CopyError> {
    let name = name_in(asked)?;
    if name.split(|&byte| byte == b'/').all(|part| matches!(part, b"" | b".")) {
        return Err(unavailable(&format!("{asked}: write any:NAME: by its name it is found again, in whichever place it is")));
    }
    Ok(())
}

fn joined(place: &WirePath, name: &[u8]) -> WirePath {
    let between: &[u8] = if name.is_empty() || place.0.ends_with(b"/") || place.0.ends_with(b":") { b"" } else { b"/" };
    WirePath([&place.0, between, name].concat())
}

/// Looks into places.
struct Look<'a> {
    places: &'a Places,
    /// The directories of who asks.
    own: &'a Local,
    cancel: &'a Cancel,
}

/// What was seen of a name.
#[derive(Default)]
struct Seen {
    /// The name in each place, and what that has of it.
    places: Vec<(WirePath, Has)>,
    /// Why others cannot be used.
    unusable: Vec<CopyError>,
}

/// What a place has of a name.
enum Has {
    /// It.
    All,
    /// What this job has left when it was interrupted.
    Part,
    /// Nothing; so much room, where that was asked.
    Nothing(Option<Space>),
}

impl Look<'_> {
    /// Where a job is to store a name, and whether it is there already.
    fn to_write(&self, asked: &WirePath, job: &[u8; 32]) -> Result<(WirePath, bool), CopyError> {
        has_name(asked)?;
        let Seen { places, unusable } = self.all(asked, Some(job))?;
        if let Some(at) = the_one(asked, &places, |has| matches!(has, Has::All))? {
            return Ok((at, true));
        }
        if let Some(at) = the_one(asked, &places, |has| matches!(has, Has::Part))? {
            return Ok((at, true));
        }
        let mut most: Option<(&WirePath, Space)> = None;
        for (at, has) in &places {
            if let Has::Nothing(Some(space)) = has
                && most.is_none_or(|(_, most)| space.free > most.free)
            {
                most = Some((at, *space));
            }
        }
        most.map(|(at, _)| (at.clone(), false)).ok_or_else(|| nowhere(asked, &unusable))
    }

    /// Where a name is; where nothing has it, the first place, in which it will be missed. A pattern is of what is in a directory, and that is looked for.
    fn to_read(&self, asked: &WirePath) -> Result<WirePath, CopyError> {
        has_name(asked)?;
        let Seen { places, unusable } = self.all(asked, None)?;
        if let Some(at) = the_one(asked, &places, |has| matches!(has, Has::All))? {
            return Ok(at);
        }
        if let Some((directory, rest)) = before_pattern(asked) {
            return Ok(joined(&self.to_read(&directory)?, rest));
        }
        if is_pattern(&asked.0) {
            return Err(unavailable(&format!("{asked}: a pattern needs the directory that it is in: any:DIRECTORY/*")));
        }
        match places.into_iter().next() {
            Some((at, _)) if unusable.is_empty() => Ok(at),
            _ => Err(nowhere(asked, &unusable)),
        }
    }

    /// Looks into each place.
    fn all(&self, asked: &WirePath, job: Option<&[u8; 32]>) -> Result<Seen, CopyError> {
        let mut seen = Seen::default();
        for at in self.places.each(asked)? {
            match in_store_of(self.own, std::slice::from_ref(&at), LookAt { at: &at, job }, self.cancel) {
                Ok(has) => seen.places.push((at, has)),
                Err(CopyError::Cancelled) => return Err(CopyError::Cancelled),
                Err(error) => seen.unusable.push(error),
            }
        }
        Ok(seen)
    }
}

/// The place of which this holds; none where it holds of none.
fn the_one(asked: &WirePath, seen: &[(WirePath, Has)], holds: impl Fn(&Has) -> bool) -> Result<Option<WirePath>, CopyError> {
    let found: Vec<&WirePath> = seen.iter().filter(|(_, has)| holds(has)).map(|(at, _)| at).collect();
    match found[..] {
        [] => Ok(None),
        [at] => Ok(Some(at.clone())),
        _ => {
            let all: Vec<String> = found.iter().map(ToString::to_string).collect();
            Err(unavailable(&format!("{asked}: is in several places, {}: name the one that is meant", all.join(" and "))))
        }
    }
}

fn nowhere(asked: &WirePath, unusable: &[CopyError]) -> CopyError {
    let why: Vec<String> = unusable.iter().map(|error| chain(error)).collect();
    unavailable(&format!("{asked}: {}", why.join("; ")))
}

/// The directory before the first part that is a pattern, and the rest.
fn before_pattern(asked: &WirePath) -> Option<(WirePath, &[u8])> {
    let (_, name) = Scheme::split(&asked.0);
    let at = asked.0.len() - name.len();
    let first = name.split(|&byte| byte == b'/').take_while(|part| !is_pattern(part)).map(|part| part.len() + 1).sum::<usize>();
    let directory = asked.0.get(..at + first.checked_sub(1)?)?;
    let rest = name.get(first..).filter(|rest| !rest.is_empty())?;
    Some((WirePath(directory.to_vec()), rest))
}

struct LookAt<'a> {
    at: &'a WirePath,
    job: Option<&'a [u8; 32]>,
}

impl InStore for LookAt<'_> {
    type Done = Has;

    fn run<S: Store>(self, store: &S) -> Result<Has, CopyError> {
        let top = store.source(self.at).map_err(CopyError::Stopped)?;
        match store.stat(At::Top(&top)) {
            Ok(_) => return Ok(Has::All),
            Err(StoreError::Missing) => {}
            Err(error) => return Err(failed_at(self.at, error)),
        }
        let Some(job) = self.job else { return Ok(Has::Nothing(None)) };
        let place = store.destination(self.at, false).map_err(CopyError::Stopped)?;
        if store.has_stage(&place.root, &stage_id(job, place.rename.as_deref())) {
            return Ok(Has::Part);
        }
        store.space(&place.root).map(|space| Has::Nothing(Some(space))).map_err(|error| failed_at(self.at, error))
    }
}

const NO_LIST: &str = "there is no list of places on that machine: write one at the top of its ~/.config/haul/config.toml or /etc/haul/config.toml, like places = [\"/scratch/me\", \"ram:\"]";

#[cfg(unix)]
#[cfg(test)]
mod tests;
