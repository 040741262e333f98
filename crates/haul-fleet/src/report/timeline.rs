//! Which member had which file when: a row for each, a box for each file.

use haul_plot::{Row, Stretch, Timeline};

use super::record::{JobRecord, MemberRecord, Span};

/// Of each member; more boxes than this are narrower than a pixel.
const MAX_BOXES: usize = 900;

pub(super) fn of(job: &JobRecord) -> Timeline {
    let title = format!("{}: files of each member over time", job.name);
    Timeline { title, seconds: job.seconds, rows: job.members.iter().map(|member| row(job, member)).collect() }
}

fn row(job: &JobRecord, member: &MemberRecord) -> Row {
    let until = member.down.as_ref().map(|down| (down.0, "gone".to_owned()));
    let end = until.as_ref().map_or(job.seconds, |(until, _)| *until);
    let at_once = member.spans.len().div_ceil(MAX_BOXES).max(1);
    Row { name: member.name.clone(), until, stretches: member.spans.chunks(at_once).map(|spans| stretch(spans, end)).collect() }
}

/// Files that make one box.
fn stretch(spans: &[Span], end: f64) -> Stretch {
    let from = spans.first().map_or(0.0, |span| span.from);
    let to = spans.iter().map(|span| span.to.unwrap_or(end)).fold(from, f64::max);
    let first = spans.first().map_or("", |span| &*span.path);
    let more = if spans.len() > 1 { format!(" and {} more", spans.len() - 1) } else { String::new() };
    Stretch { from, to, what: format!("{first}{more}: {from:.2} s to {to:.2} s") }
}
