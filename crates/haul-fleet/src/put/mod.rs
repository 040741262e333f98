//! Uploads: files of this machine onto members, each onto as many as asked for.
//!
//! The sources are walked once. Each member is served by an ordinary push over its connection, whose sender is fed ([`Feed`](haul_files::Feed)) with what the [`Placement`](haul_plan::Placement) gives that member;
//! so verification, resuming, naming and commits are those of `haul cp`. A member counts as done with a file when it has it durably. Pushes end together, when every file is where it is to be: until then what a
//! member that dies had goes to others over the connections that are there.

mod error;
mod job;
mod share;
mod side;
mod state;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haul::Connection;
use haul_copy::{ClientSession, InStore, Opened, PathView, in_store};
use haul_files::walk::Walk;
use haul_files::{CopyError, Fault, FileProblem, MAX_PROBLEMS, PushJob, Report, Store, WirePath, push_fed};
use haul_peer::chain;
use haul_units::{BitRate, Bytes, Cancel, Time};

use crate::member::{Member, load_of};
use crate::observe::{JobEvent, JobObserver, JobReport, MemberReport, MemberState, MemberView, Snapshot};
use haul_plan::{MAX_REPLICAS, PlacementSettings};
use share::Shared;
use side::Side;
use state::News;

pub use error::PutError;
pub use job::PutJob;

/// How often what has happened is told.
const TICK: Duration = Duration::from_millis(50);
/// Of these, so many make a snapshot.
const SNAPSHOT: u32 = 4;
/// A member that is ready says how much room it has with its next word; one that does not, within so long and a round trip, will not.
const ROOM: Duration = Duration::from_millis(500);
/// Members that are not ready so long after the first one are not waited for: they get files when they come.
const LATE: Duration = Duration::from_secs(5);

/// Sends files of this machine to members, each to as many as asked for.
///
/// Blocks until each file is durable where it is to be. Files that are on fewer members than asked for, because there are too few, or too little room, are problems in the report; so are those that could not be read. An error
/// means that the job ended early: the same job goes on from there, and takes what members have already.
pub fn put(members: Vec<Member>, job: &PutJob, observer: &dyn JobObserver, cancel: &Cancel) -> Result<JobReport, PutError> {
    check(members.len(), job)?;
    let sources: Vec<WirePath> = job.sources.iter().map(|path| path.as_path().into()).collect();
    let settings = PlacementSettings {
        policy: job.policy,
        replicas: job.replicas,
        start_at: Time::ZERO + job.start_after,
        pause: job.pause,
    };
    let shared = Arc::new(Shared::new(settings, members.len(), sources));
    let lines: Vec<Line> = members.iter().map(Line::new).collect();
    let names = members.iter().map(|member| member.name.clone()).collect();
    let put = Put { shared, lines, names, job, observer, cancel, is_shared: AtomicBool::new(false) };
    let sources = put.shared.sources().to_vec();
    let result = in_store(&sources, Sending { put: &put, members: &members }, cancel).map_err(PutError::Sources);
    members.into_iter().for_each(Member::part);
    result?
}

/// All that is done with the store that the sources are in.
struct Sending<'a> {
    put: &'a Put<'a>,
    members: &'a [Member],
}

impl InStore for Sending<'_> {
    type Done = Result<JobReport, PutError>;

    fn run<S: Store>(self, store: &S) -> Result<Self::Done, CopyError> {
        let Self { put, members } = self;
        let (job, cancel) = (put.job, put.cancel);
        Ok(std::thread::scope(|scope| {
            let _ending = Ending(&put.lines);
            let walker = put.shared.clone();
            scope.spawn(move || {
                let sources = walker.named_sources();
                Walk { store, sources: &sources, recursive: job.options.recursive, filter: &job.filter }.tell(&*walker);
                walker.walked();
            });
            for (at, member) in members.iter().enumerate() {
                let (line, side) = (
                    put.lines.get(at).cloned(),
                    Side::new(put.shared.clone(), (at, &member.name), destination_of(member, job).as_os_str().as_encoded_bytes()),
                );
                let Some(line) = line else { continue };
                scope.spawn(move || line.run(side, store, member, job, cancel));
            }
            put.follow()
        }))
    }
}

/// Whoever was told something has panicked: nobody leads the members any more, and their sessions end.
struct Ending<'a>(&'a [Line]);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|line| line.connection.close(haul_copy::CLOSE_ABORTED, "the client has failed"));
        }
    }
}

fn check(members: usize, job: &PutJob) -> Result<(), PutError> {
    let most = usize::from(u16::MAX - 1);
    if job.sources.is_empty() {
        return Err(PutError::NoSources);
    }
    if members == 0 {
        return Err(PutError::NoMembers);
    }
    if members > most {
        return Err(PutError::TooManyMembers { most });
    }
    if job.replicas == 0 || job.replicas > members || job.replicas > MAX_REPLICAS {
        return Err(PutError::Replicas { replicas: job.replicas, members });
    }
    Ok(())
}

/// Where all goes on a member.
fn destination_of(member: &Member, job: &PutJob) -> PathBuf {
    member.place(&job.destination)
}

/// The way to one member.
#[derive(Clone)]
struct Line {
    connection: Connection,
    limit: Option<BitRate>,
    session: Arc<ClientSession>,
    path: Arc<dyn Fn() -> PathView + Send + Sync>,
    result: Arc<Mutex<Option<Result<Report, CopyError>>>>,
}

impl Line {
    fn new(member: &Member) -> Self {
        member.connection.set_rate_limit(member.limit);
        let session = ClientSession::sending(member.connection.clone());
        let (connection, limit) = (member.connection.clone(), member.limit);
        Self { connection, limit, path: Arc::new(session.path()), session: Arc::new(session), result: Arc::default() }
    }

    fn run<S: Store>(&self, side: Side, store: &S, member: &Member, job: &PutJob, cancel: &Cancel) {
        let (shared, at) = (side.shared.clone(), side.member);
        let push = PushJob { options: job.options, ..PushJob::new(job.sources.iter().cloned(), destination_of(member, job)) };
        let result = self.session.open(None).map_err(CopyError::Connection).and_then(|Opened { link, parting }| {
            let side = Arc::new(side);
            let result = push_fed(link, store, &push, side.clone(), &*side, cancel);
            match &result {
                Ok(_) => parting.done(cancel),
                Err(error) => parting.failed(error),
            }
            result
        });
        let failed = result.is_err();
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        if failed {
            shared.down(at);
        } else if let Some(seat) = shared.lock().seats.get_mut(at) {
            seat.is_over = true;
        }
        shared.wake();
    }

    fn is_over(&self) -> bool {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

struct Put<'a> {
    shared: Arc<Shared>,
    lines: Vec<Line>,
    names: Vec<String>,
    job: &'a PutJob,
    observer: &'a dyn JobObserver,
    cancel: &'a Cancel,
    /// The connections have a part each of the limit of all.
    is_shared: AtomicBool,
}

/// What is known besides while it goes on.
struct Watch {
    up: Vec<bool>,
    down: Vec<bool>,
    free: Vec<Option<u64>>,
    busy: Vec<Duration>,
    problems: Vec<FileProblem>,
    problem_count: u64,
    notes: Vec<haul_files::Note>,
    found: Option<(u64, bool)>,
}

impl Put<'_> {
    /// Follows the job to its end.
    fn follow(&self) -> Result<JobReport, PutError> {
        let members = self.lines.len();
        let mut watch = Watch {
            up: vec![false; members],
            down: vec![false; members],
            free: vec![None; members],
            busy: vec![Duration::ZERO; members],
            problems: Vec::new(),
            problem_count: 0,
            notes: Vec::new(),
            found: None,
        };
        let mut ticks = 0u32;
        loop {
            let over = self.lines.iter().all(Line::is_over);
            let views: Vec<PathView> = self.lines.iter().map(|line| (line.path)()).collect();
            self.meet(&mut watch, &views);
            self.tell(&mut watch);
            if over {
                break;
            }
            if ticks.is_multiple_of(SNAPSHOT) {
                self.snapshot(&mut watch, &views);
                self.share_limit();
            }
            ticks = ticks.wrapping_add(1);
            std::thread::park_timeout(TICK);
        }
        self.finish(watch)
    }

    /// Who is ready is given files, once it has said how much room it has; all begin together.
    fn meet(&self, watch: &mut Watch, views: &[PathView]) {
        let now = self.shared.now();
        let (mut waiting, mut first) = (false, None::<Time>);
        for (member, view) in views.iter().enumerate() {
            let (ready, is_over, is_lost) = {
                let state = self.shared.lock();
                state.seats.get(member).map_or((None, true, false), |seat| (seat.ready, seat.is_over, seat.is_lost))
            };
            if is_lost
                && !is_over
                && let Some(line) = self.lines.get(member)
            {
                line.connection.close(haul_copy::CLOSE_ABORTED, "it names what it was not sent");
            }
            if let Some((since, _)) = ready {
                first = Some(first.map_or(since, |first| first.min(since)));
            }
            let rtt = Duration::from_micros(view.rtt_us);
            let free = view.machine.and_then(|machine| machine.free_bytes);
            let (Some(up), Some(known)) = (watch.up.get_mut(member), watch.free.get_mut(member)) else { continue };
            if !*up && !is_over {
                let due = ready.is_some_and(|(since, _)| now.since(since) >= ROOM + rtt);
                if ready.is_some() && (free.is_some() || due) {
                    *up = true;
                    self.shared.up(member, rtt, view.machine.map(load_of));
                    self.event(&JobEvent::Up { member: self.name(member), rtt });
                } else {
                    waiting = true;
                }
            }
            if free.is_some() && free != *known && *up {
                *known = free;
                self.shared.lock().placement.handle_room(member, Bytes(free.unwrap_or(0)));
            }
        }
        let late = first.is_some_and(|first| now.since(first) > LATE);
        if !self.shared.is_begun() && (!waiting || late) {
            self.shared.begin();
        }
    }

    /// Passes on what has happened.
    fn tell(&self, watch: &mut Watch) {
        let news = std::mem::take(&mut self.shared.lock().news);
        for one in news {
            self.tell_one(one, watch);
        }
        let (files, bytes, complete) = {
            let state = self.shared.lock();
            (state.files.len() as u64, state.bytes, state.walked)
        };
        if watch.found != Some((files, complete)) {
            watch.found = Some((files, complete));
            self.event(&JobEvent::Found { files, bytes: Bytes(bytes), complete });
        }
        for (member, line) in self.lines.iter().enumerate() {
            let result = line.result.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(Err(error)), Some(down)) = (&*result, watch.down.get_mut(member))
                && !std::mem::replace(down, true)
            {
                self.event(&JobEvent::Down { member: self.name(member), why: &chain(error) });
            }
        }
    }

    fn tell_one(&self, news: News, watch: &mut Watch) {
        match news {
            News::Ordered { member, file } => {
                let (path, size) = self.file(file);
                let why = haul_plan::Why::Next;
                self.event(&JobEvent::Ordered { member: self.name(member), path: &path, range: 0..size, why });
            }
            News::Gone { member, path, size } => {
                let path = WirePath(path).to_path();
                self.event(&JobEvent::Delivered { member: self.name(member), path: &path, range: 0..size.as_u64() });
            }
            News::Finished { member, file } => {
                let (path, size) = self.file(file);
                let member = Some(self.name(member));
                self.event(&JobEvent::FileFinished { member, path: &path, size: Bytes(size) });
            }
            News::Problem(problem) => {
                self.event(&JobEvent::Problem(&problem));
                watch.problem(problem);
            }
            News::Note { member, note } => {
                self.event(&JobEvent::Note { member: Some(self.name(member)), note: &note });
                if watch.notes.len() < haul_files::MAX_NOTES && !watch.notes.contains(&note) {
                    watch.notes.push(note);
                }
            }
        }
    }

    fn snapshot(&self, watch: &mut Watch, views: &[PathView]) {
        let now = self.shared.now();
        let state = self.shared.lock();
        let replicas = self.job.replicas as u64;
        let mut snapshot = Snapshot {
            elapsed: now.since(Time::ZERO),
            files: (state.files.len() as u64).saturating_mul(replicas),
            bytes: Bytes(state.bytes.saturating_mul(replicas)),
            ..Snapshot::default()
        };
        for (member, seat) in state.seats.iter().enumerate() {
            let (outstanding, rate) = state.placement.load(member, now);
            let is_down = watch.down.get(member).copied().unwrap_or(false);
            let condition = match seat {
                _ if is_down => MemberState::Down,
                seat if seat.is_over => MemberState::Done,
                seat if !seat.is_up => MemberState::Starting,
                _ if outstanding > Bytes(0) => MemberState::Busy,
                _ => MemberState::Idle,
            };
            if condition == MemberState::Busy
                && let Some(busy) = watch.busy.get_mut(member)
            {
                *busy += TICK * SNAPSHOT;
            }
            if is_down {
                snapshot.wasted = Bytes(snapshot.wasted.as_u64().saturating_add(seat.arrived.1));
            } else {
                snapshot.files_done += state.placement.finished_files(member);
                snapshot.bytes_kept = Bytes(snapshot.bytes_kept.as_u64().saturating_add(seat.kept.1));
                snapshot.bytes_done =
                    Bytes(snapshot.bytes_done.as_u64().saturating_add(seat.arrived.1).saturating_add(seat.kept.1));
            }
            snapshot.members.push(MemberView {
                name: self.name(member).to_owned(),
                state: condition,
                file: seat.file.clone().filter(|_| condition == MemberState::Busy).map(|path| WirePath(path).to_path()),
                delivered: Bytes(seat.arrived.1),
                files: seat.arrived.0,
                outstanding,
                rate,
                path: views.get(member).copied().unwrap_or_default(),
            });
        }
        drop(state);
        self.event(&JobEvent::Progress(&snapshot));
    }

    /// All members together have one limit: who has work has an equal part of it.
    fn share_limit(&self) {
        let Some(limit) = self.job.limit.get() else {
            // One that was lifted is lifted of everybody.
            if self.is_shared.swap(false, Ordering::Relaxed) {
                self.lines.iter().for_each(|line| line.connection.set_rate_limit(line.limit));
            }
            return;
        };
        self.is_shared.store(true, Ordering::Relaxed);
        let now = self.shared.now();
        let state = self.shared.lock();
        let busy = |member: &usize| state.placement.load(*member, now).0 > Bytes(0);
        let busy: Vec<usize> = (0..self.lines.len()).filter(busy).collect();
        drop(state);
        let share = BitRate::from_bps((limit.as_bps() / busy.len().max(1) as u64).max(1));
        for member in 0..self.lines.len() {
            if let Some(line) = self.lines.get(member) {
                let own = line.limit.map_or(share, |own| own.min(share));
                line.connection.set_rate_limit(Some(own));
            }
        }
    }

    fn finish(&self, mut watch: Watch) -> Result<JobReport, PutError> {
        self.snapshot(&mut watch, &self.lines.iter().map(|line| (line.path)()).collect::<Vec<_>>());
        let elapsed = self.shared.now().since(Time::ZERO);
        let mut report = JobReport { elapsed, ..JobReport::default() };
        report.files.left_out = self.shared.lock().left_out;
        let mut errors = Vec::new();
        let mut cancelled = false;
        for (member, line) in self.lines.iter().enumerate() {
            let result = line.result.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut one = MemberReport { name: self.name(member).to_owned(), is_listed: true, ..MemberReport::default() };
            one.busy = watch.busy.get(member).copied().unwrap_or_default();
            if let Some(seat) = self.shared.lock().seats.get(member) {
                (one.delivered, one.files) = (Bytes(seat.arrived.1), seat.arrived.0);
            }
            match result {
                Some(Ok(of_member)) => add(&mut report.files, &of_member),
                Some(Err(error)) => {
                    cancelled |= matches!(error, CopyError::Cancelled);
                    report.wasted = Bytes(report.wasted.as_u64().saturating_add(one.delivered.as_u64()));
                    one.down = Some(chain(&error));
                    errors.push((one.name.clone(), error));
                }
                None => {}
            }
            report.members.push(one);
        }
        if cancelled || self.cancel.is_cancelled() {
            return Err(PutError::Cancelled);
        }
        if errors.len() == self.lines.len() {
            return Err(PutError::AllDown { members: errors });
        }
        self.short(&mut watch);
        report.files.elapsed = elapsed;
        report.files.problem_count = watch.problem_count;
        report.files.problems = watch.problems;
        report.files.notes = watch.notes;
        Ok(report)
    }

    /// Names what is on fewer members than it should be.
    fn short(&self, watch: &mut Watch) {
        let state = self.shared.lock();
        let there = watch.down.iter().filter(|is_down| !**is_down).count();
        let short: Vec<FileProblem> = state
            .placement
            .short()
            .map(|(file, holders)| {
                let path = WirePath(state.path_of_file(file));
                FileProblem { path, fault: Fault::Destination, why: state.why_short(file, holders, there) }
            })
            .collect();
        drop(state);
        for problem in short {
            self.event(&JobEvent::Problem(&problem));
            watch.problem(problem);
        }
    }

    fn file(&self, file: u32) -> (PathBuf, u64) {
        let state = self.shared.lock();
        (WirePath(state.path_of_file(file)).to_path(), state.size(file))
    }

    fn name(&self, member: usize) -> &str {
        self.names.get(member).map_or("", String::as_str)
    }

    fn event(&self, event: &JobEvent<'_>) {
        self.observer.event(event);
    }
}

impl Watch {
    fn problem(&mut self, problem: FileProblem) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// What one more member has got; directories and links are the same on all.
fn add(sum: &mut Report, one: &Report) {
    let (directories, symlinks) = (sum.directories.max(one.directories), sum.symlinks.max(one.symlinks));
    sum.add(one);
    (sum.directories, sum.symlinks) = (directories, symlinks);
}
