//! The walk over a tree, without recursion.
//!
//! A directory is read to its end before the next one, and its subdirectories are put on a stack; so one is open for reading at a time, whatever the depth, and the width of a
//! directory costs no memory. What is left out is not looked into. What becomes of the rest its visitor decides: a sender's scan, or [`Walk`], for those who only want to hear of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul_names::Filter;

use crate::dirs::Dirs;
use crate::protocol::ROOT;
use crate::store::{At, FileKind, Metadata, Store, StoreError};
use haul_faults::{Fault, FileProblem, Why, WirePath};

/// A directory that is to be listed.
pub(crate) struct Pending<W> {
    pub(crate) id: u64,
    /// Its path below the target, if anybody looks at it.
    pub(crate) path: Vec<u8>,
    /// What it carries for those in it.
    pub(crate) way: W,
}

/// Decides what becomes of what a walk finds.
pub(crate) trait Visitor<S: Store> {
    /// What a directory carries.
    type Way;
    /// Why a walk ends before all is found.
    type End;

    /// Whether the walk is to go on.
    fn check(&self) -> Result<(), Self::End>;

    /// Whether anybody looks at paths below the target; else they are empty.
    fn looks_at_paths(&self) -> bool;

    /// Whether this is left out; if so, it is counted.
    fn leaves_out(&mut self, path: &[u8], is_directory: bool) -> bool;

    /// What is in a directory, by its name and its path; a directory goes onto the stack.
    fn child(
        &mut self,
        dir: &S::Dir,
        pending: &Pending<Self::Way>,
        named: (&[u8], Vec<u8>),
        there: &Metadata,
        stack: &mut Vec<Pending<Self::Way>>,
    ) -> Result<(), Self::End>;

    /// What is in a directory could not be looked at, or without a name the directory itself.
    fn fail(&self, parent: u64, name: &[u8], why: Why) -> Result<(), Self::End>;
}

/// Shows a visitor what is below a directory.
pub(crate) fn below<S: Store, V: Visitor<S>>(dirs: &Dirs<'_, S>, visitor: &mut V, top: Pending<V::Way>) -> Result<(), V::End> {
    let mut stack = vec![top];
    while let Some(pending) = stack.pop() {
        if let Err(error) = directory(dirs, visitor, &pending, &mut stack)? {
            visitor.fail(pending.id, b"", error.into())?;
        }
    }
    Ok(())
}

/// One directory; the inner error is its own.
fn directory<S: Store, V: Visitor<S>>(
    dirs: &Dirs<'_, S>,
    visitor: &mut V,
    pending: &Pending<V::Way>,
    stack: &mut Vec<Pending<V::Way>>,
) -> Result<Result<(), StoreError>, V::End> {
    let dir = match dirs.open(pending.id) {
        Ok(dir) => dir,
        Err(error) => return Ok(Err(error)),
    };
    let mut gone_on = Ok(());
    let listed = dirs.store().list(&dir, &mut |entry| {
        gone_on = visitor.check().and_then(|()| {
            let metadata = (entry.metadata)();
            let is_directory = metadata.as_ref().is_ok_and(|there| there.kind == FileKind::Directory);
            let path = if visitor.looks_at_paths() { joined(&pending.path, entry.name) } else { Vec::new() };
            if visitor.leaves_out(&path, is_directory) {
                return Ok(());
            }
            match metadata {
                Ok(there) => visitor.child(&dir, pending, (entry.name, path), &there, stack),
                Err(error) => visitor.fail(pending.id, entry.name, error.into()),
            }
        });
        if gone_on.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    gone_on.map(|()| listed)
}

/// The path below the target of a name in a directory.
fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let between: &[u8] = if dir.is_empty() { b"" } else { b"/" };
    [dir, between, name].concat()
}

/// Sources, and what of them is looked for. Links below them are told of and not followed.
pub struct Walk<'a, S: Store> {
    /// Where they are.
    pub store: &'a S,
    /// Each as it is spelled, and what it is called.
    pub sources: &'a [(WirePath, Vec<u8>)],
    /// Whether directories are looked into.
    pub recursive: bool,
    /// What is left out.
    pub filter: &'a Filter,
}

/// Something that was found.
#[derive(Debug)]
pub struct Item<'a> {
    /// The number of the directory that it is in; 0: none, it is one of the sources.
    pub parent: u64,
    /// Which of the sources it is, if it is one.
    pub source: Option<usize>,
    /// Its name.
    pub name: &'a [u8],
    /// What it is.
    pub metadata: Metadata,
    /// Of a symbolic link: what it says.
    pub target: Option<Vec<u8>>,
}

/// Hears what a walk finds.
pub trait Found {
    /// Takes a thing; its number, another one for each and above zero, or none where the walk is to end.
    fn item(&self, item: Item<'_>) -> Option<u64>;
    /// Something could not be looked at, or is nothing that is copied.
    fn problem(&self, problem: FileProblem);
    /// A name was left out.
    fn left_out(&self);
}

impl<S: Store> Walk<'_, S> {
    /// Tells of all that there is, depth first.
    pub fn tell(&self, found: &impl Found) {
        let dirs = Dirs::new(self.store);
        let mut teller = Teller { walk: self, dirs: &dirs, found };
        for (index, (spelled, name)) in self.sources.iter().enumerate() {
            if teller.source(index, spelled, name).is_err() {
                return;
            }
        }
    }
}

struct Teller<'a, S: Store, F> {
    walk: &'a Walk<'a, S>,
    dirs: &'a Dirs<'a, S>,
    found: &'a F,
}

/// Nobody wants to hear more.
struct Enough;

impl<S: Store, F: Found> Teller<'_, S, F> {
    fn source(&mut self, index: usize, spelled: &WirePath, name: &[u8]) -> Result<(), Enough> {
        let (walk, found) = (self.walk, self.found);
        let fail = |why: Why| {
            found.problem(FileProblem { path: spelled.clone(), fault: Fault::Source, why });
            Ok(())
        };
        let Ok(top) = walk.store.source(spelled) else { return fail(StoreError::Missing.into()) };
        let there = match walk.store.stat(At::Top(&top)) {
            Ok(there) => there,
            Err(error) => return fail(error.into()),
        };
        if self.leaves_out(name, there.kind == FileKind::Directory) {
            return Ok(());
        }
        let item = Item { parent: ROOT, source: Some(index), name, metadata: there, target: None };
        match there.kind {
            FileKind::File => found.item(item).map(drop).ok_or(Enough),
            FileKind::Directory if !walk.recursive => fail(Why::DirectoryWithoutRecursive),
            FileKind::Directory => match walk.store.directory(At::Top(&top), None) {
                Err(error) => fail(error.into()),
                Ok(dir) => {
                    let id = found.item(item).ok_or(Enough)?;
                    self.dirs.add_source(id, &spelled.0, Arc::new(top));
                    self.dirs.keep_open(id, dir);
                    below(self.dirs, self, Pending { id, path: name.to_vec(), way: () })
                }
            },
            FileKind::Symlink => fail(Why::OutsideRoot),
            FileKind::Special => fail(Why::Special),
        }
    }
}

impl<S: Store, F: Found> Visitor<S> for Teller<'_, S, F> {
    type Way = ();
    type End = Enough;

    fn check(&self) -> Result<(), Enough> {
        Ok(())
    }

    fn looks_at_paths(&self) -> bool {
        !self.walk.filter.is_empty()
    }

    fn leaves_out(&mut self, path: &[u8], is_directory: bool) -> bool {
        let out = self.walk.filter.leaves_out(path, is_directory);
        if out {
            self.found.left_out();
        }
        out
    }

    fn child(
        &mut self,
        dir: &S::Dir,
        pending: &Pending<()>,
        (name, path): (&[u8], Vec<u8>),
        there: &Metadata,
        stack: &mut Vec<Pending<()>>,
    ) -> Result<(), Enough> {
        let target = match there.kind {
            FileKind::Special => return self.fail(pending.id, name, Why::Special),
            FileKind::Symlink => match self.walk.store.read_link(dir, name) {
                Ok(target) => Some(target),
                Err(error) => return self.fail(pending.id, name, error.into()),
            },
            FileKind::File | FileKind::Directory => None,
        };
        let item = Item { parent: pending.id, source: None, name, metadata: *there, target };
        let id = self.found.item(item).ok_or(Enough)?;
        if there.kind == FileKind::Directory {
            self.dirs.add_seen(id, pending.id, name, there.identity);
            stack.push(Pending { id, path, way: () });
        }
        Ok(())
    }

    fn fail(&self, parent: u64, name: &[u8], why: Why) -> Result<(), Enough> {
        self.found.problem(FileProblem { path: WirePath(self.dirs.display(parent, name)), fault: Fault::Source, why });
        Ok(())
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
