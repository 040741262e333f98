//! Unix, and what of it is Linux's own.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt;

/// The congestion control of a connection.
pub fn congestion_of(stream: &TcpStream) -> Option<String> {
    sockopt::tcp_congestion(stream).ok()
}

/// Chooses it.
pub fn set_congestion(stream: &TcpStream, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(stream, name)?)
}

/// What `uname -a` says, but for the date.
pub fn name() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

/// Bytes that nobody guesses.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    if rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())? < bytes.len() {
        return Err(io::Error::other("the system has no randomness"));
    }
    Ok(())
}

/// Processor time of all threads so far: in the program, in the kernel.
pub fn processor_time() -> (Duration, Duration) {
    // SAFETY: all zero is a valid rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec.max(0) as u64, time.tv_usec.max(0) as u32 * 1000);
    (duration(usage.ru_utime), duration(usage.ru_stime))
}
