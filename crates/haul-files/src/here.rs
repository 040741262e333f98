//! Copies of directories of this machine: the entry points for those who need no other store.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::engine::{pull_to, push_from, serve_store, target};
use crate::job::{Access, Destination, PullJob, PushJob};
use crate::observe::Observer;
use crate::receive::Target;
use crate::report::Report;
use crate::store::Local;
use crate::transport::{Link, Transport};
use haul_faults::{CopyError, Stop};
use haul_units::Cancel;

/// Sends files from here to the server at the other end of `link`.
///
/// Blocks until all has arrived and is durable there. Problems with single files are in the report; an error means that the copy ended early.
pub fn push<T: Transport>(link: Link<T>, job: &PushJob, observer: &dyn Observer, cancel: &Cancel) -> Result<Report, CopyError> {
    push_from(link, &Local::own(), job, observer, cancel)
}

/// Fetches files from the server at the other end of `link`.
///
/// Blocks until all has arrived and is durable here. A destination that is a device or a named pipe is written like standard output.
pub fn pull<T: Transport>(link: Link<T>, job: &PullJob, observer: &dyn Observer, cancel: &Cancel) -> Result<Report, CopyError> {
    let store = Local::own();
    pull_to(link, &store, job, |path, many, id| local_target(&store, path, many, id), observer, cancel)
}

/// Answers one request of the client at the other end of `link`, a push or a pull.
///
/// The caller has decided who the client is; `access` is what that client may do.
pub fn serve<T: Transport>(
    link: Link<T>,
    access: &Access,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    serve_store(link, &Local::of(access.clone()), observer, cancel)
}

/// A destination of this machine: a device or a named pipe is a stream.
fn local_target(store: &Local, path: &Path, many: bool, job: &[u8; 32]) -> Result<Target<OwnedFd>, CopyError> {
    let Some(device) = special(path) else { return target(store, path, many, job) };
    let file = device
        .map_err(|error| CopyError::Stopped(Stop::Destination { path: path.into(), why: haul_faults::Why::from_io(&error) }))?;
    match Destination::stream(file) {
        Destination::Stdout(stream) => Ok(Target::Stream(stream)),
        Destination::Path(_) => target(store, path, many, job),
    }
}

/// A character device or named pipe, open for writing.
fn special(path: &Path) -> Option<std::io::Result<File>> {
    let kind = path.metadata().ok()?.file_type();
    (kind.is_char_device() || kind.is_fifo()).then(|| OpenOptions::new().write(true).open(path))
}
