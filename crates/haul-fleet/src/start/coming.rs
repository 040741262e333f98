//! Servers that are still on their way, while a job has begun with those that are there.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use haul_peer::Tell;
use haul_units::{BitRate, Cancel};

use super::fleet::least;
use super::{Absent, StartError, StartSpec, start_bringing};
use crate::member::Members;

/// Those that are still to come.
#[derive(Debug, Default)]
pub struct Coming {
    /// Ends the wait for them.
    enough: Cancel,
    starting: Option<JoinHandle<Result<(), StartError>>>,
    absent: Arc<Mutex<Vec<String>>>,
}

impl Coming {
    /// Starts the servers, each to be asked for `limit` at most, and waits for the first of them; the others come as the job goes on. Nothing where nobody comes. `told` hears of
    /// each that does not, on a thread of its own.
    pub fn start(
        mut spec: StartSpec,
        limit: Option<BitRate>,
        tell: &Arc<dyn Tell>,
        cancel: &Cancel,
        told: impl Fn(Absent) + Send + Sync + 'static,
    ) -> Result<Option<(Members, Self)>, StartError> {
        for host in &mut spec.hosts {
            host.limit = least(host.limit, limit);
        }
        let (mut members, bring) = Members::to_come(spec.hosts.iter().map(|host| host.name.clone()).collect());
        let mut coming = Self::default();
        let stop = coming.enough.clone();
        let hook = cancel.on_cancel(move || stop.cancel());
        let (tell, enough, absent) = (Arc::clone(tell), coming.enough.clone(), Arc::clone(&coming.absent));
        coming.starting = Some(thread::spawn(move || {
            let _hook = hook;
            start_bringing(&spec, &tell, &enough, &bring, &|left_out: Absent| {
                absent.lock().unwrap_or_else(PoisonError::into_inner).push(left_out.name.clone());
                told(left_out);
            })
        }));
        if members.wait_for_one() {
            return Ok(Some((members, coming)));
        }
        coming.end()?;
        if cancel.is_cancelled() { Err(StartError::Interrupted) } else { Ok(None) }
    }

    /// Nobody is to come any more, and these have not.
    pub fn over(absent: Vec<String>) -> Self {
        Self { absent: Arc::new(Mutex::new(absent)), ..Self::default() }
    }

    /// Waits for nobody any more; who did not come.
    pub fn end(self) -> Result<Vec<String>, StartError> {
        self.enough.cancel();
        match self.starting.map(JoinHandle::join) {
            // Those that were still to come are not wanted.
            None | Some(Ok(Ok(()) | Err(StartError::Interrupted))) => {}
            Some(Ok(Err(error))) => return Err(error),
            Some(Err(panic)) => resume_unwind(panic),
        }
        Ok(std::mem::take(&mut *self.absent.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_come_to_a_fleet_that_is_up_is_known_at_once() {
        assert_eq!(Coming::over(vec!["far".to_owned()]).end().expect("nothing was started"), ["far"]);
    }
}
