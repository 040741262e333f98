//! Jobs: what is in one ends with it (`JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE`).

use std::io;
use std::mem::size_of;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command};
use std::ptr;
use std::sync::OnceLock;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectExtendedLimitInformation, SetInformationJobObject,
};

/// Ctrl-C at this program's console is not for that one.
pub(super) fn leave(command: &mut Command) {
    /// `CREATE_NEW_PROCESS_GROUP`
    const APART: u32 = 0x200;
    command.creation_flags(APART);
}

/// Starts a program that the system ends with this process. Where it has no job for that, it ends because nobody writes to it any more.
pub(super) fn spawn_tied(mut command: Command) -> io::Result<Child> {
    let child = command.spawn()?;
    if let Some(job) = job() {
        // SAFETY: both handles are open as long as their owners.
        unsafe { AssignProcessToJobObject(job.as_raw_handle(), child.as_raw_handle()) };
    }
    Ok(child)
}

/// The job of all; no other process has it open, for its handle is not inherited.
fn job() -> Option<&'static OwnedHandle> {
    static JOB: OnceLock<Option<OwnedHandle>> = OnceLock::new();
    JOB.get_or_init(new_job).as_ref()
}

fn new_job() -> Option<OwnedHandle> {
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let bytes = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32;
    // SAFETY: a job without attributes and without a name; what is new has no other owner, and the structure outlives the call.
    unsafe {
        let job = CreateJobObjectW(ptr::null(), ptr::null());
        if job.is_null() {
            return None;
        }
        let job = OwnedHandle::from_raw_handle(job);
        let is_set =
            SetInformationJobObject(job.as_raw_handle(), JobObjectExtendedLimitInformation, (&raw const limits).cast(), bytes);
        (is_set != 0).then_some(job)
    }
}
