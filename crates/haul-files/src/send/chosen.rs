//! The scan of a list of names: each is looked for by itself, and nothing is listed but the directories that are on it.
//!
//! The names come in an order in which a directory stands before what is in it, so one walk down and up visits each directory once.

use std::sync::Arc;

use haul_names::Chosen;

use super::scan::{Pending, Scan};
use crate::store::{At, FileKind, Store, StoreError};
use crate::transport::Transport;
use crate::walk::Visitor as _;
use haul_faults::{CopyError, Errno};

/// What is to become of a path that others may be below.
enum Opened {
    /// A directory of which what is on the list comes.
    Some(Pending),
    /// A directory that has come whole, by its id.
    All(u64),
    /// Nothing: it is no directory, or left out.
    Nothing,
}

impl<T: Transport, S: Store> Scan<'_, T, S> {
    /// Announces what is chosen below a source that has no name of its own.
    pub(super) fn chosen(&mut self, top: Pending, chosen: &Chosen) -> Result<(), CopyError> {
        let mut way: Vec<(Vec<u8>, Opened)> = vec![(Vec::new(), Opened::Some(top))];
        for path in chosen.paths() {
            self.sender.check()?;
            while way.last().is_some_and(|(above, _)| !is_below(&path, above)) {
                way.pop();
            }
            self.down(&mut way, &path)?;
        }
        Ok(())
    }

    /// From the last directory of `way`, which the path is below, down to it.
    fn down(&mut self, way: &mut Vec<(Vec<u8>, Opened)>, path: &[u8]) -> Result<(), CopyError> {
        if path.is_empty() && self.sender.job.options.recursive {
            if let Some((_, Opened::Some(top))) = way.pop() {
                way.push((Vec::new(), Opened::All(top.id)));
                self.walk(top)?;
            }
            return Ok(());
        }
        let from = way.last().and_then(|(above, opened)| match opened {
            Opened::Some(pending) => Some((pending.id, above)),
            Opened::All(id) => Some((*id, above)),
            Opened::Nothing => None,
        });
        if let Some((id, above)) = from
            && let Err(error) = self.look(id, below(path, above))
        {
            return self.fail(id, below(path, above), error.into());
        }
        while let Some((above, Opened::Some(pending))) = way.last() {
            let rest = below(path, above);
            let Some(name) = rest.split(|&byte| byte == b'/').next().filter(|name| !name.is_empty()) else { break };
            let is_last = name.len() == rest.len();
            let here = path.get(..path.len() - (rest.len() - name.len())).unwrap_or_default().to_vec();
            let next = self.step(pending, name, &here, is_last)?;
            way.push((here, next));
        }
        Ok(())
    }

    /// Whether there is such a path in a directory: for what is not there, no directory is made. Where links are followed, that is seen on the way.
    fn look(&self, id: u64, rest: &[u8]) -> Result<(), StoreError> {
        let (dirs, follow) = (&self.sender.dirs, self.sender.job.options.follow);
        let mut names: Vec<&[u8]> = rest.split(|&byte| byte == b'/').collect();
        let Some(last) = names.pop().filter(|_| !follow) else { return Ok(()) };
        let mut dir = dirs.open(id)?;
        for name in names {
            dir = Arc::new(dirs.store().directory(At::In(&*dir, name), None)?);
        }
        dirs.store().stat(At::In(&*dir, last)).map(drop)
    }

    /// One name.
    fn step(&mut self, pending: &Pending, name: &[u8], path: &[u8], is_last: bool) -> Result<Opened, CopyError> {
        let parent = pending.id;
        let found = self.sender.dirs.open(parent).and_then(|dir| {
            let there = self.sender.dirs.store().stat(At::In(&*dir, name))?;
            Ok((dir, there))
        });
        let (dir, there) = match found {
            Ok(found) => found,
            Err(error) => return self.fail(parent, name, error.into()).map(|()| Opened::Nothing),
        };
        if self.leaves_out(path, there.kind == FileKind::Directory) {
            return Ok(Opened::Nothing);
        }
        let leads_on = there.kind == FileKind::Directory || there.kind == FileKind::Symlink && self.sender.job.options.follow;
        if !is_last && !leads_on {
            return self.fail(parent, name, Errno::NOTDIR.into()).map(|()| Opened::Nothing);
        }
        let mut stack = Vec::new();
        self.child(&dir, pending, (name, path.to_vec()), &there, &mut stack)?;
        match stack.pop() {
            Some(whole) if is_last && self.sender.job.options.recursive => {
                let id = whole.id;
                self.walk(whole).map(|()| Opened::All(id))
            }
            Some(next) => Ok(Opened::Some(next)),
            None => Ok(Opened::Nothing),
        }
    }
}

/// What of a path is below one of the directories that lead to it.
fn below<'p>(path: &'p [u8], above: &[u8]) -> &'p [u8] {
    let rest = path.get(above.len()..).unwrap_or_default();
    rest.strip_prefix(b"/").unwrap_or(rest)
}

/// Whether a path is that of a directory, or of something in it.
fn is_below(path: &[u8], above: &[u8]) -> bool {
    above.is_empty() || path.strip_prefix(above).is_some_and(|rest| rest.first().is_none_or(|&byte| byte == b'/'))
}
