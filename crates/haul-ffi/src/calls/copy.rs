//! Copies.

use std::ffi::{OsString, c_char, c_int, c_void};
use std::io;
use std::time::Duration;

use haul::{BitRate, ControllerChoice, Via};
use haul_copy::{Copier, Job as Copy, PROTOCOL, Plan, Standard};
use haul_files::{Delete, Destination, Filter, Options, Same, SourceSpec, Verify};
use haul_peer::{Carriage, Connector, DaemonHost, Host, chain};

use crate::failure::{Outcome, invalid};
use crate::pointers::Given;
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::{HaulCopyResult, Job, ProblemFn, TellFn, Watcher, WouldFn};
use crate::{border, pointers};

/// `struct haul_copy_request`.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulCopyRequest {
    pub size: u64,
    pub sources: *const *const c_char,
    pub source_count: usize,
    pub destination: *const c_char,
    pub flags: u64,
    pub rate_limit_bps: u64,
    pub controller: *const c_char,
    pub state: *const c_char,
    pub identity_file: *const c_char,
    pub progress: Option<TellFn>,
    pub problem: Option<ProblemFn>,
    pub context: *mut c_void,
    pub exclude: *const *const c_char,
    pub exclude_count: usize,
    pub max_deletes: u64,
    pub retries: u64,
    pub transport: *const c_char,
    pub via: *const c_char,
    pub would: Option<WouldFn>,
    pub relay: *const c_char,
}

const RECURSIVE: u64 = 1;
const PRESERVE: u64 = 2;
const SKIP_SAME: u64 = 4;
const UPDATE: u64 = 8;
const READ_BACK: u64 = 16;
const NO_VERIFY: u64 = 32;
const NO_RESUME: u64 = 64;
const DELETE: u64 = 128;
const CHECKSUM: u64 = 256;
const SIZE_ONLY: u64 = 512;
const COPY_LINKS: u64 = 1024;
const DRY_RUN: u64 = 2048;
/// What a fleet's jobs take.
pub const FLEET_FLAGS: u64 = 127;
const ALL_FLAGS: u64 = 4095;

/// Of flags among `known`.
pub fn copy_options(flags: u64, known: u64) -> Outcome<Options> {
    let has = |flag| flags & flag != 0;
    let both = |one, other| has(one) && has(other);
    let unknown = flags & !known;
    if unknown != 0 {
        return Err(invalid(format!("{unknown:#x} among the flags: not of what is asked for here, see HAUL_COPY_* in haul.h")));
    }
    let discords = [
        (both(READ_BACK, NO_VERIFY), "HAUL_COPY_READ_BACK and HAUL_COPY_NO_VERIFY exclude each other"),
        (both(CHECKSUM, SIZE_ONLY), "HAUL_COPY_CHECKSUM and HAUL_COPY_SIZE_ONLY exclude each other"),
        (has(DELETE) && !has(RECURSIVE), "HAUL_COPY_DELETE needs HAUL_COPY_RECURSIVE"),
    ];
    if let Some((_, why)) = discords.into_iter().find(|(is_so, _)| *is_so) {
        return Err(invalid(why));
    }
    let verify = match (has(READ_BACK), has(NO_VERIFY)) {
        (true, _) => Verify::ReadBack,
        (_, true) => Verify::Off,
        _ => Verify::Arrival,
    };
    Ok(Options {
        recursive: has(RECURSIVE),
        preserve: has(PRESERVE),
        update: has(UPDATE),
        skip_same: has(SKIP_SAME),
        verify,
        resume: !has(NO_RESUME),
        same: match (has(CHECKSUM), has(SIZE_ONLY)) {
            (true, _) => Same::Content,
            (_, true) => Same::Size,
            _ => Same::Time,
        },
        delete: has(DELETE).then_some(Delete { most: None }),
        follow: has(COPY_LINKS),
        dry_run: has(DRY_RUN),
        ..Options::default()
    })
}

/// What the operands mean, the destination last.
fn one_job(operands: &[OsString], options: Options, filter: &Filter) -> Outcome<(Host, Copy)> {
    if operands.iter().any(|operand| operand == "-") {
        return Err(invalid("- is no file: a program has its own streams"));
    }
    let plan = Plan::new(operands).map_err(|error| invalid(error.to_string()))?;
    // Nothing is read from or written to them: no operand names them.
    let standard = Standard { input: SourceSpec::stream(io::empty()), output: Destination::stream(io::sink()) };
    let mut jobs = plan.jobs(options, filter, &standard).into_iter();
    match (jobs.next(), jobs.next()) {
        (Some(job), None) => Ok(job),
        (None, _) => Err(invalid("nothing to copy")),
        (Some((first, _)), Some((other, _))) => {
            Err(invalid(format!("sources at {first} and at {other}: one job has one host, so start two")))
        }
    }
}

/// # Safety
/// The request's pointers are null, or what haul.h says of them.
unsafe fn start(request: &HaulCopyRequest) -> Outcome<Job> {
    if request.sources.is_null() || !(1..=MAX_SOURCES).contains(&request.source_count) {
        return Err(invalid(format!("{} sources: 1 to {MAX_SOURCES} are possible, in an array", request.source_count)));
    }
    // SAFETY: the caller's promise: an array of so many.
    let sources = unsafe { std::slice::from_raw_parts(request.sources, request.source_count) };
    let missing = || invalid("a null pointer where a source or the destination is wanted");
    // SAFETY: the caller's promise, here and below: null or a text.
    let path = |text| unsafe { pointers::path(text) };
    let mut operands: Vec<OsString> =
        sources.iter().map(|&source| path(source).map(Into::into).ok_or_else(missing)).collect::<Outcome<_>>()?;
    operands.push(path(request.destination).ok_or_else(missing)?.into());
    let mut options = copy_options(request.flags, ALL_FLAGS)?;
    if let Some(delete) = options.delete.as_mut() {
        delete.most = (request.max_deletes > 0).then_some(request.max_deletes);
    }
    // SAFETY: the caller's promise.
    let filter = unsafe { filter(request) }?;
    let (host, copy) = one_job(&operands, options, &filter)?;

    let mut connector = Connector::new(PROTOCOL);
    connector.state = path(request.state);
    connector.ssh.identity = path(request.identity_file).into_iter().collect();
    if !request.controller.is_null() {
        // SAFETY: as above.
        let name = unsafe { pointers::text(request.controller, "a controller") }?;
        connector.transport.controller = name.parse::<ControllerChoice>().map_err(|error| invalid(error.to_string()))?;
    }
    // SAFETY: the caller's promise.
    unsafe { way(request, &mut connector) }?;
    let limit = (request.rate_limit_bps > 0).then(|| BitRate::from_bps(request.rate_limit_bps));
    connector.transport.rate_limit = limit;
    let watcher = Watcher::new(request.progress, request.problem, Given(request.context), connector.cancel.clone());
    let retries = u32::try_from(request.retries).unwrap_or(u32::MAX);
    let copier = Copier { connector, limit, reconnect: Duration::ZERO, retries, packs: false, hear_ssh: false, traces: false };
    Job::start(host, copy, copier, watcher.of_dry_runs(request.would))
}

/// What is left out.
///
/// # Safety
/// As for [`start`].
unsafe fn filter(request: &HaulCopyRequest) -> Outcome<Filter> {
    if request.exclude_count == 0 {
        return Ok(Filter::default());
    }
    if request.exclude.is_null() || request.exclude_count > MAX_SOURCES {
        return Err(invalid(format!("{} patterns: no array of so many", request.exclude_count)));
    }
    // SAFETY: the caller's promise: an array of so many.
    let patterns = unsafe { std::slice::from_raw_parts(request.exclude, request.exclude_count) };
    // SAFETY: the caller's promise: null or a text.
    let text = |&pattern| unsafe { pointers::text(pattern, "a pattern") }.map(str::to_owned);
    Filter::new(patterns.iter().map(text).collect::<Outcome<Vec<_>>>()?).map_err(|error| invalid(chain(&error)))
}

/// What carries the data, by which interfaces it leaves, and by which relay both sides may meet.
///
/// # Safety
/// As for [`start`].
unsafe fn way(request: &HaulCopyRequest, connector: &mut Connector) -> Outcome<()> {
    if !request.transport.is_null() {
        // SAFETY: the caller's promise: a text.
        let name = unsafe { pointers::text(request.transport, "a transport") }?;
        connector.ssh.carriage = name.parse::<Carriage>().map_err(|error| invalid(format!("{name}: {error}")))?;
    }
    if !request.via.is_null() {
        if connector.ssh.carriage != Carriage::default() {
            return Err(invalid("via and transport: paths that leave by interfaces are UDP's"));
        }
        // SAFETY: the caller's promise: a text.
        let ways = unsafe { pointers::text(request.via, "a way") }?.split(',');
        connector.transport.via =
            ways.map(str::parse::<Via>).collect::<Result<_, _>>().map_err(|error| invalid(chain(&error)))?;
        connector.ssh.carriage = Carriage::Udp;
    }
    // SAFETY: the caller's promise: null or a text.
    connector.ssh.relay = unsafe { relay(request.relay) }?;
    if connector.ssh.relay.is_some() && !connector.transport.via.is_empty() {
        return Err(invalid("via and relay: paths that leave by interfaces meet by no relay"));
    }
    Ok(())
}

/// A relay that was named.
///
/// # Safety
/// It is null, or a text.
pub unsafe fn relay(named: *const c_char) -> Outcome<Option<DaemonHost>> {
    if named.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { pointers::text(named, "a relay") }?;
    DaemonHost::parse(name).map(Some).map_err(|error| invalid(format!("{name}: {error}")))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_copy_start(request: *const HaulCopyRequest) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null, or a structure that begins with its size, all of whose fields may be zero.
        let request = unsafe { pointers::read_sized(request) }?;
        // SAFETY: C's promise.
        let job = unsafe { start(&request) }?;
        table::insert(Entry::new(Object::Job(job)))
    })
}

fn with<T>(handle: i64, work: impl FnOnce(&Entry, &Job) -> Outcome<T>) -> Outcome<T> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Job(job) => work(&entry, job),
        _ => Err(wrong_kind(&entry, "a job")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_copy_wait(job: i64, result: *mut HaulCopyResult) -> c_int {
    border::done(|| {
        let copied = with(job, |entry, job| entry.gate.wait(entry.receiving(), |cx| job.poll_over(cx)))?;
        if result.is_null() {
            return Ok(());
        }
        // SAFETY: C's promise: a structure that begins with its size.
        unsafe { pointers::write_sized(&copied, result) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_cancel(job: i64) -> c_int {
    border::done(|| {
        with(job, |_, job| {
            job.cancel.cancel();
            Ok(())
        })
    })
}

const MAX_SOURCES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn job(operands: &[&str]) -> Outcome<(Host, Copy)> {
        one_job(&operands.iter().map(OsString::from).collect::<Vec<_>>(), Options::default(), &Filter::default())
    }

    #[test]
    fn flags_say_how_it_is_copied() {
        let all = copy_options(RECURSIVE | DELETE | CHECKSUM | COPY_LINKS | DRY_RUN, ALL_FLAGS).expect("flags");
        assert!(all.delete.is_some() && all.same == Same::Content && all.follow && all.dry_run);
        for wrong in [4096, DELETE, RECURSIVE | CHECKSUM | SIZE_ONLY, READ_BACK | NO_VERIFY] {
            assert!(copy_options(wrong, ALL_FLAGS).is_err(), "{wrong}");
        }
        assert!(copy_options(DRY_RUN, FLEET_FLAGS).is_err() && copy_options(FLEET_FLAGS & !NO_VERIFY, FLEET_FLAGS).is_ok());
    }

    #[test]
    fn one_host_each_way() {
        let Ok((host, Copy::Push(push))) = job(&["a", "b", "haul://far/pub/x"]) else { panic!("not a push") };
        assert_eq!((host.to_string(), push.sources.len()), ("haul://far:7700".into(), 2));
        assert!(matches!(job(&["haul://far//pub/x", "haul://far/y", "."]), Ok((_, Copy::Pull(pull))) if pull.sources.len() == 2));
        for wrong in [&["a", "b"][..], &["h:a", "g:b"], &["h:a", "g:b", "."], &["-", "h:a"], &["h:a", "-"], &["", "h:a"]] {
            assert!(job(wrong).is_err(), "{wrong:?}");
        }
    }
}
