//! The thread that looks after connections whose clients have not been admitted: all those of an endpoint, so that a stranger costs no thread.
//!
//! It does for each what a send thread does for one: timers, and what is to be sent. The receive thread answers most of what strangers say itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_proto::{ConnectionId, Train};
use haul_units::Time;

use super::link::Link;
use super::shared::Shared;
use crate::clock;

/// What is next for a connection.
enum Next {
    /// Its timer.
    Sleep(Time),
    /// Nothing: it is over.
    Gone,
    /// It has a send thread of its own.
    Leave,
}

/// Starts the thread of an endpoint that accepts.
pub(super) fn spawn(shared: Arc<Shared>) -> std::io::Result<()> {
    thread::Builder::new().name("haul-porter".to_owned()).spawn(move || run(&shared))?;
    Ok(())
}

fn run(shared: &Shared) {
    let mut train = Train::default();
    let mut timers = Timers::default();
    while let Some(mut due) = shared.calls.wait(timers.first()) {
        due.extend(timers.expired(clock::now()));
        for id in due {
            let Some(link) = shared.link(id) else {
                timers.set(id, None);
                continue;
            };
            match attend(&link, &mut train) {
                Next::Sleep(until) => timers.set(id, Some(until)),
                Next::Leave => timers.set(id, None),
                Next::Gone => {
                    timers.set(id, None);
                    shared.forget(id);
                }
            }
        }
    }
}

/// Does what a connection has to do.
fn attend(link: &Link, train: &mut Train) -> Next {
    let mut state = link.lock();
    loop {
        if link.has_thread() {
            return Next::Leave;
        }
        if state.drained {
            return Next::Gone;
        }
        state.asleep_until = None;
        let now = clock::now();
        if now >= state.connection.poll_timeout() {
            state.connection.handle_timeout(now);
        }
        let transmit = state.connection.poll_train(now, train);
        let woken = state.dispatch();
        if transmit.is_none() && woken.is_empty() && !state.drained {
            let until = state.timeout();
            state.asleep_until = Some(until);
            return Next::Sleep(until);
        }
        let from = transmit.as_ref().and_then(|transmit| state.answers.of(transmit.path));
        drop(state);
        link.wake(false, woken);
        if let Some(transmit) = transmit {
            link.send(&transmit, train.sealed(), from, Duration::ZERO);
        }
        state = link.lock();
    }
}

/// One timer a connection.
#[derive(Default)]
struct Timers {
    by_time: BTreeSet<(Time, ConnectionId)>,
    by_id: HashMap<ConnectionId, Time>,
}

impl Timers {
    fn set(&mut self, id: ConnectionId, until: Option<Time>) {
        let old = match until {
            Some(until) => self.by_id.insert(id, until),
            None => self.by_id.remove(&id),
        };
        if let Some(old) = old {
            self.by_time.remove(&(old, id));
        }
        if let Some(until) = until {
            self.by_time.insert((until, id));
        }
    }

    fn first(&self) -> Time {
        self.by_time.first().map_or(Time::NEVER, |&(time, _)| time)
    }

    fn expired(&self, now: Time) -> Vec<ConnectionId> {
        self.by_time.iter().take_while(|(time, _)| *time <= now).map(|&(_, id)| id).collect()
    }
}
