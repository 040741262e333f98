//! Whose handshake a listener completes.
//!
//! Who has no authorised key hears nothing but TLS' refusal, inside the handshake: no application of ours has heard of it, and it has used no more than a handshake takes. Its
//! own haul can tell its user what that means. What a key that is in the file is refused for is told by [`super::admit`], after the handshake.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::{Admission, AdmittedBy, PeerTrust};
use tracing::{error, warn};

use super::AuthorizedKeys;
use crate::clock;
use crate::state::StateDir;

/// So often at most strangers come into the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// So many may come into it at once.
const LOG_BURST: u32 = 10;

/// Whose handshake is completed: that of keys in the file of `state`; without one, everybody's, also that of clients without a key.
pub fn may_handshake(state: Option<&StateDir>) -> PeerTrust {
    let Some(state) = state else { return PeerTrust::Anyone };
    let (path, log) = (state.authorized_keys(), Arc::new(Mutex::new(Sparse::new(clock::now()))));
    PeerTrust::Callback(Arc::new(move |key| {
        let key = key.fingerprint();
        let known = AuthorizedKeys::load(path.clone()).map(|keys| keys.find(key).is_some());
        if !matches!(known, Ok(true))
            && let Some(missed) = log.lock().unwrap_or_else(PoisonError::into_inner).next(clock::now())
        {
            match &known {
                Err(error) => error!(%error, remedy = error.remedy(), "turned away: the file of authorised keys cannot be used"),
                _ if missed > 0 => {
                    warn!(%key, others = missed, "turned away: this key is not authorised (`haul key authorize {key}` would let it in)");
                }
                _ => warn!(%key, "turned away: this key is not authorised (`haul key authorize {key}` would let it in)"),
            }
        }
        known.unwrap_or(false)
    }))
}

/// What clients may have before they are admitted: those of a listener that lets anyone in next to nothing. Listeners stay, and let clients return.
pub fn admission(anyone: bool) -> Admission {
    let by = if anyone { AdmittedBy::Application } else { AdmittedBy::Trust };
    Admission { by, lets_return: true, ..Admission::default() }
}

/// Lets few lines through, however many there are.
pub struct Sparse {
    allowance: u32,
    since: Instant,
    missed: u64,
}

impl Sparse {
    /// Nothing has been written.
    pub const fn new(now: Instant) -> Self {
        Self { allowance: LOG_BURST, since: now, missed: 0 }
    }

    /// Whether a line may be written now, and if so how many were not since the last one.
    pub fn next(&mut self, now: Instant) -> Option<u64> {
        let earned = now.saturating_duration_since(self.since).as_secs() / LOG_INTERVAL.as_secs();
        if earned > 0 {
            self.allowance = LOG_BURST.min(self.allowance.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)));
            self.since = now;
        }
        if self.allowance == 0 {
            self.missed += 1;
            return None;
        }
        self.allowance -= 1;
        Some(std::mem::take(&mut self.missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_strangers_does_not_fill_the_log() {
        let start = clock::now();
        let mut log = Sparse::new(start);
        assert_eq!((0..1000).filter(|_| log.next(start).is_some()).count(), 10);
        assert_eq!(log.next(start + Duration::from_secs(1)), Some(990));
        assert_eq!(log.next(start + Duration::from_secs(1)), None);
        assert_eq!((0..100).filter(|_| log.next(start + Duration::from_secs(100)).is_some()).count(), 10);
    }
}
