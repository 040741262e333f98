//! Where everything that happens in a download comes together, and what is told of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use haul_files::protocol::Progress;
use haul_files::{CopyError, Observer};
use haul_peer::chain;
use haul_units::{Bytes, Cancel};

use super::news::{Newcomer, News, Said};
use super::placed::Placed;
use super::supply::Supply;
use super::{GetError, GetJob};
use crate::clock;
use crate::observe::{JobEvent, JobObserver, MemberState, MemberView, Snapshot};
use haul_plan::{Plan, ServerId};

/// How often the observer hears how far everything is.
const TOLD: Duration = Duration::from_millis(200);

/// What all phases of a download need.
pub(super) struct Desk<'a, B> {
    pub(super) job: &'a GetJob,
    pub(super) observer: &'a dyn JobObserver,
    pub(super) cancel: &'a Cancel,
    pub(super) news: Receiver<News<B>>,
    pub(super) supplies: Vec<Supply<'a>>,
    pub(super) started: Instant,
    told: Instant,
    /// Files found, and bytes in them.
    pub(super) found: (u64, u64),
    /// What is in place.
    pub(super) progress: Progress,
    /// Which names are, as long as that may be asked.
    pub(super) placed: Arc<Placed>,
}

impl<'a, B> Desk<'a, B> {
    pub(super) fn new(
        job: &'a GetJob,
        observer: &'a dyn JobObserver,
        cancel: &'a Cancel,
        news: Receiver<News<B>>,
        supplies: Vec<Supply<'a>>,
    ) -> Self {
        let started = clock::now();
        let (progress, placed) = (Progress::default(), Arc::default());
        Self { job, observer, cancel, news, supplies, started, told: started, found: (0, 0), progress, placed }
    }

    /// A member has come.
    pub(super) fn came(&mut self, at: usize, newcomer: Newcomer) {
        let Some(supply) = self.supplies.get_mut(at) else { return };
        supply.came(newcomer);
        let rtt = Duration::from_micros((supply.path)().rtt_us);
        self.observer.event(&JobEvent::Up { member: &supply.name, rtt });
    }

    /// A member will not come. Whoever was to bring it has said why.
    pub(super) fn is_absent(&mut self, at: usize) {
        if let Some(supply) = self.supplies.get_mut(at).filter(|supply| !supply.is_here) {
            supply.down.get_or_insert_with(|| "it did not come up".to_owned());
        }
    }

    /// Nobody comes any more.
    pub(super) fn no_more(&mut self) {
        (0..self.supplies.len()).for_each(|at| self.is_absent(at));
    }

    /// Whether all that will say what they have said it.
    pub(super) fn is_all_heard(&self) -> bool {
        self.supplies.iter().all(Supply::is_heard)
    }

    /// The next that happens within a time; a member that says it may say more.
    pub(super) fn next(&self, wait: Duration) -> Result<Option<News<B>>, GetError> {
        if self.cancel.is_cancelled() {
            return Err(GetError::Cancelled);
        }
        match self.news.recv_timeout(wait) {
            Ok(news) => {
                if let News::Member(at, said) = &news
                    && !matches!(said, Said::Over(_))
                    && let Some(supply) = self.supplies.get(*at)
                {
                    supply.gate.leave();
                }
                Ok(Some(news))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(GetError::Cancelled),
        }
    }

    /// A member is gone. False if it was before.
    pub(super) fn down(&mut self, at: usize, why: &str) -> bool {
        let now = clock::now();
        let Some(supply) = self.supplies.get_mut(at).filter(|supply| supply.down.is_none()) else { return false };
        supply.down = Some(why.to_owned());
        supply.cancel.cancel();
        supply.drop_orders(now);
        self.observer.event(&JobEvent::Down { member: &supply.name, why });
        true
    }

    /// A member has a word on the job.
    pub(super) fn note(&self, at: usize, note: &haul_files::Note) {
        let member = self.supplies.get(at).map(|supply| &*supply.name);
        self.observer.event(&JobEvent::Note { member, note });
    }

    /// A member's session has ended, which it should not yet.
    pub(super) fn over(&mut self, at: usize, result: Result<(), CopyError>) -> Result<bool, GetError> {
        let Some(supply) = self.supplies.get_mut(at) else { return Ok(false) };
        supply.is_over = true;
        match result {
            Err(source @ (CopyError::PeerLacks(_) | CopyError::PeerUnsupported { .. })) => {
                Err(GetError::Unsupported { member: supply.name.clone(), source })
            }
            Err(error) => {
                let words = chain(&error);
                Ok(self.down(at, &words))
            }
            Ok(()) => Ok(self.down(at, "it has ended")),
        }
    }

    /// The members that are gone.
    pub(super) fn gone(&self) -> Vec<(String, String)> {
        let came = self.supplies.iter().filter(|supply| supply.is_here);
        came.filter_map(|supply| Some((supply.name.clone(), supply.down.clone()?))).collect()
    }

    /// When the observer is to hear how far everything is.
    pub(super) fn tells_in(&self) -> Duration {
        (self.told + TOLD).saturating_duration_since(clock::now())
    }

    /// Tells it, if it is time.
    pub(super) fn tell(&mut self, plan: Option<&Plan>, path_of: impl Fn(&Supply<'_>) -> Option<PathBuf>, is_over: bool) {
        let now = clock::now();
        if now - self.told < TOLD && !is_over {
            return;
        }
        self.told = now;
        let members = self.supplies.iter().enumerate().map(|(at, supply)| {
            let status = plan.map(|plan| plan.server(ServerId::new(at as u16)));
            let state = match &status {
                _ if supply.down.is_some() => MemberState::Down,
                _ if is_over => MemberState::Done,
                _ if !supply.is_here => MemberState::Starting,
                _ if !supply.is_listed => MemberState::Listing,
                Some(status) if status.is_stalled => MemberState::Stalled,
                _ if supply.is_busy() => MemberState::Busy,
                _ => MemberState::Idle,
            };
            MemberView {
                name: supply.name.clone(),
                state,
                file: if state == MemberState::Busy { path_of(supply) } else { None },
                delivered: status.map_or(Bytes::ZERO, |status| status.delivered),
                files: supply.files,
                outstanding: status.map_or(Bytes::ZERO, |status| status.in_flight),
                rate: status.filter(|_| supply.is_busy()).map(|status| status.rate).unwrap_or_default(),
                path: (supply.path)(),
            }
        });
        let Progress { files, bytes, kept_files, kept_bytes } = self.progress;
        let snapshot = Snapshot {
            elapsed: now - self.started,
            files: self.found.0,
            bytes: Bytes(self.found.1),
            files_done: files.saturating_add(kept_files),
            bytes_done: Bytes(bytes.saturating_add(kept_bytes)),
            bytes_kept: Bytes(kept_bytes),
            wasted: plan.map_or(Bytes::ZERO, |plan| plan.status().wasted),
            members: members.collect(),
        };
        self.observer.event(&JobEvent::Progress(&snapshot));
    }
}

/// What the receiver of this process tells, as a job tells it.
pub(super) struct Local<'a> {
    pub(super) observer: &'a dyn JobObserver,
    /// What is below it is named without it.
    pub(super) destination: &'a Path,
    pub(super) placed: Arc<Placed>,
}

impl Observer for Local<'_> {
    fn event(&self, event: haul_files::Event<'_>) {
        match event {
            haul_files::Event::FileFinished { path, size } => {
                let below = path.strip_prefix(self.destination).ok();
                self.placed.add(below.unwrap_or(path));
                let below = below.filter(|below| !below.as_os_str().is_empty());
                self.observer.event(&JobEvent::FileFinished { member: None, path: below.unwrap_or(path), size });
            }
            haul_files::Event::Kept { files, bytes } if files > 0 || bytes > Bytes::ZERO => {
                self.observer.event(&JobEvent::Kept { files, bytes });
            }
            haul_files::Event::Problem(problem) => self.observer.event(&JobEvent::Problem(problem)),
            haul_files::Event::Note(note) => self.observer.event(&JobEvent::Note { member: None, note }),
            _ => {}
        }
    }

    fn wants_files(&self) -> bool {
        true
    }
}
