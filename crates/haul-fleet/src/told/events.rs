//! Events of a job for programs: as those of a copy, with `absent`, `up`, `down`, `listed`, `ordered`, and `members` in `progress` and `summary`.

use std::time::Duration;

use haul_copy::told::events as copy;
use haul_plan::Why;
use serde_json::{Value, json};

use super::look::{Look, Said};
use super::text::state;
use crate::observe::{JobReport, MemberReport, MemberView};

/// Null where none was measured.
pub(super) fn rtt_ms(rtt: Duration) -> Option<f64> {
    (!rtt.is_zero()).then_some(rtt.as_nanos() as f64 / 1e6)
}

/// Something that was told. `at_s`, here as in `progress`, is since the command began.
pub fn said<F>(at: Duration, said: &Said<F>) -> Value {
    let mut event = event(said);
    event["at_s"] = at.as_secs_f64().into();
    event
}

fn event<F>(said: &Said<F>) -> Value {
    match said {
        Said::Absent { member, why, .. } => json!({ "event": "absent", "member": member, "error": why }),
        Said::Up { member, rtt } => json!({ "event": "up", "member": member, "rtt_ms": rtt_ms(*rtt) }),
        Said::Down { member, why } => json!({ "event": "down", "member": member, "error": why }),
        Said::Listed { member, files, bytes } => {
            json!({ "event": "listed", "member": member, "files": files, "bytes": bytes.as_u64() })
        }
        Said::Ordered { member, path, range, why } => json!({
            "event": "ordered",
            "member": member,
            "path": path.to_string_lossy(),
            "offset": range.start,
            "bytes": range.end - range.start,
            "why": match why {
                Why::Next => "next",
                Why::Taken(_) => "taken",
                Why::Twice(_) => "twice",
            },
        }),
        Said::File { member, path, size } => {
            json!({ "event": "file", "member": member, "path": path.to_string_lossy(), "bytes": size.as_u64() })
        }
        Said::Problem(problem) => copy::problem(problem),
        Said::Note { member, note } => {
            let mut event = copy::note(note);
            if let Some(member) = member {
                event["member"] = json!(member);
            }
            event
        }
    }
}

/// How far it is.
pub fn progress(look: &Look) -> Value {
    let job = &look.job;
    json!({
        "event": "progress",
        "at_s": look.since_command.as_secs_f64(),
        "elapsed_s": job.elapsed.as_secs_f64(),
        "files_found": job.files,
        "bytes_found": job.bytes.as_u64(),
        "files_arrived": job.files_done,
        "bytes_arrived": job.bytes_done.saturating_sub(job.bytes_kept).as_u64(),
        "bytes_kept": job.bytes_kept.as_u64(),
        "bytes_wasted": job.wasted.as_u64(),
        "rate_bps": look.rate.as_bps(),
        "left_s": look.left().map(|left| left.as_secs_f64()),
        "members": job.members.iter().map(member).collect::<Vec<_>>(),
    })
}

fn member(view: &MemberView) -> Value {
    let path = &view.path;
    json!({
        "member": view.name,
        "state": state(view.state),
        "file": view.file.as_ref().map(|file| file.to_string_lossy()),
        "bytes": view.delivered.as_u64(),
        "bytes_outstanding": view.outstanding.as_u64(),
        "files": view.files,
        "rate_bps": view.rate.as_bps(),
        "rtt_ms": rtt_ms(Duration::from_micros(path.rtt_us)),
        "loss": path.sender.and_then(|sender| sender.told_loss()).map(haul_units::Ratio::as_f64),
        "busiest": path.server_demand.wanted,
    })
}

/// What each member did, for the summary.
pub fn members(report: &JobReport) -> Value {
    let member = |member: &MemberReport| {
        json!({
            "member": member.name,
            "bytes": member.delivered.as_u64(),
            "files": member.files,
            "busy_s": member.busy.as_secs_f64(),
            "idle_s": report.elapsed.saturating_sub(member.busy).as_secs_f64(),
            "down": member.down,
        })
    };
    report.members.iter().map(member).collect()
}
