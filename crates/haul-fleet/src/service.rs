//! What a member does: it serves one copy, or, where its client keeps it, one for each guest whom that client lets come, until the client is gone.
//!
//! Several copies share nothing but this process: each has a connection of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haul::{Connection, Fingerprint};
use haul_copy::{CLOSE_ABORTED, Guest, MAX_WORK, Places, Purpose, ServerSession, Unwelcome, WorkReport};
use haul_files::{Access, Asked, Event, Observer};
use haul_peer::{FarSide, Refusal};
use haul_units::{BitRate, Bytes, Cancel, PeerText};

use crate::clock;

/// How long copies may take to save their state when the client that kept this member is gone.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often is looked whether they have.
const LOOK: Duration = Duration::from_millis(10);
/// Over which time the rate of a copy is measured when somebody asks.
const RATE_OVER: Duration = Duration::from_millis(200);
/// Copies at once: each is three threads and a socket's worth of memory.
const MAX_COPIES: usize = 64;
/// Of what was asked for, so many characters are told.
const MAX_TOLD: usize = 200;

/// Lets a guest come: it calls, or waits at a port to be called.
pub type Welcome<'a> = dyn Fn(Fingerprint, Option<u16>) -> Result<(), Unwelcome> + 'a;

/// What a member does. Clones are the same one.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    access: Access,
    places: Places,
    refusal: Option<Refusal>,
    /// Ends all copies.
    cancel: Cancel,
    kept: AtomicBool,
    copies: Mutex<Copies>,
}

#[derive(Default)]
struct Copies {
    next: u64,
    under_way: BTreeMap<u64, Arc<Work>>,
}

impl Service {
    /// Serves what this allows; nothing, where there is a refusal. Where a client leaves the place open (`any:`), it is one of these.
    pub fn new(access: Access, places: Places, refusal: Option<Refusal>) -> Self {
        let (cancel, kept, copies) = (Cancel::new(), AtomicBool::new(false), Mutex::default());
        Self(Arc::new(Inner { access, places, refusal, cancel, kept, copies }))
    }

    /// Why it serves nothing, where that is so.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// Serves one connection, and says whether there is nothing more to serve then: the one copy is over, or the client that kept this member is gone. A connection on which nothing was said lost a race.
    ///
    /// `welcome` lets a guest of the client come; without it, this connection is a guest's, who keeps nobody.
    pub fn serve(&self, connection: Connection, welcome: Option<&Welcome<'_>>, cancel: &Cancel) -> bool {
        let all = self.0.cancel.clone();
        let _hook = cancel.on_cancel(move || all.cancel());
        let session = {
            // Whoever wants the end is heard while nothing is asked for yet, too.
            let closes = connection.clone();
            let _hook = self.0.cancel.on_cancel(move || closes.close(CLOSE_ABORTED, "this member was told to end"));
            ServerSession::accept(connection)
        };
        let Ok(session) = session.map(|session| session.choosing(self.0.places.clone())) else { return false };
        if let Some(refusal) = &self.0.refusal {
            session.refuse(refusal);
            return !self.is_kept();
        }
        match welcome {
            Some(welcome) if session.opening.purpose == Purpose::Keep => {
                self.keep(session, welcome);
                true
            }
            _ if matches!(session.opening.purpose, Purpose::Status(_)) => {
                let (_, farewell) = session.tell_status(&self.0.access, self.work(), &self.0.cancel);
                farewell.part(&self.0.cancel);
                !self.is_kept()
            }
            _ => {
                self.copy(session);
                !self.is_kept()
            }
        }
    }

    /// Serves one connection of a far side, as [`serve`](Self::serve) does.
    pub fn serve_at(&self, far: &FarSide, connection: Connection, cancel: &Cancel) -> bool {
        let admit = |key, _port| {
            far.admit(key);
            Ok(())
        };
        let welcome: Option<&Welcome<'_>> = if far.is_of_client(&connection) { Some(&admit) } else { None };
        self.serve(connection, welcome, cancel)
    }

    fn is_kept(&self) -> bool {
        self.0.kept.load(Ordering::SeqCst)
    }

    fn keep(&self, session: ServerSession, welcome: &Welcome<'_>) {
        self.0.kept.store(true, Ordering::SeqCst);
        let mut invite = |guest: Guest| {
            let key = guest.key.parse().map_err(|_| Unwelcome::NoKey)?;
            welcome(key, guest.port)
        };
        session.keep(&mut invite, &self.0.cancel);
        // Nobody is left who could ask for more; what is under way ends in a state that can be resumed.
        self.0.cancel.cancel();
        let until = clock::now() + FAREWELL;
        while !self.copies().under_way.is_empty() && clock::now() < until {
            thread::park_timeout(LOOK);
        }
    }

    fn copy(&self, session: ServerSession) {
        let work = Arc::new(Work { connection: session.connection().clone(), since: clock::now(), asked: Mutex::default() });
        let Some(place) = self.place(&work) else {
            let error = format!("this member has {MAX_COPIES} copies under way already").as_str().into();
            return session.refuse(&Refusal { error, hint: Some("try again when some have ended".into()) });
        };
        let (result, farewell) = session.serve(&self.0.access, None, &*work, &self.0.cancel);
        if let Err(error) = result {
            tracing::debug!(%error, "the copy failed");
        }
        farewell.part(&self.0.cancel);
        drop(place);
    }

    fn place(&self, work: &Arc<Work>) -> Option<Place<'_>> {
        let mut copies = self.copies();
        if copies.under_way.len() == MAX_COPIES {
            return None;
        }
        copies.next += 1;
        let number = copies.next;
        copies.under_way.insert(number, work.clone());
        Some(Place { service: self, number })
    }

    /// What is done at present.
    fn work(&self) -> Vec<WorkReport> {
        let works: Vec<Arc<Work>> = self.copies().under_way.values().take(MAX_WORK).cloned().collect();
        let before: Vec<Bytes> = works.iter().map(|work| work.bytes()).collect();
        if !works.is_empty() {
            thread::park_timeout(RATE_OVER);
        }
        works.iter().zip(before).map(|(work, before)| work.report(before)).collect()
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.0.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Being among the copies under way.
struct Place<'a> {
    service: &'a Service,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let gone = self.service.copies().under_way.remove(&self.number);
        // Perhaps the last handle of its connection.
        drop(gone);
    }
}

/// One copy under way.
struct Work {
    connection: Connection,
    since: Instant,
    /// Whether it sends, and what.
    asked: Mutex<(bool, PeerText)>,
}

impl Work {
    fn sends(&self) -> bool {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// What has gone, or has come.
    fn bytes(&self) -> Bytes {
        let stats = self.connection.stats();
        if self.sends() { stats.acknowledged } else { stats.received_stream }
    }

    fn report(&self, before: Bytes) -> WorkReport {
        let (sends, what) = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let bytes = self.bytes();
        let rate = BitRate::of(bytes.saturating_sub(before), RATE_OVER);
        let since_s = clock::now().saturating_duration_since(self.since).as_secs_f64();
        WorkReport { sends, what, since_s, bytes: bytes.as_u64(), rate_bps: rate.as_bps() }
    }
}

impl Observer for Work {
    fn event(&self, event: Event<'_>) {
        let Event::Asked(asked) = event else { return };
        let (sends, path, more) = match asked {
            Asked::Write(path) => (false, Some(path), 0),
            Asked::Read(paths) => (true, paths.first(), paths.len().saturating_sub(1)),
        };
        let first: String = path.map(ToString::to_string).unwrap_or_default().chars().take(MAX_TOLD).collect();
        let what = if more > 0 { format!("{first} and {more} more") } else { first };
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = (sends, PeerText::from(what.as_str()));
    }
}
