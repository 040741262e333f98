//! Orders for what keeps one connection busy and is no copy: `haul pipe`, `haul rsh`, `haul proxy`, `haul perf`.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul::{BitRate, Connection};
use haul_control::{Controlled, Order, Status};

use crate::{clock, interrupt, output};

/// A command and its connection, once it has one.
pub struct Carried {
    command: &'static str,
    what: String,
    began: u64,
    /// Nobody should wonder why it is slow.
    tells: bool,
    /// Why what it sends is not held back, if it is not.
    rate_stays: Option<&'static str>,
    held: Mutex<Held>,
}

struct Held {
    connection: Option<Connection>,
    /// What this side sends at most.
    limit: Option<BitRate>,
    /// Somebody has said so while the command runs.
    is_told: bool,
    /// What the connections that are gone have carried.
    before: u64,
}

impl Carried {
    /// A command that was called with these words and begins with this limit; `tells`: it says on standard error what it was told.
    pub fn new(command: &'static str, words: &[OsString], limit: Option<BitRate>, tells: bool) -> Self {
        let what = in_a_line(words);
        let held = Mutex::new(Held { connection: None, limit, is_told: false, before: 0 });
        Self { command, what, began: clock::unix_seconds(), tells, rate_stays: None, held }
    }

    /// With a reason why its rate stays as it is, if there is one.
    pub fn whose_rate_stays(self, why: Option<&'static str>) -> Self {
        Self { rate_stays: why, ..self }
    }

    /// It takes orders as long as what is given back with it is there.
    pub fn taking_orders(self) -> (Arc<Self>, impl Sized + use<>) {
        let control = Arc::new(self);
        let taken: Arc<dyn Controlled> = Arc::<Self>::clone(&control);
        (control, super::take(taken))
    }

    /// It has this connection from now on.
    pub fn connected(&self, connection: &Connection) {
        let mut held = self.held();
        held.before += carried(held.connection.as_ref());
        if held.is_told {
            connection.set_rate_limit(held.limit);
        }
        held.connection = Some(connection.clone());
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a command is about, for a list.
pub fn in_a_line(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What is said of an order about the rate.
pub fn told(limit: Option<BitRate>) -> String {
    limit.map_or_else(|| "haul ctl: no limit".to_owned(), |limit| format!("haul ctl: limit {limit}"))
}

/// UDP payload both ways, or what takes its place.
fn carried(connection: Option<&Connection>) -> u64 {
    connection.map_or(0, |connection| {
        let stats = connection.stats();
        stats.acknowledged.as_u64() + stats.received.as_u64()
    })
}

impl Controlled for Carried {
    fn handle(&self, order: Order) -> Status {
        let mut held = self.held();
        let mut refused = None;
        match order {
            Order::Status => {}
            Order::Limit { .. } if self.rate_stays.is_some() => refused = self.rate_stays,
            Order::Limit { bps } => {
                (held.limit, held.is_told) = (bps.map(BitRate::from_bps), true);
                if let Some(connection) = &held.connection {
                    connection.set_rate_limit(held.limit);
                }
                if self.tells {
                    output::print_line(&told(held.limit));
                }
            }
            Order::Mode { .. } => refused = Some("its mode stays"),
            Order::Pause | Order::Resume => refused = Some("only copies wait: stop the program that it carries"),
            Order::Stop => interrupt::ask(),
        }
        Status {
            pid: std::process::id(),
            command: self.command.into(),
            what: self.what.as_str().into(),
            began: self.began,
            files: 0,
            bytes: held.before + carried(held.connection.as_ref()),
            total: 0,
            limit_bps: held.limit.map(BitRate::as_bps),
            mode: None,
            paused: false,
            refused: refused.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_cannot_do_it_says_and_what_it_was_told_it_keeps() {
        let carried = Carried::new("pipe", &["far".into(), "cat".into()], None, false);
        for order in [Order::Pause, Order::Resume, Order::Mode { name: "modest".into() }] {
            assert!(carried.handle(order.clone()).refused.is_some(), "{order:?}");
        }
        let status = carried.handle(Order::Limit { bps: Some(5_000_000) });
        assert_eq!((status.limit_bps, status.refused), (Some(5_000_000), None));
        let status = carried.handle(Order::Status);
        assert_eq!((status.command.as_str(), status.what.as_str(), status.limit_bps), ("pipe", "far cat", Some(5_000_000)));
        let perf = Carried::new("perf", &["far".into()], None, false).whose_rate_stays(Some("the other side sends"));
        let status = perf.handle(Order::Limit { bps: Some(5_000_000) });
        assert_eq!((status.limit_bps, status.refused), (None, Some("the other side sends".into())));
    }
}
