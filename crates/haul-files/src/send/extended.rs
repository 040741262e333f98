//! Extended attributes and ACLs of what is sent: read when it is announced, and said in front of its entry.

use haul_xattrs::{Attribute, Failed};

use super::Sender;
use super::source::{Origin, SourceFile};
use crate::locks::lock;
use crate::store::{At, Store, StoreError};
use crate::transport::Transport;
use haul_faults::{CopyError, Why, WirePath};

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// What a thing has; none where that is not asked for, or cannot be read: then it is a problem of the thing, which goes without.
    pub(super) fn extended(
        &self,
        at: At<'_, S>,
        display: impl FnOnce() -> WirePath,
    ) -> Result<Option<Vec<Attribute>>, CopyError> {
        let keep = self.job.options.keep;
        if !keep.any() || self.job.in_order {
            return Ok(None);
        }
        match self.dirs.store().extended(at, keep) {
            Ok(list) => Ok(Some(list)),
            Err(Failed { name, number }) => {
                self.problem(display(), Why::Attribute { name: WirePath(name), number }).map(|()| None)
            }
        }
    }

    /// As [`extended`](Self::extended), of a file that is announced.
    pub(super) fn extended_of(&self, file: &SourceFile) -> Result<Option<Vec<Attribute>>, CopyError> {
        let read = self.with(file, |at| Ok(self.extended(at, || self.display(file))));
        // One that is gone meanwhile is found out when it is read.
        read.ok().flatten().map_or(Ok(None), |extended| extended)
    }

    /// Does something with a file by its name; nothing where it is a stream without one.
    pub(super) fn with<R>(
        &self,
        file: &SourceFile,
        doing: impl FnOnce(At<'_, S>) -> Result<R, StoreError>,
    ) -> Result<Option<R>, StoreError> {
        if let Some(top) = file.link.and_then(|index| lock(&self.followed).get(index).cloned()) {
            return doing(At::Top(&*top)).map(Some);
        }
        match file.top.and_then(|index| self.job.tops.get(index)) {
            Some(Origin::Named(top)) => doing(top.at()).map(Some),
            Some(Origin::Stream(_)) => Ok(None),
            None => doing(At::In(&*self.dirs.open(file.dir)?, &file.entry.name.0)).map(Some),
        }
    }
}
