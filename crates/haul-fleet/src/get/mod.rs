//! Files that lie on many members, fetched by one client.
//!
//! ```text
//!   members --entries--> listing: one tree --> receiver (in this process): what is needed --> plan
//!   plan --orders--> members ==blocks==> transfer: what had not come ==> receiver --> destination
//! ```
//!
//! ```text
//!   job        what is asked for                  error      why it ended early
//!   listing    what everybody has                 merge      one tree of it
//!   doubts     whether files of different times have the same content
//!   receiving  the receiver, and what it needs    inward     the link to it
//!   transfer   who sends what                     desk       what all phases need, and what is told
//!   supply     what is known of a member          supplier   its session
//!   news       what happens, and who waits for that to be seen
//! ```
//!
//! One thread drives; each member has three for its session. What a member says waits in small numbers, so a slow destination slows the members and costs no memory.

mod desk;
mod doubts;
mod error;
mod inward;
mod job;
mod listing;
mod merge;
mod news;
mod receiving;
mod supplier;
mod supply;
mod transfer;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use haul_copy::{ClientSession, ConnectionTransport, Opened};
use haul_files::{BlockRx, CopyError, Link, OrderJob, Report, Transport, Wish, order};
use haul_units::{BitRate, Bytes, Cancel};

use self::desk::Desk;
pub use self::error::GetError;
pub use self::job::{GetJob, ReplicasBy};
use self::news::{Gate, News, Said};
use self::supplier::Messenger;
use self::supply::{PathWatch, Supply};
use self::transfer::Transfer;
use crate::clock;
use crate::member::Member;
use crate::observe::{JobObserver, JobReport, MemberReport};
use haul_plan::Plan;
use haul_plan::ServerId;

/// How long members may take to say goodbye once all is in place.
const FAREWELL: Duration = Duration::from_secs(2);

/// Fetches files from the members that have them. Blocks until all has arrived and is durable here.
///
/// A file that several members have (the same name below the sources, size and time of modification) comes from all of them together. A member that goes is named in the report, and what it
/// had to send comes from others; what a member that went before it had said all that it has
/// ([`MemberReport::is_listed`]) may have had besides, nobody knows. Single files that could not be fetched are no error: observer and report have them.
///
/// What is written, under which names, and what an interrupted run leaves for the next is as with [`haul_files::pull`]; a file with several names on a member comes as
/// several files. The same job goes on where another has stopped, also with other members.
pub fn get(members: Vec<Member>, job: &GetJob, observer: &dyn JobObserver, cancel: &Cancel) -> Result<JobReport, GetError> {
    let mut sources = Vec::with_capacity(members.len());
    for member in &members {
        let session = ClientSession::receiving(member.connection.clone());
        let path: PathWatch = Box::new(session.path());
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
        sources.push(Source { name: member.name.clone(), path, limit, asked, open: Box::new(open) });
    }
    let result = fetch(sources, job, observer, cancel);
    for member in members {
        member.part();
    }
    result
}

/// Opens a session, runs what it is given on its link, and ends the session.
type Open<'a, T> =
    Box<dyn FnOnce(&Cancel, &mut dyn FnMut(Link<T>) -> Result<(), CopyError>) -> Result<(), CopyError> + Send + 'a>;

/// A member, over whatever transport.
struct Source<'a, T> {
    name: String,
    path: PathWatch,
    limit: Option<BitRate>,
    /// What it is asked for, as it is named there.
    asked: OrderJob,
    open: Open<'a, T>,
}

type BlockOf<T> = <<T as Transport>::Rx as BlockRx>::Block;

fn fetch<T: Transport>(
    sources: Vec<Source<'_, T>>,
    job: &GetJob,
    observer: &dyn JobObserver,
    cancel: &Cancel,
) -> Result<JobReport, GetError>
where
    BlockOf<T>: 'static,
{
    if sources.is_empty() {
        return Err(GetError::NoMembers);
    }
    if sources.len() >= usize::from(u16::MAX) {
        return Err(GetError::TooManyMembers);
    }
    let order_job = OrderJob { sources: job.sources.clone(), options: job.options, filter: job.filter.clone() };
    let gates: Vec<Gate> = sources.iter().map(|_| Gate::default()).collect();
    let cancels: Vec<Cancel> = sources.iter().map(|_| Cancel::new()).collect();
    let (news, arriving) = channel::<News<BlockOf<T>>>();
    let (wake, woken) = channel();
    let hook = {
        let (news, cancels) = (news.clone(), cancels.clone());
        cancel.on_cancel(move || {
            cancels.iter().for_each(Cancel::cancel);
            let _ = news.send(News::Woken);
            let _ = wake.send(());
        })
    };
    let result = thread::scope(|scope| {
        let mut supplies = Vec::with_capacity(sources.len());
        for (at, (source, gate)) in sources.into_iter().zip(&gates).enumerate() {
            let Source { name, path, limit, asked, open } = source;
            let (wishes, wished) = channel();
            let stop = cancels.get(at).cloned().unwrap_or_default();
            let named = asked.sources.clone();
            supplies.push(Supply::new((name, named), path, limit, wishes, gate, stop.clone()));
            let messenger = Messenger { member: at, gate, news: news.clone() };
            scope.spawn(move || supply(&messenger, open, &asked, wished, &stop));
        }
        let mut desk = Desk::new(job, observer, cancel, arriving, supplies);
        let result = run(&mut desk, &order_job, scope, &news, woken);
        if result.is_ok() {
            see_off(&mut desk);
        }
        gates.iter().for_each(Gate::close);
        cancels.iter().for_each(Cancel::cancel);
        result.map(|(files, plan)| report(&desk, files, &plan))
    });
    drop(hook);
    result
}

/// The session of one member, on its thread.
fn supply<T: Transport>(
    messenger: &Messenger<'_, BlockOf<T>>,
    open: Open<'_, T>,
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
    let listing::Listed { tree, problems } = listing::list(desk)?;
    let mut receiver = receiving::start(desk, news, scope)?;
    receiver.announce(&tree, order_job, &desk.job.destination, problems);
    let result = receiving::wants(desk, &tree)
        .and_then(|wanted| Transfer::new(desk, &tree, &mut receiver, wanted, woken))
        .and_then(Transfer::run);
    // If all is in place, it has ended by itself; else it keeps what has arrived.
    receiver.outward.break_off();
    result
}

/// Lets the members say goodbye.
fn see_off<B>(desk: &mut Desk<'_, B>) {
    let until = clock::now() + FAREWELL;
    while desk.supplies.iter().any(|supply| !supply.is_over && supply.down.is_none()) {
        let left = until.saturating_duration_since(clock::now());
        if left.is_zero() {
            return;
        }
        match desk.next(left) {
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

fn report<B>(desk: &Desk<'_, B>, files: Report, plan: &Plan) -> JobReport {
    let now = clock::now();
    let members = desk.supplies.iter().enumerate().map(|(at, supply)| MemberReport {
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
