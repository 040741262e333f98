//! Which store a path is in, on either side of a copy.
//!
//! `gfarm:/path` is in Gfarm, `ram:/path` in this user's directory in the memory of the machine, everything else in its directories: a file whose name begins so is written `./gfarm:`. Who logged in to
//! an account may name stores there; a client of exports or of one root has only these.

use std::path::Path;

use haul_files::store::{At, Place, Replica, Scheme, Space};
use haul_files::{
    Access, Asking, CopyError, Destination, Link, Observer, PullJob, PushJob, Report, SourceSpec, Stop, Store, StoreError,
    Transport, WirePath,
};
use haul_units::Cancel;

use crate::here::{self, Local, gfarm, unavailable};

/// Sends files of the store that the sources name.
pub(crate) fn push<T: Transport>(
    link: Link<T>,
    job: &PushJob,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    let sources = job.sources.iter().filter_map(|source| match source {
        SourceSpec::Path(path) => Some(path.as_path().into()),
        SourceSpec::Stdin(_) => None,
    });
    in_store(&sources.collect::<Vec<_>>(), Push { link, job, observer, cancel }, cancel)
}

struct Push<'a, T: Transport> {
    link: Link<T>,
    job: &'a PushJob,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
}

impl<T: Transport> InStore for Push<'_, T> {
    type Done = Report;

    fn run<S: Store>(self, store: &S) -> Result<Report, CopyError> {
        haul_files::push_from(self.link, store, self.job, self.observer, self.cancel)
    }
}

/// Fetches files into the store that the destination names.
pub(crate) fn pull<T: Transport>(
    link: Link<T>,
    job: &PullJob,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    let scheme = match &job.destination {
        Destination::Path(path) => one_scheme(&[path.as_path().into()])?,
        Destination::Stdout(_) => Scheme::Local,
    };
    match scheme {
        Scheme::Local => here::pull(link, job, observer, cancel),
        Scheme::Ram => haul_files::pull_into(link, &Local::ram_disk().map_err(CopyError::Stopped)?, job, observer, cancel),
        Scheme::Gfarm => haul_files::pull_into(link, &gfarm(cancel)?, job, observer, cancel),
        Scheme::Any => Err(not_here()),
    }
}

/// Answers a client's request, in the store that it names, if it may; `resolve` says which that is where an account's client leaves it open.
pub(crate) fn serve<T: Transport>(
    link: Link<T>,
    access: &Access,
    resolve: impl for<'a, 's> FnOnce(Asking<'a, 's, T>) -> Result<Asking<'a, 's, T>, CopyError>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    haul_files::serve_asked(link, observer, cancel, |asking| {
        let (asking, scheme) = match access {
            Access::Account { .. } => {
                let asking = resolve(asking)?;
                let scheme = one_scheme(asking.paths())?;
                (asking, scheme)
            }
            Access::Exports(_) | Access::Root(_) => (asking, Scheme::Local),
        };
        match scheme {
            Scheme::Local => asking.serve(&Local::of(access.clone())),
            Scheme::Ram => asking.serve(&Local::ram_disk().map_err(CopyError::Stopped)?),
            Scheme::Gfarm => asking.serve(&gfarm(cancel)?),
            Scheme::Any => Err(not_here()),
        }
    })
}

/// Something that is done in a store, whichever it is.
pub trait InStore {
    /// What comes of it.
    type Done;

    /// Does it.
    fn run<S: Store>(self, store: &S) -> Result<Self::Done, CopyError>;
}

/// Opens the store of this machine that all of these paths are in, and does something there.
pub fn in_store<W: InStore>(paths: &[WirePath], what: W, cancel: &Cancel) -> Result<W::Done, CopyError> {
    in_store_of(&Local::own(), paths, what, cancel)
}

/// As [`in_store`], for who has these directories.
pub(crate) fn in_store_of<W: InStore>(own: &Local, paths: &[WirePath], what: W, cancel: &Cancel) -> Result<W::Done, CopyError> {
    match one_scheme(paths)? {
        Scheme::Local => what.run(own),
        Scheme::Ram => what.run(&Local::ram_disk().map_err(CopyError::Stopped)?),
        Scheme::Gfarm => what.run(&gfarm(cancel)?),
        Scheme::Any => Err(not_here()),
    }
}

/// A place is chosen by the machine at the other end, of the list that it has.
fn not_here() -> CopyError {
    unavailable("any: is a place of another machine's choice: write HOST:any:NAME; a file here that is called so is ./any:NAME")
}

/// Whether there is a directory at a path of this machine, `ram:` or `gfarm:`, in which sources would keep their names.
pub fn is_directory(path: &Path, cancel: &Cancel) -> Result<bool, CopyError> {
    let spelled = [WirePath::from(path)];
    in_store(&spelled, IsDirectory(&spelled[0]), cancel)
}

struct IsDirectory<'a>(&'a WirePath);

impl InStore for IsDirectory<'_> {
    type Done = bool;

    fn run<S: Store>(self, store: &S) -> Result<bool, CopyError> {
        Ok(store.destination(self.0, false).map_err(CopyError::Stopped)?.rename.is_none())
    }
}

/// The room at a path of this machine, `ram:` or `gfarm:`; where nothing has the path yet, the room in the directory that it would be made in.
pub fn space(path: &Path, cancel: &Cancel) -> Result<Space, CopyError> {
    let spelled = [WirePath::from(path)];
    in_store(&spelled, SpaceAt(&spelled[0]), cancel)
}

struct SpaceAt<'a>(&'a WirePath);

impl InStore for SpaceAt<'_> {
    type Done = Space;

    fn run<S: Store>(self, store: &S) -> Result<Space, CopyError> {
        let Place { root, .. } = store.destination(self.0, false).map_err(CopyError::Stopped)?;
        store.space(&root).map_err(|error| failed_at(self.0, error))
    }
}

/// Which servers hold the content of a file that this machine reaches, and what each replica is good for; none for stores that know no servers.
pub fn locate(path: &Path, cancel: &Cancel) -> Result<Option<Vec<Replica>>, CopyError> {
    let spelled = [WirePath::from(path)];
    in_store(&spelled, Locate(&spelled[0]), cancel)
}

struct Locate<'a>(&'a WirePath);

impl InStore for Locate<'_> {
    type Done = Option<Vec<Replica>>;

    fn run<S: Store>(self, store: &S) -> Result<Option<Vec<Replica>>, CopyError> {
        let top = store.source(self.0).map_err(CopyError::Stopped)?;
        store.locate(At::Top(&top)).map_err(|error| failed_at(self.0, error))
    }
}

pub(crate) fn failed_at(spelled: &WirePath, error: StoreError) -> CopyError {
    CopyError::Stopped(Stop::Destination { path: spelled.clone(), why: error.into() })
}

/// The store that all of these paths are in.
fn one_scheme(paths: &[WirePath]) -> Result<Scheme, CopyError> {
    let mut schemes = paths.iter().map(|path| Scheme::split(&path.0).0);
    let first = schemes.next().unwrap_or(Scheme::Local);
    if schemes.all(|scheme| scheme == first) {
        Ok(first)
    } else {
        Err(unavailable("the sources of one copy must be in one store"))
    }
}

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;

    #[test]
    fn one_copy_is_of_one_store() {
        let paths = |spelled: &[&str]| spelled.iter().map(|path| WirePath((*path).into())).collect::<Vec<_>>();
        for (spelled, scheme) in [
            (&["a", "/gfarm:/b", "./ram:"][..], Scheme::Local),
            (&["gfarm:/a", "gfarm:b"], Scheme::Gfarm),
            (&["ram:/a"], Scheme::Ram),
            (&[], Scheme::Local),
        ] {
            assert_eq!(one_scheme(&paths(spelled)).expect("one store"), scheme, "{spelled:?}");
        }
        for spelled in [["gfarm:/a", "b"], ["ram:a", "gfarm:a"]] {
            assert!(one_scheme(&paths(&spelled)).is_err(), "{spelled:?}");
        }
    }

    #[test]
    fn room_is_told_of_what_is_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let cancel = Cancel::new();
        for place in [dir.path().to_owned(), dir.path().join("new")] {
            assert!(space(&place, &cancel).expect("room").free > Bytes::ZERO, "{}", place.display());
        }
        assert!(space(&dir.path().join("no/such"), &cancel).is_err());
        assert!(locate(dir.path(), &cancel).expect("a directory").is_none(), "no server but this one");
    }
}
