//! A file has no mode here but what the directory that it is in gives it.

/// The user and the group that it acts as: numbers that nobody has.
pub const fn user() -> (u32, u32) {
    (u32::MAX, u32::MAX)
}

/// What is usual elsewhere, so that what comes from here can be read there.
pub const fn umask() -> u32 {
    0o022
}
