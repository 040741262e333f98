//! Files that lie on many members, fetched by one client.
//!
//! ```text
//!   members --entries--> listing: one tree --> receiver (in this process): what is needed --> plan
//!   plan --orders--> members ==blocks==> transfer: what had not come ==> receiver --> destination
//!
//! Both go on at the same time, from the first member that has said what it has to the last.
//! ```
//!
//! ```text
//!   job        what is asked for                  error      why it ended early
//!   listing    what everybody has                 merge      one tree of it
//!   doubts     whether files of different times have the same content
//!   receiving  the receiver                       inward     the link to it
//!   transfer   who sends what                     found      what there is and what of it is needed becomes the plan's
//!   far        what nobody has at hand
//!   delivered  what comes, and what ends          desk       what all phases need, and what is told
//!   placed     which names are in place           disputed   what has become of a name on which two do not agree
//!   supply     what is known of a member          supplier   its session
//!   news       what happens, and who waits for that to be seen
//! ```
//!
//! One thread drives; each member has three for its session. What a member says waits in small numbers, so a slow destination slows the members and costs no memory.

mod delivered;
mod desk;
mod disputed;
mod doubts;
mod error;
mod far;
mod found;
mod inward;
mod job;
mod listing;
mod merge;
mod news;
mod placed;
mod receiving;
mod supplier;
mod supply;
mod transfer;
mod waiting;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use haul_copy::{ClientSession, ConnectionTransport, Opened};
use haul_files::{BlockRx, CopyError, Link, OrderJob, Report, Transport, Wish, order};
use haul_peer::{Connected, Lifeline};
use haul_units::{BitRate, Bytes, Cancel};

use self::desk::Desk;
pub use self::error::{GetError, Here};
pub use self::job::{Begin, GetJob, ReplicasBy};
use self::news::{Doubt, Gate, Newcomer, News, PathWatch, Said};
use self::supplier::Messenger;
use self::supply::Supply;
use self::transfer::Transfer;
use crate::clock;
use crate::member::{Member, Members};
use crate::observe::{JobObserver, JobReport, MemberReport};
use haul_plan::Plan;
use haul_plan::ServerId;

/// How long members may take to say goodbye once all is in place.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often whoever waits for members looks whether the job is over.
const LOOK: Duration = Duration::from_millis(50);

/// Fetches files from the members that have them. Blocks until all has arrived and is durable here.
///
/// Files move as soon as the first member has said what it has ([`Begin`]), while others still say what they have, or are still to come ([`Members`]). A file that several members have (the same
/// name below the sources, size and time of modification) comes from all of them together. A member that goes is named in the report, and what it
/// had to send comes from others; what a member that went before it had said all that it has
/// ([`MemberReport::is_listed`]) may have had besides, nobody knows. Single files that could not be fetched are no error: observer and report have them.
///
/// What is written, under which names, and what an interrupted run leaves for the next is as with [`haul_files::pull`]; a file with several names on a member comes as
/// several files. The same job goes on where another has stopped, also with other members.
pub fn get(
    members: impl Into<Members>,
    job: &GetJob,
    observer: &dyn JobObserver,
    cancel: &Cancel,
) -> Result<JobReport, GetError> {
    let Members { names, first, coming } = members.into();
    let here = Mutex::new(Vec::new());
    let kept = &here;
    let bring = move |take: &dyn Fn(Arrival<ConnectionTransport>), over: &Cancel| {
        let arrived = |(at, member): (usize, Option<Member>)| match member {
            Some(member) => {
                take(Arrival::Came(at, source(&member, job)));
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(member);
            }
            None => take(Arrival::Absent(at)),
        };
        first.into_iter().for_each(arrived);
        while !over.is_cancelled() {
            match coming.recv_timeout(LOOK) {
                Ok(next) => arrived(next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Whoever comes now is not wanted any more.
        coming.try_iter().filter_map(|(_, member)| member).for_each(Member::part);
    };
    let result = fetch(names, bring, job, observer, cancel);
    for member in here.into_inner().unwrap_or_else(PoisonError::into_inner) {
        member.part();
    }
    result
}

/// What a member is asked, and how.
fn source(member: &Member, job: &GetJob) -> Source<ConnectionTransport> {
    let session = ClientSession::receiving(member.connection.clone());
    let path: PathWatch = Box::new(session.path());
    let lifeline = member.keep.as_ref().map(Connected::lifeline);
    let doubt: Doubt = Box::new(move || lifeline.as_ref().is_some_and(Lifeline::ssh_has_ended));
    let limit = member.limit;
    let open = move |cancel: &Cancel, run: &mut dyn FnMut(Link<ConnectionTransport>) -> Result<(), CopyError>| {
        let Opened { link, parting } = session.open(limit).map_err(CopyError::Connection)?;
        let result = run(link);
        match &result {
            Ok(()) => parting.done(cancel),
            Err(error) => parting.failed(error),
        }
        result
    };
    let asked = job.sources.iter().map(|source| member.place(source));
    let asked = OrderJob { sources: asked.collect(), options: job.options, filter: job.filter.clone() };
    Source { path, doubt, limit, asked, open: Box::new(open) }
}

/// Opens a session, runs what it is given on its link, and ends the session.
type Open<T> = Box<dyn FnOnce(&Cancel, &mut dyn FnMut(Link<T>) -> Result<(), CopyError>) -> Result<(), CopyError> + Send>;

/// A member, over whatever transport.
struct Source<T> {
    path: PathWatch,
    doubt: Doubt,
    limit: Option<BitRate>,
    /// What it is asked for, as it is named there.
    asked: OrderJob,
    open: Open<T>,
}

/// What becomes of a member that was to come.
enum Arrival<T> {
    Came(usize, Source<T>),
    Absent(usize),
}

type BlockOf<T> = <<T as Transport>::Rx as BlockRx>::Block;

/// `bring` says who has come, until nobody comes any more or the job is over.
fn fetch<T: Transport>(
    names: Vec<String>,
    bring: impl FnOnce(&dyn Fn(Arrival<T>), &Cancel) + Send,
    job: &GetJob,
    observer: &dyn JobObserver,
    cancel: &Cancel,
) -> Result<JobReport, GetError>
where
    BlockOf<T>: 'static,
{
    if names.is_empty() {
        return Err(GetError::NoMembers);
    }
    if names.len() >= usize::from(u16::MAX) {
        return Err(GetError::TooManyMembers);
    }
    let order_job = OrderJob { sources: job.sources.clone(), options: job.options, filter: job.filter.clone() };
    let gates: Vec<Gate> = names.iter().map(|_| Gate::default()).collect();
    let cancels: Vec<Cancel> = names.iter().map(|_| Cancel::new()).collect();
    let (gates, cancels, over) = (&*gates, &*cancels, Cancel::new());
    let (news, arriving) = channel::<News<BlockOf<T>>>();
    let (wake, woken) = channel();
    let hook = {
        let (news, cancels) = (news.clone(), cancels.to_vec());
        cancel.on_cancel(move || {
            cancels.iter().for_each(Cancel::cancel);
            let _ = news.send(News::Woken);
            let _ = wake.send(());
        })
    };
    let result = thread::scope(|scope| {
        let mut supplies = Vec::with_capacity(names.len());
        let mut wished = Vec::with_capacity(names.len());
        for (at, (name, gate)) in names.into_iter().zip(gates).enumerate() {
            let (wishes, own) = channel();
            wished.push(Some(own));
            supplies.push(Supply::new(name, wishes, gate, cancels.get(at).cloned().unwrap_or_default()));
        }
        let _ending = Ending { over: &over, gates, cancels };
        let (wished, tell, stop) = (Mutex::new(wished), news.clone(), over.clone());
        scope.spawn(move || {
            let take = |arrival: Arrival<T>| match arrival {
                Arrival::Absent(at) => drop(tell.send(News::Absent(at))),
                Arrival::Came(at, Source { path, doubt, limit, asked, open }) => {
                    let own = wished.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at).and_then(Option::take);
                    let (Some(own), Some(gate), Some(cancel)) = (own, gates.get(at), cancels.get(at)) else { return };
                    let _ = tell.send(News::Came(at, Newcomer { path, doubt, limit, sources: asked.sources.clone() }));
                    let messenger = Messenger { member: at, gate, news: tell.clone() };
                    scope.spawn(move || supply(&messenger, open, &asked, own, cancel));
                }
            };
            bring(&take, &stop);
            let _ = tell.send(News::NoMore);
        });
        let mut desk = Desk::new(job, observer, cancel, arriving, supplies);
        let result = run(&mut desk, &order_job, scope, &news, woken);
        if result.is_ok() {
            see_off(&mut desk);
        }
        result.map(|(files, plan)| report(&desk, files, &plan))
    });
    drop(hook);
    result
}

/// The job is over, also where what it told has panicked: nobody waits for it any more.
struct Ending<'a> {
    over: &'a Cancel,
    gates: &'a [Gate],
    cancels: &'a [Cancel],
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.over.cancel();
        self.gates.iter().for_each(Gate::close);
        self.cancels.iter().for_each(Cancel::cancel);
    }
}

/// The session of one member, on its thread.
fn supply<T: Transport>(
    messenger: &Messenger<'_, BlockOf<T>>,
    open: Open<T>,
    job: &OrderJob,
    wished: Receiver<Wish>,
    cancel: &Cancel,
) {
    let mut wished = Some(wished);
    let mut ended = false;
    let result = open(cancel, &mut |link| {
        let wished = wished.take().ok_or(CopyError::Cancelled)?;
        let result = order(link, job, wished, messenger, cancel);
        if result.is_ok() {
            // What follows is only a farewell.
            messenger.over(Ok(()));
            ended = true;
        }
        result
    });
    if !ended {
        messenger.over(result);
    }
}

fn run<'scope, 'a: 'scope, B>(
    desk: &mut Desk<'a, B>,
    order_job: &OrderJob,
    scope: &'scope thread::Scope<'scope, '_>,
    news: &Sender<News<B>>,
    woken: Receiver<()>,
) -> Result<(Report, Plan), GetError>
where
    B: AsRef<[u8]> + Send + Sync + 'static,
{
    let (listing, start) = listing::begin(desk)?;
    desk.placed.begin();
    let mut receiver = receiving::start(desk, news, scope)?;
    receiver.request(start.tops, order_job, &desk.job.destination);
    let result = Transfer::new(desk, listing, &mut receiver, woken).run();
    // If all is in place, it has ended by itself; else it keeps what has arrived.
    drop(receiver);
    result.map_err(|(error, disputed)| match (error, disputed) {
        (GetError::Conflict { path, first, second, .. }, Some(disputed)) => {
            let here = disputed.here(desk, &path, start.renames, &first);
            GetError::Conflict { path, first, second, here }
        }
        (error, _) => error,
    })
}

/// Lets the members say goodbye.
fn see_off<B>(desk: &mut Desk<'_, B>) {
    let begun = clock::now();
    loop {
        let waited = clock::now() - begun;
        if waited >= FAREWELL || !desk.supplies.iter().any(|supply| supply.says_goodbye(waited)) {
            return;
        }
        match desk.next(LOOK) {
            Ok(Some(News::Member(at, Said::Over(_)))) => {
                if let Some(supply) = desk.supplies.get_mut(at) {
                    supply.is_over = true;
                }
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

fn report<B>(desk: &Desk<'_, B>, mut files: Report, plan: &Plan) -> JobReport {
    let now = clock::now();
    files.left_out = desk.supplies.iter().map(|supply| supply.left_out).fold(0, u64::saturating_add);
    let came = desk.supplies.iter().enumerate().filter(|(_, supply)| supply.is_here);
    let members = came.map(|(at, supply)| MemberReport {
        name: supply.name.clone(),
        delivered: plan.server(ServerId::new(at as u16)).delivered,
        files: supply.files,
        busy: supply.busy(now),
        down: supply.down.clone(),
        is_listed: supply.is_listed,
    });
    let wasted: Bytes = plan.status().wasted;
    JobReport { files, wasted, members: members.collect(), elapsed: now - desk.started }
}
