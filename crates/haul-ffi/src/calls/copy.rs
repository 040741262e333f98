//! Copies.

use std::ffi::{c_char, c_int, c_void};

use haul::{BitRate, ControllerChoice};
use haul_copy::PROTOCOL;
use haul_files::{Options, Verify};
use haul_peer::Connector;

use crate::failure::{Outcome, invalid};
use crate::pointers::Given;
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::{HaulCopyResult, Job, Plan, ProblemFn, TellFn, Watcher};
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
}

const RECURSIVE: u64 = 1;
const PRESERVE: u64 = 2;
const SKIP_SAME: u64 = 4;
const UPDATE: u64 = 8;
const READ_BACK: u64 = 16;
const NO_VERIFY: u64 = 32;
const NO_RESUME: u64 = 64;

fn copy_options(flags: u64) -> Outcome<Options> {
    let has = |flag| flags & flag != 0;
    if flags >> 7 != 0 || has(READ_BACK) && has(NO_VERIFY) {
        return Err(invalid(format!("{flags:#x} are no flags of a copy: see HAUL_COPY_* in haul.h")));
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
        ..Options::default()
    })
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
    let sources: Vec<_> = sources.iter().map(|&source| path(source).ok_or_else(missing)).collect::<Outcome<_>>()?;
    let destination = path(request.destination).ok_or_else(missing)?;
    let plan = Plan::new(&sources, &destination, copy_options(request.flags)?)?;

    let mut connector = Connector::new(PROTOCOL);
    connector.state = path(request.state);
    connector.ssh.identity = path(request.identity_file).into_iter().collect();
    if !request.controller.is_null() {
        // SAFETY: as above.
        let name = unsafe { pointers::text(request.controller, "a controller") }?;
        connector.transport.controller = name.parse::<ControllerChoice>().map_err(|error| invalid(error.to_string()))?;
    }
    let limit = (request.rate_limit_bps > 0).then(|| BitRate::from_bps(request.rate_limit_bps));
    connector.transport.rate_limit = limit;
    let watcher = Watcher::new(request.progress, request.problem, Given(request.context), connector.cancel.clone());
    Job::start(plan, connector, limit, watcher)
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
