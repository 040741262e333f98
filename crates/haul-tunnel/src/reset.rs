//! TCP connections of which half must not look like all.

use std::time::Duration;

use socket2::SockRef;

/// Whether the connection is to be reset when it is closed: by this process, or by the system for a process that was killed. Otherwise that would be
/// an end, and what has come by then would look like all.
pub fn resets_when_dropped<'a>(tcp: impl Into<SockRef<'a>>, resets: bool) {
    // An error means that it is closed already.
    let _ = tcp.into().set_linger(resets.then_some(Duration::ZERO));
}
