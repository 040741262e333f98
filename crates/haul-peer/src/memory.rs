//! What earlier copies learned about the way to a host: Careful Resume's cache (RFC 9959).
//!
//! A [`Cache`] of the user's: which host, which way, and three numbers. Both directions are kept here, for the far side of a copy through ssh forgets everything when it ends; it is told of what it needs, and told bounds hold
//! for what it is told.

use std::time::Duration;

use haul::{BitRate, Learned};
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::state::StateDir;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// To the host.
    To,
    /// From the host.
    From,
}

/// [`Learned`], as it is written down and told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SavedPath {
    /// Rate that arrived, bits per second.
    pub bandwidth_bps: u64,
    /// Smallest round-trip time, in microseconds.
    pub min_rtt_us: u64,
    /// Part of the packets that the path lost whatever the rate.
    #[serde(default)]
    pub base_loss: f64,
}

impl From<Learned> for SavedPath {
    fn from(learned: Learned) -> Self {
        Self {
            bandwidth_bps: learned.bandwidth.as_bps(),
            min_rtt_us: u64::try_from(learned.min_rtt.as_micros()).unwrap_or(u64::MAX),
            base_loss: learned.base_loss,
        }
    }
}

impl SavedPath {
    /// The numbers, if they can be true. They may come from a file that somebody has edited, or from a peer.
    pub fn learned(&self) -> Option<Learned> {
        let min_rtt = Duration::from_micros(self.min_rtt_us);
        let plausible = (MIN_BPS..=MAX_BPS).contains(&self.bandwidth_bps)
            && (MIN_RTT..=MAX_RTT).contains(&min_rtt)
            && (0.0..=1.0).contains(&self.base_loss);
        plausible.then(|| Learned { bandwidth: BitRate::from_bps(self.bandwidth_bps), min_rtt, base_loss: self.base_loss })
    }
}

const MIN_BPS: u64 = 100_000;
const MAX_BPS: u64 = 100_000_000_000;
const MIN_RTT: Duration = Duration::from_micros(10);
const MAX_RTT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    host: String,
    way: Way,
    path: SavedPath,
}

/// The file.
#[derive(Debug, Clone)]
pub struct Memory(Cache<Entry>);

impl Memory {
    /// The cache of a user, as of now.
    pub fn new(state: &StateDir, now: u64) -> Self {
        Self(Cache::new(state.paths(), now))
    }

    /// What is known of the way to or from a host.
    pub fn look_up(&self, host: &str, way: Way) -> Option<Learned> {
        self.0.entries().rev().find(|entry| entry.host == host && entry.way == way)?.path.learned()
    }

    /// Keeps what a copy has learned, in the place of what was known before.
    pub fn keep(&self, host: &str, way: Way, learned: Learned) {
        let path = SavedPath::from(learned);
        if path.learned().is_some() {
            self.0.keep(Entry { host: host.to_owned(), way, path }, |entry| entry.host == host && entry.way == way);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Dated, MOST};
    use crate::keys::table;
    use std::path::Path;

    const LEARNED: Learned = Learned { bandwidth: BitRate::gbps(1), min_rtt: Duration::from_millis(100), base_loss: 0.01 };
    const NOON: u64 = 1_800_000_000;

    fn memory(dir: &Path, now: u64) -> Memory {
        Memory::new(&StateDir::find(Some(dir)).unwrap(), now)
    }

    #[test]
    fn what_is_kept_is_found_until_it_is_a_day_old() {
        let dir = tempfile::tempdir().unwrap();
        let noon = memory(dir.path(), NOON);
        assert_eq!(noon.look_up("far", Way::To), None);
        noon.keep("far", Way::To, LEARNED);
        assert_eq!(noon.look_up("far", Way::To), Some(LEARNED));
        assert_eq!(noon.look_up("far", Way::From), None);
        assert_eq!(noon.look_up("near", Way::To), None);
        assert_eq!(memory(dir.path(), NOON + 86_399).look_up("far", Way::To), Some(LEARNED));
        assert_eq!(memory(dir.path(), NOON + 86_400).look_up("far", Way::To), None);
        assert_eq!(memory(dir.path(), NOON - 1).look_up("far", Way::To), None, "from the future");

        let slower = Learned { bandwidth: BitRate::mbps(10), ..LEARNED };
        noon.keep("far", Way::To, slower);
        assert_eq!(noon.look_up("far", Way::To), Some(slower));
    }

    #[test]
    fn it_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let noon = memory(dir.path(), NOON);
        (0..MOST + 3).for_each(|n| noon.keep(&format!("host{n}"), Way::From, LEARNED));
        assert_eq!(noon.0.entries().count(), MOST);
        assert_eq!(noon.look_up("host2", Way::From), None);
        assert_eq!(noon.look_up("host3", Way::From), Some(LEARNED));
    }

    #[test]
    fn nonsense_is_as_good_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let noon = memory(dir.path(), NOON);
        let line = |bps: u64, rtt: u64, loss: f64| {
            let path = SavedPath { bandwidth_bps: bps, min_rtt_us: rtt, base_loss: loss };
            serde_json::to_string(&Dated { at: NOON, entry: Entry { host: "far".into(), way: Way::To, path } }).unwrap()
        };
        for (bps, rtt, loss) in
            [(0, 1000, 0.0), (u64::MAX, 1000, 0.0), (1 << 30, 0, 0.0), (1 << 30, u64::MAX, 0.0), (1 << 30, 1000, 2.0)]
        {
            table::write(&noon.0.file, &["{\"host\":1}".to_owned(), "far".to_owned(), line(bps, rtt, loss)]).unwrap();
            assert_eq!(noon.look_up("far", Way::To), None, "{bps} {rtt} {loss}");
        }
        // No directory, no memory, no harm.
        let nowhere = memory(&dir.path().join("missing"), NOON);
        nowhere.keep("far", Way::To, LEARNED);
        assert_eq!(nowhere.look_up("far", Way::To), None);
    }
}
