//! Signals.

use std::fs;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::{RELOAD, REQUESTED, end};

/// Starts to watch for SIGINT, SIGTERM and SIGHUP; the last stays ignored where it is (`nohup`).
pub fn watch() {
    watch_for(false);
}

/// The same for a daemon: SIGHUP asks it to read its files again; see [`reload_requested`](super::reload_requested).
pub fn watch_daemon() {
    ask_to_end(&[SIGINT, SIGTERM], false);
    // Without it there is no reload, which nothing here can mend.
    let _ = flag::register(SIGHUP, Arc::clone(&RELOAD));
}

/// The same for a command that connects to somebody: until [`under_way`](super::under_way) is called, the first signal ends it within a second.
pub fn watch_connecting() {
    watch_for(true);
}

/// The same for what stands in the place of ssh: whoever has started it with SIGINT ignored (a backup that ends its remote shell itself) wants that to stay.
pub fn watch_as_shell() {
    let heard: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    ask_to_end(&heard, true);
}

/// Asks this program to end, as somebody else would.
pub fn ask() {
    // It may always signal itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
}

fn watch_for(connecting: bool) {
    if is_ignored(SIGHUP) {
        ask_to_end(&[SIGINT, SIGTERM], connecting);
    } else {
        ask_to_end(&[SIGINT, SIGTERM, SIGHUP], connecting);
    }
}

/// Has these signals ask for the end. Where a signal cannot be watched for, it ends the program as if nobody had asked.
fn ask_to_end(signals: &[i32], connecting: bool) {
    for &signal in signals {
        // In this order: the first signal passes the first of the two, for the flag is not set yet.
        let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&REQUESTED));
        let _ = flag::register(signal, Arc::clone(&REQUESTED));
    }
    let Ok(mut asked) = Signals::new(signals) else { return };
    thread::spawn(move || {
        if asked.forever().next().is_none() {
            return;
        }
        end(connecting);
    });
}

/// Whether a signal was ignored when this program was started: the mask `SigIgn` of proc_pid_status(5), whose lowest bit is signal 1.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
