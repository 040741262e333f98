//! A mask, an owner and a group.

use rustix::fs::Mode;

/// The user and the group that it acts as.
pub fn user() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// The mask of this process, read without changing it where /proc is there.
pub fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|value| u32::from_str_radix(value.trim(), 8).ok()).unwrap_or_else(|| {
        let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
        rustix::process::umask(mask);
        mask.as_raw_mode()
    })
}
