//! What `quickstart` remembers of peers' paths, kept in a file while no law is loaded: over `off`, a newer haul and a restart of the machine.
//!
//! In the kernel it is a map from the peer's address to its path (`struct memory` of bpf/report.h), with times of a clock that begins with the machine. In the file times are those
//! of the calendar. What cannot be read is nothing remembered: a start without memory is always right.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::kernel::bpf;

/// A peer's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    peer: Ipv6Addr,
    /// Packets << 24 a microsecond.
    rate: u64,
    /// Since 1970, when it was learned.
    met_s: u64,
    base_us: u32,
    calm_packets: u32,
    calm_lost: u32,
}

/// Size of `struct peer`.
const KEY: usize = 16;
/// Size of `struct memory`.
const VALUE: usize = 32;

/// Writes down what a map holds; without anything the file stays as it is.
pub(crate) fn save(map: BorrowedFd<'_>, file: &Path) -> io::Result<()> {
    let now = Now::read();
    let mut all = Vec::new();
    let mut next = [0; KEY];
    let mut more = bpf::next_key(map, None, &mut next)?;
    while more && all.len() < MOST {
        let key = next;
        let mut value = [0; VALUE];
        // It may have been forgotten meanwhile.
        if bpf::lookup(map, &key, &mut value).is_ok() {
            all.push(Remembered::of_kernel(&key, &value, &now));
        }
        more = bpf::next_key(map, Some(&key), &mut next)?;
    }
    if all.is_empty() {
        return Ok(());
    }
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    let fresh = file.with_extension("new");
    let mut written = File::create(&fresh)?;
    written.write_all(&serde_json::to_vec(&all)?)?;
    written.sync_all()?;
    fs::rename(fresh, file)
}

/// Fills a map that is new.
pub(crate) fn restore(map: BorrowedFd<'_>, file: &Path) {
    let all: Vec<Remembered> = fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let now = Now::read();
    for one in all.iter().take(MOST) {
        // One that is too old for the clock of this start is forgotten.
        if let Some(value) = one.value(&now) {
            let _ = bpf::update(map, &one.peer.octets(), &value);
        }
    }
}

/// One moment by both clocks.
struct Now {
    calendar_s: u64,
    since_start: Duration,
}

impl Now {
    fn read() -> Self {
        let calendar = clock::calendar().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { calendar_s: calendar.as_secs(), since_start: clock::since_start() }
    }
}

impl Remembered {
    fn of_kernel(key: &[u8; KEY], value: &[u8; VALUE], now: &Now) -> Self {
        let long = |at: usize| value[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let word = |at: usize| value[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let age = now.since_start.saturating_sub(Duration::from_micros(long(8)));
        Self {
            peer: Ipv6Addr::from(*key),
            rate: long(0),
            met_s: now.calendar_s.saturating_sub(age.as_secs()),
            base_us: word(16),
            calm_packets: word(20),
            calm_lost: word(24),
        }
    }

    /// As the kernel has it. A calendar that was set back makes it fresh; what was learned before the machine's start is as old as that, for want of a time before it, and what is older than
    /// the longest that anything is remembered is none.
    fn value(&self, now: &Now) -> Option<[u8; VALUE]> {
        let age = Duration::from_secs(now.calendar_s.saturating_sub(self.met_s));
        let met = now.since_start.saturating_sub(age).as_micros() as u64;
        (age < LONGEST && self.rate > 0 && self.base_us > 0).then(|| {
            let mut value = [0; VALUE];
            value[..8].copy_from_slice(&self.rate.to_ne_bytes());
            value[8..16].copy_from_slice(&met.to_ne_bytes());
            value[16..20].copy_from_slice(&self.base_us.to_ne_bytes());
            value[20..24].copy_from_slice(&self.calm_packets.to_ne_bytes());
            value[24..28].copy_from_slice(&self.calm_lost.to_ne_bytes());
            value
        })
    }
}

/// As many as the map has.
const MOST: usize = 4096;
/// A day, the usual of `memory-s`: a path that was learned longer ago than that is begun anew after a restart.
const LONGEST: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(met_s: u64) -> Remembered {
        let peer = "::ffff:10.0.0.9".parse().expect("an address");
        Remembered { peer, rate: 77, met_s, base_us: 40_000, calm_packets: 100, calm_lost: 3 }
    }

    #[test]
    fn an_hour_is_an_hour_by_both_clocks() {
        let before = Now { calendar_s: 1_000_000, since_start: Duration::from_secs(9_000) };
        let one = remembered(1_000_000 - 3_600);
        let value = one.value(&before).expect("it is fresh");
        assert_eq!(value[8..16], (5_400 * 1_000_000_u64).to_ne_bytes());
        assert_eq!(Remembered::of_kernel(&one.peer.octets(), &value, &before), one);
    }

    #[test]
    fn what_is_older_than_the_machines_start_is_as_old_as_that() {
        let fresh = Now { calendar_s: 1_000_000, since_start: Duration::from_secs(60) };
        assert_eq!(remembered(1_000_000 - 3_600).value(&fresh).expect("an hour old")[8..16], [0; 8]);
        assert_eq!(remembered(1_000_000 - 90_000).value(&fresh), None);
        let set_back = Now { calendar_s: 10, since_start: Duration::from_secs(60) };
        assert_eq!(remembered(1_000_000).value(&set_back).expect("fresh")[8..16], 60_000_000_u64.to_ne_bytes());
    }
}
