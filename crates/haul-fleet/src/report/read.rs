//! Reading logs.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use haul_units::push_printable;
use serde::Deserialize;

use super::error::ReportError;
use super::record::{ClientPoint, JobRecord, MemberPoint, MemberRecord, Span};
use crate::log::{member_file, number};

/// Version of the format that is read.
const VERSION: u64 = 1;
/// Longest line, in bytes: a path of 4 KiB with all of it escaped twice, and what is around it.
const MAX_LINE: u64 = 64 << 10;
/// Logs that are read from one directory.
const MAX_JOBS: usize = 1000;
/// Members of a job.
const MAX_MEMBERS: usize = 10_000;
/// Of each member so many spans are kept: a page with more shows no more.
const MAX_SPANS: usize = 200_000;
/// A day of seconds, and of a week every seventh.
const MAX_POINTS: usize = 100_000;
/// Problems that are named.
const MAX_PROBLEMS: usize = 100;
/// Longest text that is kept, in bytes.
const MAX_TEXT: usize = 4096;
/// No time is later: thirty years.
const MAX_SECONDS: f64 = 1e9;
/// No count is larger: an exabyte, a petabit a second.
const MAX_COUNT: f64 = 1e18;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    t: f64,
    event: String,
    version: u64,
    kind: String,
    about: Vec<String>,
    members: Vec<String>,
    unix_s: u64,
    name: String,
    path: String,
    why: String,
    from: f64,
    to: f64,
    files: f64,
    files_done: f64,
    bytes_done: f64,
    delivered: f64,
    rate_bps: f64,
    rtt_us: f64,
    cpu: Option<f64>,
    memory_bytes: Option<f64>,
}

pub(super) fn read(dir: &Path) -> Result<Vec<JobRecord>, ReportError> {
    if dir.join("client.jsonl").is_file() {
        return Ok(vec![job(dir)?]);
    }
    let entries = fs::read_dir(dir).map_err(|source| ReportError::Io { path: dir.to_owned(), source })?;
    let mut numbers: Vec<(u32, std::path::PathBuf)> =
        entries.flatten().filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path()))).collect();
    numbers.sort();
    let jobs: Vec<JobRecord> = numbers
        .iter()
        .filter(|(_, path)| path.join("client.jsonl").is_file())
        .take(MAX_JOBS)
        .map(|(_, path)| job(path))
        .collect::<Result<_, _>>()?;
    if jobs.is_empty() { Err(ReportError::NoLog { path: dir.to_owned() }) } else { Ok(jobs) }
}

fn job(dir: &Path) -> Result<JobRecord, ReportError> {
    let name = dir.file_name().map_or_else(|| "job".into(), |name| name.to_string_lossy().into_owned());
    let mut job = JobRecord { name: plain_name(&name), ..JobRecord::default() };
    let client = dir.join("client.jsonl");
    let mut version = VERSION;
    let mut members = 0;
    let bad = lines(&client, |raw| {
        job.seconds = job.seconds.max(raw.t);
        match raw.event.as_str() {
            "job" => {
                version = raw.version;
                (job.kind, job.unix_s) = (clean(&raw.kind), raw.unix_s);
                job.about = raw.about.iter().take(64).map(|text| clean(text)).collect();
                members = raw.members.len().min(MAX_MEMBERS);
            }
            "client" if job.points.len() < MAX_POINTS => job.points.push(ClientPoint {
                t: raw.t,
                files: raw.files,
                files_done: raw.files_done,
                bytes_done: raw.bytes_done,
                rate_bps: raw.rate_bps,
                cpu: raw.cpu.unwrap_or(0.0),
                memory_bytes: raw.memory_bytes.unwrap_or(0.0),
            }),
            "problem" => {
                job.problem_count += 1;
                if job.problems.len() < MAX_PROBLEMS {
                    job.problems.push((clean(&raw.path), clean(&raw.why)));
                }
            }
            "end" => job.is_complete = true,
            _ => {}
        }
    });
    job.bad_lines = bad.map_err(|source| ReportError::Io { path: client.clone(), source })?;
    if version != VERSION {
        return Err(ReportError::Version { path: client, version });
    }
    for at in 0..members {
        let path = dir.join(member_file(at));
        let (member, last, bad) = member(&path).map_err(|source| ReportError::Io { path, source })?;
        job.members.push(member);
        job.bad_lines += bad;
        if !job.is_complete {
            job.seconds = job.seconds.max(last);
        }
    }
    Ok(job)
}

fn member(path: &Path) -> io::Result<(MemberRecord, f64, u64)> {
    let mut member = MemberRecord::default();
    let mut last = 0.0f64;
    let bad = lines(path, |raw| {
        last = last.max(raw.t);
        match raw.event.as_str() {
            "member" => member.name = clean(&raw.name),
            "down" => member.down = Some((raw.t, clean(&raw.why))),
            "ordered" if member.spans.len() < MAX_SPANS => {
                let bytes = (raw.to - raw.from).max(0.0);
                member.spans.push(Span { path: clean(&raw.path), from: raw.t, to: None, bytes });
            }
            "delivered" => {
                let path = clean(&raw.path);
                // The latest order of that file: work is done nearly in the order in which it was given.
                if let Some(span) = member.spans.iter_mut().rev().take(4096).find(|span| span.to.is_none() && span.path == path) {
                    span.to = Some(raw.t);
                }
            }
            "sample" if member.points.len() < MAX_POINTS => member.points.push(MemberPoint {
                t: raw.t,
                delivered: raw.delivered,
                files: raw.files,
                rate_bps: raw.rate_bps,
                rtt_us: raw.rtt_us,
                cpu: raw.cpu,
                memory_bytes: raw.memory_bytes,
            }),
            _ => {}
        }
    })?;
    Ok((member, last, bad))
}

/// Each line that is one; gives how many are not.
fn lines(path: &Path, mut each: impl FnMut(Raw)) -> io::Result<u64> {
    let mut file = BufReader::new(File::open(path)?);
    let (mut line, mut bad, mut skipping) = (Vec::new(), 0, false);
    loop {
        line.clear();
        if file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(bad);
        }
        let is_whole = line.ends_with(b"\n");
        let raw = if is_whole && !skipping { serde_json::from_slice(&line).ok() } else { None };
        match raw {
            Some(raw) => each(bounded(raw)),
            None => bad += u64::from(!skipping),
        }
        skipping = !is_whole;
    }
}

fn bounded(raw: Raw) -> Raw {
    let count = |value: f64| value.clamp(0.0, MAX_COUNT);
    Raw {
        t: raw.t.clamp(0.0, MAX_SECONDS),
        from: count(raw.from),
        to: count(raw.to),
        files: count(raw.files),
        files_done: count(raw.files_done),
        bytes_done: count(raw.bytes_done),
        delivered: count(raw.delivered),
        rate_bps: count(raw.rate_bps),
        rtt_us: count(raw.rtt_us),
        cpu: raw.cpu.map(count),
        memory_bytes: raw.memory_bytes.map(count),
        ..raw
    }
}

fn clean(text: &str) -> String {
    let mut clean = String::new();
    if !push_printable(&mut clean, text.as_bytes(), MAX_TEXT) {
        clean.push_str("...");
    }
    clean
}

/// Becomes a part of the names of files.
fn plain_name(name: &str) -> String {
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(64).collect();
    if plain.is_empty() { "job".into() } else { plain }
}
