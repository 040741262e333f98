//! Windows.

use std::io;
use std::os::windows::io::AsHandle as _;
use std::process::ExitStatus;
use std::time::Duration;

use haul_tunnel::program::Local;

/// Has the console take colours as terminals elsewhere do; one that cannot gets none, see [`crate::terminal`].
pub fn prepare() {
    let _ = anstyle_query::windows::enable_ansi_colors();
}

/// It is called as its file is.
pub const fn call_this_haul() {}

/// A pipe says that to who writes to it, and to nobody else.
pub const fn is_stdout_gone(_patience: Duration) -> bool {
    false
}

/// Nobody is.
pub const fn is_root() -> bool {
    false
}

/// Standard input, if it is to be read, and standard output, without buffers of their own.
pub fn standard(reads: bool) -> io::Result<Local> {
    let input = if reads { Some(io::stdin().as_handle().try_clone_to_owned()?) } else { None };
    Ok(Local { input, output: io::stdout().as_handle().try_clone_to_owned()? })
}

/// The program's own.
pub fn status_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or(i32::from(u8::MAX))
}
