//! Running a command on a host to its end, and passing on to it the signals that ask this process to end.

use std::ffi::OsString;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::enter::{EnterError, command};
use super::talk::Namespaces;

/// Why a command did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The host cannot be entered.
    #[error(transparent)]
    Enter(#[from] EnterError),
    /// There is no such program, or it cannot be started.
    #[error("cannot run {program}: {source}")]
    Run {
        /// As it was named.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// It runs, and nobody knows how it ends.
    #[error("cannot wait for the command: {0}")]
    Wait(#[source] io::Error),
}

/// The process that gets the signals sent to this one, and the one that is killed by a second one; 0 for none.
static CHILD: AtomicI32 = AtomicI32::new(0);
static KILL_AT_SECOND: AtomicI32 = AtomicI32::new(0);
static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// Runs a command in these namespaces to its end. `emulator` is killed, and the command with it, when a second signal asks this process to
/// end. Signals are handled for the whole process: this is for one that does nothing else.
pub fn run_to_end(
    namespaces: &Namespaces,
    words: &[OsString],
    environment: &[(String, String)],
    emulator: Option<i32>,
) -> Result<ExitStatus, PassError> {
    KILL_AT_SECOND.store(emulator.unwrap_or(0), Ordering::Relaxed);
    pass_signals_on();
    let mut child = spawn(namespaces, words, environment)?;
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    let status = child.wait().map_err(PassError::Wait);
    CHILD.store(0, Ordering::Relaxed);
    status
}

/// Whether somebody asked this process to end, while [`run_to_end`] had its signals.
pub fn was_interrupted() -> bool {
    SIGNALS.load(Ordering::Relaxed) > 0
}

fn spawn(namespaces: &Namespaces, words: &[OsString], environment: &[(String, String)]) -> Result<Child, PassError> {
    let mut command = command(namespaces, words)?;
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.spawn().map_err(|source| {
        let program = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        PassError::Run { program, source }
    })
}

fn pass_signals_on() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: `on_signal` touches atomics and makes async-signal-safe calls only; the struct is zeroed, which is a valid sigaction.
        // The handler is gone in the command, which becomes another program.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let child = CHILD.load(Ordering::Relaxed);
    let emulator = KILL_AT_SECOND.load(Ordering::Relaxed);
    let before = SIGNALS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the kernel gives a valid `info` to a handler set with SA_SIGINFO; `kill` is async-signal-safe, and a positive number
    // names a process that this one has started and not waited for yet. What the terminal sends, the command gets from there.
    unsafe {
        let from_terminal = !info.is_null() && (*info).si_code == SI_KERNEL;
        if child > 0 && !from_terminal {
            libc::kill(child, signal);
        }
        if emulator > 0 && before > 0 {
            libc::kill(emulator, libc::SIGKILL);
        }
    }
}

/// The kernel itself sent the signal, for instance for a key on the terminal.
const SI_KERNEL: libc::c_int = 0x80;
