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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Progress;

    /// What a peer has sent that says the most of everything.
    fn boast() -> (Finished, Waits) {
        let waits = Waits::MAX;
        let count = u64::MAX;
        let progress = Progress { files: count, bytes: count, kept_files: count, kept_bytes: count };
        let read_back = ReadBack { direct_files: count, uncached_files: count };
        let finished = Finished {
            progress,
            resumed: count,
            newer_files: count,
            discarded: count,
            read_back,
            directories: count,
            symlinks: count,
            hard_links: count,
            waits,
        };
        (finished, waits)
    }

    #[test]
    fn reports_of_a_peer_that_says_the_most_of_everything_can_be_added() {
        let (finished, waits) = boast();
        let mut told = report(&finished, waits, Options::default());
        (told.left_out, told.removed, told.changed_files, told.problem_count) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        let mut sum = told.clone();
        sum.add(&told);
        assert_eq!((sum.files, sum.bytes, sum.read_back), (u64::MAX, Bytes(u64::MAX), told.read_back));
        assert_eq!((sum.sender, sum.receiver), (waits, waits));
    }
}
