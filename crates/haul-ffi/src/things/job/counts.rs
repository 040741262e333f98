//! What C hears of copies.

use std::ffi::{c_char, c_int, c_void};

use haul_files::{Report, Verified};

/// `struct haul_copy_progress`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulCopyProgress {
    pub size: u64,
    pub files_found: u64,
    pub bytes_found: u64,
    pub files_arrived: u64,
    pub bytes_arrived: u64,
    pub files_kept: u64,
    pub bytes_kept: u64,
    pub problems: u64,
    pub complete: u64,
}

/// `struct haul_fleet_server`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulFleetServer {
    pub size: u64,
    pub name: *const c_char,
    pub state: u64,
    pub files: u64,
    pub bytes: u64,
    pub rate_bps: u64,
    pub rtt_us: u64,
}

/// Hears of a server of a fleet.
pub type ServerFn = unsafe extern "C" fn(context: *mut c_void, server: *const HaulFleetServer);
/// Hears of progress.
pub type TellFn = unsafe extern "C" fn(context: *mut c_void, progress: *const HaulCopyProgress) -> c_int;
/// Hears of a file that was not copied.
pub type ProblemFn = unsafe extern "C" fn(context: *mut c_void, message: *const c_char);

/// Hears of what a dry run would do.
pub type WouldFn = unsafe extern "C" fn(context: *mut c_void, what: c_int, path: *const c_char, bytes: u64);

/// `struct haul_copy_result`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulCopyResult {
    pub size: u64,
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    pub resumed_bytes: u64,
    pub skipped_files: u64,
    pub problems: u64,
    pub verified: u64,
    pub elapsed_us: u64,
    pub removed: u64,
}

impl From<&Report> for HaulCopyResult {
    fn from(report: &Report) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            files: report.files,
            directories: report.directories,
            links: report.symlinks + report.hard_links,
            bytes: report.bytes.as_u64(),
            resumed_bytes: report.resumed.as_u64(),
            skipped_files: report.skipped_files,
            problems: report.problem_count,
            verified: match report.verified {
                Some(Verified::ReadBack) => 2,
                Some(Verified::OnArrival) => 1,
                Some(Verified::No) | None => 0,
            },
            elapsed_us: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
            removed: report.removed,
        }
    }
}
