//! Programs that copy files: from a disk in memory to itself, host a to host b, checked byte by byte.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_lab::{Side, now};
use haul_units::Bytes;
use rustix::process::Signal;

use super::disk::{DISK, PARTS, run, shell};
use super::setup::{Bench, Measured, words};
use super::{daemon, gridftp, ssh};
use crate::bench::duel::MeasureError;
use crate::bench::measurement::Usage;
use crate::bench::plan::{FileSet, Work};
use crate::bench::process::{Ended, Running, ScriptError};
use crate::bench::series::Series;
use crate::bench::tool::Tool;

/// Copies the cell's files by its tool.
pub fn measure(bench: &Bench<'_>) -> Result<Measured, MeasureError> {
    let Work::Files { files, at_most } = bench.cell.work else {
        return Err(MeasureError::Unexpected { who: "the bench", said: "no files to copy".to_owned() });
    };
    prepare(bench, files)?;
    let mut copier = match bench.cell.tool {
        Tool::Gridftp | Tool::GridftpBbr => gridftp::set_up(bench, files)?,
        Tool::HaulCpDaemon => daemon::set_up(bench, files)?,
        _ => ssh::set_up(bench, files)?,
    };
    if bench.cell.tool == Tool::HaulCpAgain {
        first_run(bench, files, at_most)?;
        copier.note += "; it had copied the same to the same host once before";
    }
    let settings = format!("{}; {}", words(&copier.client), copier.note);
    let begin = now();
    let carried = bench.site.delivered();
    let mut client = Running::start(copier.client).map_err(|error| MeasureError::Start { what: "the client", error })?;
    let (ended, series) = watch(bench, &mut client, at_most)?;
    let (time, gave_up) = (ended.at.since(begin), ended.status != 0 && now().since(begin) >= at_most);
    if ended.status != 0 && !gave_up {
        return Err(MeasureError::Ended { who: bench.cell.tool.name(), status: ended.status, said: client.last_words() });
    }
    let bytes = if gave_up { arrived(bench, carried) } else { files.total() };
    if !gave_up {
        helper(bench, "check", "arrived", files).map_err(MeasureError::Different)?;
    }
    let receiver = copier.server.end(Signal::TERM).map_or_else(|_| Usage::default(), |ended| ended.usage);
    let parts_s = if bench.cell.tool.is_haul() && !gave_up { parts(bench).unwrap_or_default() } else { BTreeMap::new() };
    Ok(Measured { series, time, bytes, gave_up, sender: ended.usage, receiver, settings, parts_s })
}

/// Copies once, so that the command knows the host the next time, and takes away what arrived.
fn first_run(bench: &Bench<'_>, files: FileSet, at_most: Duration) -> Result<(), MeasureError> {
    let who = "first run";
    let mut client =
        Running::start(ssh::client(bench, files)).map_err(|error| MeasureError::Start { what: "the client", error })?;
    let (ended, _) = watch(bench, &mut client, at_most)?;
    if ended.status != 0 {
        return Err(MeasureError::Ended { who, status: ended.status, said: client.last_words() });
    }
    let script = format!("rm -r {DISK}/arrived; mkdir {DISK}/arrived");
    shell(bench, &script).map_err(|why| MeasureError::Script { who, why })
}

/// Mounts the disk and makes the files.
fn prepare(bench: &Bench<'_>, files: FileSet) -> Result<(), MeasureError> {
    // Source, copy, a copy's temporary files, and the blocks that small files do not fill.
    let room = files.total().0 * 3 + u64::from(files.count) * 16_384 + (64 << 20);
    let script = format!(
        "mkdir -p {DISK} && mount -t tmpfs -o size={room},nr_inodes={} bench {DISK} && mkdir {DISK}/source {DISK}/arrived",
        u64::from(files.count) * 4 + 1000
    );
    shell(bench, &script).map_err(|why| MeasureError::Script { who: "mount", why })?;
    helper(bench, "make", "source", files).map_err(|why| MeasureError::Script { who: "haul lab files", why })
}

/// Makes or checks files, where the disk can be seen.
fn helper(bench: &Bench<'_>, what: &str, place: &str, files: FileSet) -> Result<(), ScriptError> {
    let mut command = bench.site.command(Side::B, bench.programs.haul().as_os_str());
    let (count, size, seed) = (files.count.to_string(), files.size.0.to_string(), (bench.cell.turn + 1).to_string());
    command.args(["lab", "files", what, &format!("{DISK}/{place}"), "--count", &count, "--size", &size, "--seed", &seed]);
    run(command)
}

/// Waits for the end of the client or of its time, and looks at what the WAN delivers meanwhile.
fn watch(bench: &Bench<'_>, client: &mut Running, at_most: Duration) -> Result<(Ended, Series), MeasureError> {
    let failed = |error| MeasureError::Start { what: "the client", error };
    let (begin, mut series) = (now(), Series::default());
    let mut carried = bench.site.delivered();
    loop {
        let ended = client.wait_until(now() + GLANCE).map_err(failed)?;
        if let Some((before, after)) = carried.zip(bench.site.delivered()) {
            series.push(now().since(begin), after.saturating_sub(before));
            carried = Some(after);
        }
        if let Some(ended) = ended {
            return Ok((ended, series));
        }
        if !bench.observer.go_on() {
            return Err(MeasureError::Interrupted);
        }
        if now().since(begin) >= at_most {
            return Ok((client.end(Signal::TERM).map_err(failed)?, series));
        }
    }
}

/// Where the time went, as `haul cp` has written it.
fn parts(bench: &Bench<'_>) -> Option<BTreeMap<String, f64>> {
    let output = bench.site.command(Side::A, "cat".as_ref()).arg(PARTS).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// What has crossed the WAN since, headers and repetitions and all: the most that can have arrived.
fn arrived(bench: &Bench<'_>, since: Option<Bytes>) -> Bytes {
    let all = since.zip(bench.site.delivered()).map_or(Bytes::ZERO, |(before, after)| after.saturating_sub(before));
    all.min(bench.cell.work.bytes().unwrap_or(Bytes::ZERO))
}

/// Between two looks at the WAN.
const GLANCE: Duration = Duration::from_millis(100);
