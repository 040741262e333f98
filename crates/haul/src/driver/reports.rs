//! The connections whose reports a receive thread sends: those that it has heard of late.

use std::sync::{Arc, Weak};
use std::time::Duration;

use haul_proto::ConnectionId;
use haul_units::Time;

use super::link::Link;

/// So many connections at most: a send thread looks after the reports of the others.
const REPORTED: usize = 32;
/// Reports that are due within so much time may leave with one that is due: half of the longest time that they are apart.
const SOON: Duration = Duration::from_micros(2500);

/// Them, the one heard last at the end.
#[derive(Default)]
pub(super) struct Reports {
    heard: Vec<Entry>,
}

struct Entry {
    id: ConnectionId,
    link: Weak<Link>,
    /// When a report is due.
    due: Time,
    /// Nothing but time makes it due sooner.
    by_time: bool,
    /// It has been given something since it was last asked what it has to say.
    is_fed: bool,
}

/// A connection that has given way to another one: its reports are for its send thread now.
pub(super) struct Displaced {
    pub(super) link: Arc<Link>,
    /// It has been given something, and was not asked what it has to say.
    pub(super) is_fed: bool,
}

impl Reports {
    /// The connection of this number, if it is one of them and not over.
    pub(super) fn find(&self, id: ConnectionId) -> Option<Arc<Link>> {
        let link = self.heard.iter().rev().find(|entry| entry.id == id).and_then(|entry| entry.link.upgrade());
        link.filter(|link| !link.is_gone())
    }

    /// Something has come for a connection. Returns the one that gives way to it, the one that was heard the longest time ago, if it may have something to say.
    pub(super) fn on_fed(&mut self, link: &Arc<Link>) -> Option<Displaced> {
        if let Some(at) = self.heard.iter().rposition(|entry| entry.link.as_ptr() == Arc::as_ptr(link)) {
            self.heard[at].is_fed = true;
            self.heard[at..].rotate_left(1);
            return None;
        }
        let mut displaced = None;
        if self.heard.len() >= REPORTED {
            let Entry { link, due, is_fed, .. } = self.heard.remove(0);
            displaced = link.upgrade().filter(|_| is_fed || due != Time::NEVER).map(|link| Displaced { link, is_fed });
        }
        self.heard.push(Entry { id: link.id, link: Arc::downgrade(link), due: Time::NEVER, by_time: true, is_fed: true });
        displaced
    }

    /// A connection has been asked what it has to say.
    pub(super) fn on_asked(&mut self, link: &Arc<Link>, due: Time, by_time: bool) {
        if let Some(entry) = self.heard.iter_mut().rev().find(|entry| entry.link.as_ptr() == Arc::as_ptr(link)) {
            (entry.due, entry.by_time, entry.is_fed) = (due, by_time, false);
        }
    }

    /// When the next report is due.
    pub(super) fn due(&self) -> Time {
        self.heard.iter().map(|entry| entry.due).min().unwrap_or(Time::NEVER)
    }

    /// Whether nothing but time makes one due sooner.
    pub(super) fn are_by_time(&self) -> bool {
        self.heard.iter().all(|entry| entry.by_time)
    }

    /// Adds those that are to be asked what they have to say: all that have been given something, and where a report is due those too whose own is due soon.
    pub(super) fn choose(&mut self, now: Time, links: &mut Vec<Arc<Link>>) {
        let until = if self.due() <= now { now + SOON } else { Time::ZERO };
        let asked = |entry: &Entry| entry.is_fed || entry.due <= until;
        links.extend(self.heard.iter().filter(|entry| asked(entry)).filter_map(|entry| entry.link.upgrade()));
        // Who is gone has nothing to say.
        self.heard.retain(|entry| entry.link.strong_count() > 0);
    }
}
