//! The clients of a daemon: who may come in, and what each one does.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haul::{Connection, PublicKey};
use haul_copy::{CLOSE_ABORTED, Purpose, ServerSession, refuse};
use haul_files::{Access, Asked, Cancel, CopyError, Event, Export, Observer, Report, limit_remembered};
use haul_peer::keys::{KeyWatch, Rights, Service};
use haul_peer::{Guests, RELAY_PROTOCOL, Refusal, RelayAsk, StateDir, chain, serve_apart};
use haul_perf::{Bounds, Told};
use haul_units::BitRate;
use tracing::{Span, error, info, info_span, warn};

use crate::audit::{self, Audit, Entry, Visit, Way};
use crate::clock;
use crate::lock_in::Open;
use crate::relay::{self, Relaying, Whom};
use crate::settings::Settings;

/// How long copies may take to save their state when the daemon ends.
const FAREWELL: Duration = Duration::from_secs(10);
/// A client that is there is heard at least every 5 s. One that has been silent for longer, while the same key's holder talks to the daemon on another connection, was killed.
const SILENCE: Duration = Duration::from_secs(6);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Directories and hard links that copies remember to their end may take a quarter as much again as connections: ten million for each GiB of it.
const NAMES_PART: u64 = 4;

/// All clients of one daemon.
pub struct Clients {
    exports: Mutex<Vec<Export>>,
    limit: Option<BitRate>,
    describe: Option<fn(&Told) -> String>,
    keys: KeyWatch,
    guests: Guests,
    audit: Arc<Audit>,
    relay: Option<Arc<Relaying>>,
    present: Mutex<Present>,
    left: Condvar,
}

#[derive(Default)]
struct Present {
    next: u64,
    copies: HashMap<u64, Copy>,
}

/// A client's session.
struct Copy {
    cancel: Cancel,
    /// Why it was cancelled.
    stopped: Option<String>,
    connection: Connection,
    key: Option<PublicKey>,
}

/// Being in the list of those who are there.
struct Presence {
    clients: Arc<Clients>,
    number: u64,
}

impl Presence {
    /// Why it was stopped, if it was.
    fn stopped(&self) -> Option<String> {
        self.clients.lock().copies.get_mut(&self.number).and_then(|copy| copy.stopped.take())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let gone = self.clients.lock().copies.remove(&self.number);
        // Perhaps the last handle, whose end takes the connection's lock.
        drop(gone);
        self.clients.left.notify_all();
    }
}

impl Present {
    /// Those who came before this one with its key.
    fn older_twins(&self, newcomer: u64) -> Vec<(u64, Connection)> {
        let Some(key) = self.copies.get(&newcomer).and_then(|copy| copy.key.as_ref()) else { return Vec::new() };
        let older = self.copies.iter().filter(|(number, copy)| **number < newcomer && copy.key.as_ref() == Some(key));
        older.map(|(number, copy)| (*number, copy.connection.clone())).collect()
    }
}

impl Copy {
    /// Has it end, for a reason.
    fn stop(&mut self, why: &str) {
        self.stopped.get_or_insert_with(|| why.to_owned());
        self.cancel.cancel();
    }
}

impl Clients {
    /// Nobody is there.
    pub fn new(
        settings: Settings,
        exports: Vec<Export>,
        state: StateDir,
        audit: Arc<Audit>,
        relay: Option<Arc<Relaying>>,
    ) -> Self {
        let Settings { limit, describe, guests, .. } = settings;
        let keys = KeyWatch::new(state, CLOSE_ABORTED);
        if let Some(budget) = guests.budget() {
            limit_remembered((budget.as_u64() / NAMES_PART) as usize);
        }
        let (exports, present, left) = (Mutex::new(exports), Mutex::default(), Condvar::new());
        Self { exports, limit, describe, keys, guests, audit, relay, present, left }
    }

    /// Hears what a client wants, in a thread of its own. It takes a place when it has said so, and is gone if it does not do so in time: the transport sees to that.
    pub fn welcome(self: &Arc<Self>, connection: Connection) {
        let (cancel, key) = (Cancel::new(), connection.peer_key());
        let number = {
            let mut present = self.lock();
            present.next += 1;
            let number = present.next;
            let copy = Copy { cancel: cancel.clone(), stopped: None, connection: connection.clone(), key };
            present.copies.insert(number, copy);
            number
        };
        // However its thread ends, or if there is none: neither does the client wait, nor the daemon for the client.
        let present = Presence { clients: Arc::clone(self), number };
        serve_apart(&connection.clone(), CLOSE_ABORTED, move || {
            let client = info_span!("client", number, address = %connection.remote_addr());
            let mut visit = Visit::begin(&present.clients.audit, number, &connection);
            client.in_scope(|| present.clients.serve(number, connection, &cancel, &mut visit));
            visit.ended(present.stopped());
        });
    }

    /// Exports these from now on; clients that are here keep what they have.
    pub fn export(&self, exports: Vec<Export>) {
        *self.exports.lock().unwrap_or_else(PoisonError::into_inner) = exports;
    }

    /// Has a client end, for a reason.
    fn stop(&self, number: u64, reason: &str) {
        if let Some(copy) = self.lock().copies.get_mut(&number) {
            copy.stop(reason);
        }
    }

    /// Stops all copies and waits for them.
    pub fn dismiss(&self) {
        let mut present = self.lock();
        present.copies.values_mut().for_each(|copy| copy.stop("the daemon ends"));
        let _ = self.left.wait_timeout_while(present, FAREWELL, |present| !present.copies.is_empty());
    }

    fn serve(self: &Arc<Self>, number: u64, connection: Connection, cancel: &Cancel, visit: &mut Visit) {
        let asks_to_relay = connection.protocol().is_some_and(|protocol| protocol == RELAY_PROTOCOL);
        if let Some(relay) = self.relay.as_ref().filter(|relay| asks_to_relay && relay.whom() == Whom::Anybody) {
            visit.wants(Service::Relay);
            let name = connection.peer_key().map_or_else(String::new, |key| key.fingerprint().to_string());
            return relayed(relay, &name, &connection, cancel, visit);
        }
        let clients = Arc::clone(self);
        // A copy that may not go on ends in a state that can be resumed.
        let (admitted, _stay) = match self.keys.admit_until(&connection, move |reason| clients.stop(number, reason)) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                visit.refused(refusal.error.clone());
                return if asks_to_relay { relay::refuse(&connection, &refusal) } else { refuse(connection, &refusal) };
            }
        };
        visit.is(&admitted.name);
        if asks_to_relay {
            visit.wants(Service::Relay);
            let refusal = admitted.refuses(Service::Relay).or_else(|| self.relay.is_none().then(no_relay));
            return match (&self.relay, refusal) {
                (Some(relay), None) => relayed(relay, &admitted.name, &connection, cancel, visit),
                (_, refusal) => {
                    let refusal = refusal.unwrap_or_else(no_relay);
                    visit.refused(refusal.error.clone());
                    relay::refuse(&connection, &refusal);
                }
            };
        }
        let exports = visible(&self.exports.lock().unwrap_or_else(PoisonError::into_inner), &admitted.rights);
        // From here on this thread, and those that it starts, do what the client asks for.
        if let Err(error) = below(&exports).lock_in() {
            warn!(%error, "not locked in");
        }
        let limit = [self.limit, admitted.rights.max_rate].into_iter().flatten().min();
        if connection.protocol().is_some_and(|protocol| protocol == haul_perf::PROTOCOL) {
            visit.wants(Service::Perf);
            return match admitted.refuses(Service::Perf) {
                Some(refusal) => {
                    visit.refused(refusal.error.clone());
                    let _ = haul_perf::refuse(&connection, &refusal);
                }
                None => self.measure(&admitted.name, limit, &connection, cancel, visit),
            };
        }
        visit.wants(Service::Copy);
        if let Some(refusal) = admitted.refuses(Service::Copy) {
            visit.refused(refusal.error.clone());
            return refuse(connection, &refusal);
        }
        let access = Access::Exports(exports);
        let name = admitted.name;
        let session = match ServerSession::accept(connection) {
            Ok(session) => session,
            Err(error) => {
                visit.refused(format!("it asked for nothing: {}", chain(&error)));
                return info!(client = name, %error, "left without asking for anything");
            }
        };
        let _place = match self.guests.admit(session.connection()) {
            Ok(place) => place,
            Err(refusal) => {
                warn!(client = name, "turned away: {refusal}");
                visit.refused(refusal.error.clone());
                return session.refuse(&refusal);
            }
        };
        info!(client = name, version = %session.opening.version, "connected");
        visit.admitted(&session.opening.version);
        if may_write(&session.opening.purpose) {
            self.part_from_the_dead(number);
        }
        let copies = session.opening.purpose != Purpose::Kept;
        let observer = Log::start(visit.entry(if copies { audit::Event::Copied } else { audit::Event::Kept }));
        let (result, farewell) = session.serve(&access, limit, &observer, cancel);
        match &result {
            Ok(report) if copies => log_report(&name, report),
            Ok(_) => info!(client = name, "asked what interrupted copies have kept"),
            Err(CopyError::Cancelled) => info!(client = name, "stopped"),
            Err(error) => error!(client = name, %error, "the copy failed"),
        }
        let stopped = self.lock().copies.get(&number).and_then(|copy| copy.stopped.clone());
        visit.write(observer.copied(&result, stopped));
        farewell.part(cancel);
    }

    /// A client that measures the path: it needs no root, only to be let in.
    fn measure(&self, name: &str, limit: Option<BitRate>, connection: &Connection, cancel: &Cancel, visit: &mut Visit) {
        let bounds = Bounds { describe: self.describe, ..Bounds::trusted(limit, 0..=0) };
        let mut place = None;
        let asked = |ask: &haul_perf::Ask| {
            place = Some(self.guests.admit(connection)?);
            info!(client = name, version = %ask.version, "measures");
            visit.admitted(&ask.version);
            Ok(())
        };
        let result = haul_perf::serve(connection, &bounds, cancel, asked);
        match &result {
            Ok(measured) => measured.totals.iter().for_each(|total| info!(client = name, "{total}")),
            Err(error) => info!(client = name, %error, "the measurement failed"),
        }
        match result {
            Err(error) if place.is_none() => visit.refused(chain(&error)),
            Err(error) => {
                visit.write(Entry { result: Some("failed"), ..visit.entry(audit::Event::Measured) }.because(chain(&error)));
            }
            Ok(measured) => {
                measured.totals.iter().for_each(|total| visit.write(visit.entry(audit::Event::Measured).measured(total)));
            }
        }
    }

    /// Ends older copies of the same client that was killed: it has come again, and they hold its destination.
    fn part_from_the_dead(self: &Arc<Self>, newcomer: u64) {
        let clients = Arc::clone(self);
        let span = Span::current();
        let started = thread::Builder::new().spawn(move || {
            for _ in 0..=SILENCE.as_millis() / LOOK.as_millis() {
                if clients.end_silent_twins(newcomer, &span) == 0 {
                    return;
                }
                thread::park_timeout(LOOK);
            }
        });
        if let Err(error) = started {
            warn!(%error, "no thread can be made to look for its older copies");
        }
    }

    /// Cancels copies of the newcomer's key that have been silent for too long. Returns how many others of its copies are still there.
    fn end_silent_twins(&self, newcomer: u64, span: &Span) -> usize {
        // Each connection has a lock of its own, under which it works: it is waited for without that which all clients need.
        let twins = self.lock().older_twins(newcomer);
        for (number, connection) in &twins {
            let silence = connection.stats().silence;
            if silence >= SILENCE {
                span.in_scope(|| {
                    info!(older = number, silent_s = silence.as_secs(), "its older copy is silent: taken for killed");
                });
                self.stop(*number, "it was silent, and the same key came again");
            }
        }
        twins.len()
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a client may find what it wants held by a copy of its own that was killed.
fn may_write(purpose: &Purpose) -> bool {
    match purpose {
        Purpose::Copy { .. } | Purpose::Kept | Purpose::Errands => true,
        Purpose::Status(_) | Purpose::Keep => false,
    }
}

/// A client that meets somebody here.
fn relayed(relay: &Relaying, name: &str, connection: &Connection, cancel: &Cancel, visit: &mut Visit) {
    let granted = |ask: &RelayAsk| {
        info!(client = name, version = %ask.version, "has a pair of the relay");
        visit.admitted(&ask.version);
    };
    match relay.serve(connection, cancel, granted) {
        Ok(bytes) => info!(client = name, bytes, "relayed"),
        Err(refusal) => {
            warn!(client = name, "turned away: {refusal}");
            visit.refused(refusal.error);
        }
    }
}

fn no_relay() -> Refusal {
    Refusal {
        error: "this daemon does not relay".into(),
        hint: Some("whoever runs it decides that: haul serve --relay keys".into()),
    }
}

/// The roots that a key sees, as it sees them. One that it does not see does not exist for it.
fn visible(exports: &[Export], rights: &Rights) -> Vec<Export> {
    let seen = exports.iter().filter(|export| rights.sees(&export.name));
    seen.map(|export| Export { writable: export.writable && !rights.read_only, ..export.clone() }).collect()
}

/// What has to be opened to serve these.
pub fn below(exports: &[Export]) -> Open {
    exports.iter().fold(
        Open::default(),
        |open, export| {
            if export.writable { open.writing(&export.path) } else { open.reading(&export.path) }
        },
    )
}

/// Puts a client's problems into the log; the engine's threads do not know whose they are, the span does. Keeps what the audit log says of a copy that ends early.
struct Log {
    span: Span,
    began: Instant,
    copy: Mutex<Entry>,
}

impl Log {
    fn start(copy: Entry) -> Self {
        Self { span: Span::current(), began: clock::now(), copy: Mutex::new(copy) }
    }

    /// The copy, and what became of it.
    fn copied(self, result: &Result<Report, CopyError>, stopped: Option<String>) -> Entry {
        let copy = self.copy.into_inner().unwrap_or_else(PoisonError::into_inner);
        let copy = copy.took(clock::now().saturating_duration_since(self.began));
        let failed = |result, why: String| Entry { result: Some(result), ..copy.clone().because(why) };
        match result {
            Ok(_) if copy.event == audit::Event::Kept => Entry { result: Some("done"), ..copy },
            Ok(report) => Entry {
                files: Some(report.files),
                bytes: Some(report.bytes.as_u64()),
                problems: (report.problem_count > 0).then_some(report.problem_count),
                result: Some(if report.problem_count > 0 { "partial" } else { "done" }),
                ..match report.problems.first() {
                    Some(problem) => copy.clone().because(problem.to_string()),
                    None => copy.clone(),
                }
            },
            Err(CopyError::Cancelled) => failed("stopped", stopped.unwrap_or_default()),
            Err(error) => failed("failed", chain(error)),
        }
    }
}

impl Observer for Log {
    fn event(&self, event: Event<'_>) {
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Problem(problem) => self.span.in_scope(|| warn!("{problem}")),
            Event::Asked(asked) => {
                let (way, paths) = match asked {
                    Asked::Write(path) => (Way::Received, std::slice::from_ref(path)),
                    Asked::Read(paths) => (Way::Sent, paths),
                };
                *copy = copy.clone().asked(way, paths.iter().map(|path| &*path.0));
            }
            Event::Arrived { files, bytes } => (copy.files, copy.bytes) = (Some(files), Some(bytes.as_u64())),
            _ => {}
        }
    }
}

fn log_report(client: &str, report: &Report) {
    let rate = BitRate::of(report.bytes, report.elapsed);
    info!(
        client,
        files = report.files,
        bytes = report.bytes.as_u64(),
        skipped = report.skipped_files,
        problems = report.problem_count,
        seconds = report.elapsed.as_secs_f64(),
        %rate,
        "copied"
    );
}

#[cfg(test)]
mod tests {
    use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};

    use super::*;

    #[test]
    fn older_twins_have_the_same_key_and_came_before() {
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let here = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (own, other) = (Identity::generate(), Identity::generate());
        let mut present = Present::default();
        let _clients: Vec<_> = [Some(&own), Some(&other), None, Some(&own), Some(&own), None]
            .into_iter()
            .zip(1..)
            .map(|(identity, number)| {
                let config = ClientConfig { identity: identity.cloned(), ..ClientConfig::new(PeerTrust::Anyone) };
                let client = here.connect(server.local_addr(), config).unwrap();
                let connection = server.accept().unwrap();
                let key = connection.peer_key();
                present.copies.insert(number, Copy { cancel: Cancel::new(), stopped: None, connection, key });
                client
            })
            .collect();
        let older = |newcomer| {
            let mut numbers: Vec<_> = present.older_twins(newcomer).into_iter().map(|(number, _)| number).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!([1, 2, 4, 5].map(older), [vec![], vec![], vec![1], vec![1, 4]]);
        assert!([6, 7].map(older).concat().is_empty(), "no key, and nobody");
    }

    #[test]
    fn who_only_asks_has_no_older_copy_of_its_own_ended() {
        let writing = [Purpose::Copy { telemetry: false, packs: false }, Purpose::Kept, Purpose::Errands];
        assert!(writing.iter().all(may_write));
        assert!(![Purpose::Status(None), Purpose::Keep].iter().any(may_write));
    }
}
