//! Windows tells less of TCP.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

/// The congestion control of a connection: not told.
pub const fn congestion_of(_stream: &TcpStream) -> Option<String> {
    None
}

/// Chooses it: it is the administrator's to choose (`netsh interface tcp set supplemental`).
pub fn set_congestion(_stream: &TcpStream, _name: &str) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a program cannot choose TCP's congestion control on Windows"))
}

/// The system, the machine's name and its processor.
pub fn name() -> String {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    format!("{} {} {}", variable("OS"), variable("COMPUTERNAME"), variable("PROCESSOR_ARCHITECTURE"))
}

/// Bytes that nobody guesses.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: the bytes are there; without a provider the flag says whose to take.
    let status = unsafe { BCryptGenRandom(std::ptr::null_mut(), bytes.as_mut_ptr(), length, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    if status == 0 { Ok(()) } else { Err(io::Error::other("the system has no randomness")) }
}

/// Processor time of all threads so far: in the program, in the kernel.
pub fn processor_time() -> (Duration, Duration) {
    let [mut began, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: all four outlive the call, and a process may ask for its own times.
    unsafe { GetProcessTimes(GetCurrentProcess(), &raw mut began, &raw mut ended, &raw mut kernel, &raw mut user) };
    // Counted in 100 ns.
    let duration = |time: FILETIME| {
        Duration::from_nanos((u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)).saturating_mul(100))
    };
    (duration(user), duration(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_and_time_come_from_the_system() {
        let (mut one, mut two) = ([0; 16], [0; 16]);
        random(&mut one).unwrap();
        random(&mut two).unwrap();
        assert_ne!(one, two);
        let sum = (0..20_000_000_u64).fold(0, |sum: u64, at| sum ^ at.wrapping_mul(sum | 1));
        assert!(processor_time().0 > Duration::ZERO, "{sum}");
        assert!(!name().trim().is_empty());
    }
}
