//! The entry points: client and server, sender and receiver.

use crate::cancel::Cancel;
use crate::error::CopyError;
use crate::job::{Access, PullJob, PushJob};
use crate::observe::{Observer, Report};
use crate::transport::{Link, Transport};

/// Sends files from here to the server at the other end of `link`.
pub fn push<T: Transport>(_link: Link<T>, _job: &PushJob, _observer: &dyn Observer, _cancel: &Cancel) -> Result<Report, CopyError> {
    Err(CopyError::Cancelled)
}

/// Fetches files from the server at the other end of `link`.
pub fn pull<T: Transport>(_link: Link<T>, _job: &PullJob, _observer: &dyn Observer, _cancel: &Cancel) -> Result<Report, CopyError> {
    Err(CopyError::Cancelled)
}

/// Answers one request of the client at the other end of `link`, a push or a pull.
pub fn serve<T: Transport>(_link: Link<T>, _access: &Access, _observer: &dyn Observer, _cancel: &Cancel) -> Result<Report, CopyError> {
    Err(CopyError::Cancelled)
}
