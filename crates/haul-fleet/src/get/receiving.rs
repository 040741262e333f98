//! The receiver inside this process, which is told what there is, and writes what it says is needed of that.

use std::io::Write as _;
use std::sync::mpsc::Sender;
use std::thread::Scope;

use haul_copy::{InStore, in_store};
use haul_files::protocol::{self, Hello, Message, Request, What};
use haul_files::{CopyError, FileProblem, Link, OrderJob, Report, Store, Transport, WirePath, serve_store};
use haul_units::Cancel;

use super::GetError;
use super::desk::{Desk, Local};
use super::inward::{self, Outward};
use super::merge::Tree;
use super::news::News;

/// Entries in one message.
const MAX_ENTRIES: u32 = 512;

/// The driver's end of it.
pub(super) struct Receiving<B> {
    pub(super) outward: Outward<B>,
    frames: Vec<u8>,
}

/// What the receiver has said of the files that it was told of.
#[derive(Default)]
pub(super) struct Wants {
    /// Whether it says of each what it needs of it; one that finds nothing there needs everything and does not say so. Nothing before its first word.
    pub(super) says: Option<bool>,
    /// Files that it was told of.
    pub(super) told: usize,
    /// Those of which it has said something.
    pub(super) said: usize,
}

impl Wants {
    /// Whether nothing more is to be heard of files that it knows of.
    pub(super) fn is_all_said(&self) -> bool {
        self.says.is_some_and(|says| !says || self.said >= self.told)
    }
}

impl<B> Receiving<B> {
    /// Says something; if the receiver has ended, its own word says why.
    pub(super) fn say(&mut self, message: &Message) {
        self.frames.clear();
        if protocol::encode(message, &mut self.frames).is_ok() {
            let _ = self.outward.control.write_all(&self.frames);
        }
    }

    /// Asks it to write a destination.
    pub(super) fn request(&mut self, tops: u32, job: &OrderJob, destination: &std::path::Path) {
        let what = What::Push { destination: destination.into(), sources: tops, stream: false, early: false };
        self.say(&Message::Hello(Hello::ours()));
        self.say(&Message::Request(Request { what, options: job.options, job: job.id() }));
    }

    /// Tells it what there is from this node on.
    pub(super) fn announce(&mut self, tree: &Tree, from: u32) {
        let mut at = from;
        while at < tree.len() {
            let end = tree.len().min(at.saturating_add(MAX_ENTRIES));
            self.say(&Message::Entries(tree.entries(at..end)));
            at = end;
        }
    }

    /// There is nothing more; nor are there these.
    pub(super) fn found_all(&mut self, problems: Vec<FileProblem>) {
        for problem in problems {
            self.say(&Message::Problem(problem));
        }
        self.say(&Message::ScanDone);
    }
}

/// Starts it on threads of the scope.
pub(super) fn start<'scope, 'a: 'scope, B>(
    desk: &Desk<'a, B>,
    news: &Sender<News<B>>,
    scope: &'scope Scope<'scope, '_>,
) -> Result<Receiving<B>, GetError>
where
    B: AsRef<[u8]> + Send + Sync + 'static,
{
    let system = |source| GetError::System { doing: "linking the receiver", source };
    let (outward, link) = inward::pair::<B>().map_err(system)?;
    let mut control = outward.control.try_clone().map_err(system)?;
    let cancel = desk.cancel;
    let local = Local { observer: desk.observer, destination: &desk.job.destination, placed: desk.placed.clone() };
    let over = Over { news: news.clone(), result: Some(Err(CopyError::Cancelled)) };
    scope.spawn(move || {
        let mut over = over;
        let place = [WirePath::from(local.destination)];
        let receive = Receive { link, local: &local, cancel };
        over.result = Some(in_store(&place, receive, cancel).map(Box::new));
    });
    let said = news.clone();
    scope.spawn(move || {
        let mut body = Vec::new();
        while let Ok(Some(message)) = protocol::read_frame(&mut control, &mut body) {
            if said.send(News::Local(message)).is_err() {
                return;
            }
        }
    });
    Ok(Receiving { outward, frames: Vec::new() })
}

/// What it does, in whatever store the destination is.
struct Receive<'a, T: Transport> {
    link: Link<T>,
    local: &'a Local<'a>,
    cancel: &'a Cancel,
}

impl<T: Transport> InStore for Receive<'_, T> {
    type Done = Report;

    fn run<S: Store>(self, store: &S) -> Result<Report, CopyError> {
        serve_store(self.link, store, self.local, self.cancel)
    }
}

/// Says that the receiver has ended, also where that was by a panic of whoever it told something.
struct Over<B> {
    news: Sender<News<B>>,
    result: Option<Result<Box<Report>, CopyError>>,
}

impl<B> Drop for Over<B> {
    fn drop(&mut self) {
        if let Some(result) = self.result.take() {
            let _ = self.news.send(News::LocalOver(result));
        }
    }
}

/// The receiver has ended too early.
pub(super) fn ended(error: Option<CopyError>) -> GetError {
    match error {
        None | Some(CopyError::Cancelled) => GetError::Cancelled,
        Some(error) => GetError::Destination(error),
    }
}
