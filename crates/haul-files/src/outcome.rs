//! The report of either side, from what the receiver counted.

use haul_units::Bytes;

use crate::job::{Options, Verify};
use crate::protocol::Finished;
use crate::report::{ReadBack, Report, Verified, Waits};

/// The report of either side from what the receiver counted.
pub(crate) fn report(finished: &Finished, sender: Waits, options: Options) -> Report {
    let progress = &finished.progress;
    Report {
        files: progress.files,
        directories: finished.directories,
        symlinks: finished.symlinks,
        hard_links: finished.hard_links,
        bytes: Bytes(progress.bytes),
        resumed: Bytes(finished.resumed),
        discarded: Bytes(finished.discarded),
        skipped_files: progress.kept_files,
        newer_files: finished.newer_files,
        skipped: Bytes(progress.kept_bytes.saturating_sub(finished.resumed)),
        verified: if options.dry_run { None } else { verified(finished, options.verify) },
        read_back: finished.read_back,
        sender,
        receiver: finished.waits,
        ..Report::default()
    }
}

/// How far the content that came to the destination was verified; none where none came.
fn verified(finished: &Finished, verify: Verify) -> Option<Verified> {
    let read_back = finished.read_back != ReadBack::default();
    let content = finished.progress.bytes > 0 || finished.resumed > 0 || read_back;
    content.then_some(match verify {
        Verify::Off => Verified::No,
        Verify::ReadBack if read_back => Verified::ReadBack,
        // A stream cannot be read back.
        Verify::Arrival | Verify::ReadBack => Verified::OnArrival,
    })
}
