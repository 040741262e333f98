//! The end of a copy that has arrived.

use crate::job::Options;
use crate::outcome::report;
use crate::protocol::{Finished, Message};
use crate::report::{Report, Waits};
use crate::session::Session;
use crate::transport::Transport;
use haul_faults::CopyError;

/// Tells the sender. All is in place: a connection that breaks before the sender hears of it changes nothing here.
pub(super) fn conclude<T: Transport>(
    session: &Session<'_, T>,
    finished: &Finished,
    sender: Waits,
    options: Options,
) -> Result<Report, CopyError> {
    session.progress(&finished.progress);
    session.send(&Message::Finished(finished.clone()))?;
    tracing::debug!("all is in place");
    Ok(report(finished, sender, options))
}
