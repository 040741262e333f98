//! The send thread of a connection.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul_proto::Train;
use haul_units::Time;

use super::carriers::{self, is_carried};
use super::held::Held;
use super::link::Link;
use super::shared::Shared;
use super::state::State;
use super::timers::sharpen_timers;
use crate::clock;

/// Starts the thread that sends what `link` has to send, until the connection is over.
pub(super) fn spawn(shared: Arc<Shared>, link: Arc<Link>) -> std::io::Result<()> {
    thread::Builder::new().name("haul-send".to_owned()).spawn(move || {
        sharpen_timers();
        drive(&link);
        link.stop_further_sockets();
        shared.forget(link.id);
    })?;
    Ok(())
}

fn drive(link: &Link) {
    let mut train = Train::default();
    let mut held = Held::default();
    let mut state = link.lock();
    while !state.drained {
        state.asleep_until = None;
        let now = clock::now();
        if held.next() <= now {
            state = try_again(link, state, &mut held, now);
            continue;
        }
        if now >= state.connection.poll_timeout() {
            state.connection.handle_timeout(now);
        }
        rule(&mut state, now);
        link.renew_credit(&mut state);
        let transmit = state.connection.poll_train(now, &mut train);
        let woken = state.dispatch();
        if transmit.is_none() && woken.is_empty() {
            state = sleep(link, state, held.next());
            continue;
        }
        let from = transmit.as_ref().and_then(|transmit| state.answers.of(transmit.path));
        drop(state);
        link.wake(false, woken);
        if let Some(transmit) = transmit {
            let sealed = train.sealed();
            let has_left = link.send(&transmit, sealed, from, carriers::PATIENCE);
            state = link.lock();
            // Another train of the path may wait already: as in a full queue, this one is lost.
            if !has_left && let Some(until) = held.hold(now, transmit, from, sealed) {
                state.connection.hold_path(transmit.path, until);
            }
            continue;
        }
        state = link.lock();
    }
}

/// Trains that their sockets had no room for.
fn try_again<'a>(link: &'a Link, state: MutexGuard<'a, State>, held: &mut Held, now: Time) -> MutexGuard<'a, State> {
    drop(state);
    let mut still = Vec::new();
    while let Some(train) = held.take_due(now) {
        if !link.send(&train.transmit, &train.bytes, train.from, carriers::PATIENCE) {
            let path = train.transmit.path;
            still.extend(held.hold_again(now, train).map(|until| (path, until)));
        }
    }
    let mut state = link.lock();
    for (path, until) in still {
        state.connection.hold_path(path, until);
    }
    state
}

/// A carrier rules what leaves over it; over UDP the controller of the configuration does.
fn rule(state: &mut State, now: Time) {
    let carried = is_carried(state.connection.remote());
    if carried == state.ruled_over.is_some() {
        return;
    }
    let choice = if let Some(choice) = state.ruled_over.take() {
        choice
    } else {
        state.ruled_over = Some(state.connection.controller());
        carriers::UNRULED
    };
    state.connection.set_patience(if carried { carriers::STANDSTILL } else { Duration::ZERO });
    state.connection.set_controller(now, choice);
}

/// Sleeps until the connection's timeout, until a train is tried again, or until somebody has something to send.
fn sleep<'a>(link: &'a Link, mut state: MutexGuard<'a, State>, again: Time) -> MutexGuard<'a, State> {
    if state.drained {
        return state;
    }
    let deadline = state.timeout().min(again);
    state.asleep_until = Some(deadline);
    if deadline == Time::NEVER {
        return link.alarm.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let left = deadline.since(clock::now());
    if left == Duration::ZERO {
        return state;
    }
    link.alarm.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
}
