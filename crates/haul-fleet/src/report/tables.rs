//! Tables of text.

use std::fmt::Write as _;

use haul_units::{BitRate, Bytes};

use super::record::{JobRecord, MemberRecord};

/// Longest name in a table.
const NAME: usize = 24;

pub(super) fn text(all: &[JobRecord]) -> String {
    let mut text = String::new();
    for job in all {
        let _ = writeln!(text, "{}", heading(job));
        let _ = writeln!(text, "{}\n", summary(job));
        write_rows(&mut text, &members(job));
        for (path, why) in &job.problems {
            let _ = writeln!(text, "problem: {path}: {why}");
        }
        text.push('\n');
    }
    if all.len() > 1 {
        text.push_str("rate against number of members\n\n");
        write_rows(&mut text, &jobs(all));
    }
    text
}

pub(super) fn heading(job: &JobRecord) -> String {
    format!("{}: {} {}", job.name, job.kind, job.about.join(" "))
}

pub(super) fn summary(job: &JobRecord) -> String {
    let files = job.points.last().map_or(0.0, |point| point.files_done);
    let end = if job.is_complete { "" } else { "; it did not come to its end" };
    let problems = match job.problem_count {
        0 => String::new(),
        1 => "; 1 problem".to_owned(),
        count => format!("; {count} problems"),
    };
    let (bytes, rate) = (bytes(job.delivered()), rate(job.rate_bps()));
    format!("{files} files, {bytes} in {:.1} s, {rate}, {} members{problems}{end}", job.seconds, job.members.len())
}

/// What each member did; idle is when it was up and had nothing to do, and "waited" the part of it at the end.
pub(super) fn members(job: &JobRecord) -> Vec<Vec<String>> {
    let header = ["member", "files", "bytes", "share", "rate", "busy s", "idle s", "waited s", "for", "rtt ms", "end"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let total = job.delivered().max(1.0);
    let last = job.last();
    for member in &job.members {
        let up = member.down.as_ref().map_or(job.seconds, |down| down.0);
        let busy = member.busy(up);
        let waited = last.and_then(MemberRecord::end).map_or(0.0, |end| (end - member.end().unwrap_or(0.0)).max(0.0));
        let waits = member.down.is_none() && waited >= 0.05;
        let of = last.filter(|last| waits && last.name != member.name).map_or("-", |last| last.name.as_str());
        let delivered = member.delivered();
        let mean = if busy > 0.0 { delivered * 8.0 / busy } else { 0.0 };
        rows.push(vec![
            shortened(&member.name),
            member.points.last().map_or(0.0, |point| point.files).to_string(),
            bytes(delivered),
            format!("{:.1} %", delivered / total * 100.0),
            rate(mean),
            format!("{busy:.1}"),
            format!("{:.1}", (up - busy).max(0.0)),
            if waits { format!("{waited:.1}") } else { "-".into() },
            shortened(of),
            member.points.last().map_or_else(|| "-".into(), |point| format!("{:.1}", point.rtt_us / 1e3)),
            member.down.as_ref().map_or_else(|| "done".into(), |(t, why)| format!("down at {t:.1} s: {why}")),
        ]);
    }
    rows
}

pub(super) fn jobs(all: &[JobRecord]) -> Vec<Vec<String>> {
    let mut rows = vec![["job", "kind", "members", "bytes", "seconds", "rate"].map(str::to_owned).to_vec()];
    for job in all {
        let row = [
            job.name.clone(),
            job.kind.clone(),
            job.working().to_string(),
            bytes(job.delivered()),
            format!("{:.1}", job.seconds),
            rate(job.rate_bps()),
        ];
        rows.push(row.to_vec());
    }
    rows
}

fn write_rows(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME { name.to_owned() } else { name.chars().take(NAME - 2).chain("..".chars()).collect() }
}

fn bytes(count: f64) -> String {
    Bytes(count as u64).to_string()
}

fn rate(bps: f64) -> String {
    BitRate::from_bps(bps as u64).to_string()
}
