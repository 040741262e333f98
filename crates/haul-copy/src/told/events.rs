//! Events for programs: one JSON object each; `haul cp --json` prints them, one a line.
//!
//! Every object has `event`: `start`, `resume`, `stalled` (nothing comes from the other side; `left_s` until it is given up), `heard_again`, `progress`, `file`, `problem`, `note`, `would` (in a dry run: `copy`, `replace`, `make` or `link` a `path`), `summary`. `file` in a `progress` event is the current file:
//! `name`, `size`, and `arrived`, which is null where it is not told (small files, an older version at the other end). Sizes are in bytes, rates in bits per second, times in
//! seconds, unless the name says otherwise. Paths that are not UTF-8 are shown with replacement characters.

use haul_files::{FileProblem, Note};
use haul_peer::Outage;
use haul_units::Bytes;
use serde_json::{Value, json};

use super::look::Look;
use crate::tally::ActiveFile;

/// A file did not get copied.
pub fn problem(problem: &FileProblem) -> Value {
    json!({
        "event": "problem",
        "path": problem.path.to_string(),
        "fault": format!("{:?}", problem.fault).to_lowercase(),
        "error": problem.why.to_string(),
    })
}

/// Something to know; nothing is wrong.
pub fn note(note: &Note) -> Value {
    json!({ "event": "note", "note": note.to_string() })
}

/// Nothing comes from the other side any more, or something again.
pub fn outage(said: Outage) -> Value {
    match said {
        Outage::Begun { silence, left } => {
            json!({ "event": "stalled", "silence_s": silence.as_secs_f64(), "left_s": left.as_secs_f64() })
        }
        Outage::Ended { lasted } => json!({ "event": "heard_again", "lasted_s": lasted.as_secs_f64() }),
    }
}

/// A file is in place.
pub fn file(file: &ActiveFile) -> Value {
    json!({ "event": "file", "path": file.path.to_string_lossy(), "bytes": file.size.as_u64() })
}

fn current(file: &ActiveFile) -> Value {
    json!({
        "name": file.path.to_string_lossy(),
        "arrived": file.arrived.map(Bytes::as_u64),
        "size": file.size.as_u64(),
    })
}

/// How far it is.
pub fn progress(look: &Look) -> Value {
    let sender = look.path.sender;
    json!({
        "event": "progress",
        "elapsed_s": look.elapsed.as_secs_f64(),
        "files_found": look.counts.found_files,
        "bytes_found": look.counts.found.as_u64(),
        "scan_complete": look.counts.complete,
        "files_arrived": look.counts.arrived_files,
        "bytes_arrived": look.counts.arrived.as_u64(),
        "files_kept": look.counts.kept_files,
        "bytes_kept": look.counts.kept.as_u64(),
        "rate_bps": look.rate.as_bps(),
        "left_s": look.left().map(|left| left.as_secs_f64()),
        "rtt_ms": (look.path.rtt_us > 0).then(|| look.path.rtt_us as f64 / 1000.0),
        "loss": sender.and_then(|sender| sender.told_loss()).map(haul_units::Ratio::as_f64),
        "silence_s": look.path.silence.as_secs_f64(),
        "file": look.active.as_ref().map(|(file, _)| current(file)),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_units::BitRate;

    use super::*;
    use crate::{Counts, PathReport, PathView};

    #[test]
    fn a_progress_event_tells_what_has_arrived() {
        let counts = Counts { found: Bytes(100), arrived: Bytes(40), kept: Bytes(10), complete: true, ..Counts::default() };
        let sender = PathReport { rtt_us: 1500, loss: 0.5, ..PathReport::default() };
        let path = PathView { rtt_us: 1500, sender: Some(sender), ..PathView::default() };
        let file = ActiveFile { path: "big".into(), size: Bytes(9), arrived: Some(Bytes(4)) };
        let (rate, elapsed, active) = (BitRate::from_bps(8), Duration::from_secs(2), Some((file, 0)));
        let look = Look { counts, path, rate, elapsed, active };
        let event = progress(&look);
        assert_eq!((event["bytes_arrived"].as_u64(), event["bytes_kept"].as_u64()), (Some(40), Some(10)));
        assert_eq!(event["file"], json!({ "name": "big", "arrived": 4, "size": 9 }));
        assert_eq!(
            (event["rtt_ms"].as_f64(), event["loss"].as_f64(), event["left_s"].as_f64()),
            (Some(1.5), Some(0.5), Some(50.0))
        );
    }
}
