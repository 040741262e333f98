//! The receiver inside this process: it is told what there is, and says what of it is needed.

use std::io::Write as _;
use std::sync::mpsc::Sender;
use std::thread::Scope;
use std::time::Duration;

use haul_files::protocol::{self, Hello, Message, Needs, Request, What};
use haul_files::{CopyError, FileProblem, Local as Store, OrderJob, serve_store};

use super::GetError;
use super::desk::{Desk, Local};
use super::inward::{self, Outward};
use super::merge::{self, Tree};
use super::news::{News, Said};

/// Entries in one message.
const MAX_ENTRIES: u32 = 512;

/// The driver's end of it.
pub(super) struct Receiving<B> {
    pub(super) outward: Outward<B>,
    frames: Vec<u8>,
}

/// What is needed of the files, by node: those that need nothing left out.
pub(super) type Wanted = Vec<(u32, Needs)>;

impl<B> Receiving<B> {
    /// Says something; if the receiver has ended, its own word says why.
    pub(super) fn say(&mut self, message: &Message) {
        self.frames.clear();
        if protocol::encode(message, &mut self.frames).is_ok() {
            let _ = self.outward.control.write_all(&self.frames);
        }
    }

    /// Tells it all there is.
    pub(super) fn announce(&mut self, tree: &Tree, job: &OrderJob, destination: &std::path::Path, problems: Vec<FileProblem>) {
        let what = What::Push { destination: destination.into(), sources: tree.tops(), stream: false, early: false };
        self.say(&Message::Hello(Hello::ours()));
        self.say(&Message::Request(Request { what, options: job.options, job: job.id() }));
        for problem in problems {
            self.say(&Message::Problem(problem));
        }
        let mut at = 0;
        while at < tree.len() {
            let end = tree.len().min(at.saturating_add(MAX_ENTRIES));
            self.say(&Message::Entries(tree.entries(at..end)));
            at = end;
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
    let local = Local { observer: desk.observer, destination: &desk.job.destination };
    let over = news.clone();
    scope.spawn(move || {
        let result = serve_store(link, &Store::own(), &local, cancel).map(Box::new);
        let _ = over.send(News::LocalOver(result));
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

/// Waits until it has said what it needs; a receiver that finds nothing there needs everything and does not say so.
pub(super) fn wants<B>(desk: &mut Desk<'_, B>, tree: &Tree) -> Result<Wanted, GetError> {
    let files = (0..tree.len()).filter(|at| tree.size(*at).is_some()).count();
    let mut wanted = Vec::new();
    let (mut asks, mut answered) = (None, 0);
    loop {
        match asks {
            Some(false) => {
                let all = (0..tree.len()).filter(|at| tree.size(*at).is_some_and(|size| size > 0));
                return Ok(all.map(|at| (at, Needs::All)).collect());
            }
            Some(true) if answered >= files => return Ok(wanted),
            _ => {}
        }
        desk.tell(None, |_| None, false);
        match desk.next(desk.tells_in().max(Duration::from_millis(1)))? {
            Some(News::Local(Message::Start { wants })) => asks = Some(wants),
            Some(News::Local(Message::Wants(wants))) => {
                for want in wants {
                    answered += 1;
                    if let Some(node) = merge::node(want.id).filter(|_| want.needs != Needs::Nothing) {
                        wanted.push((node, want.needs));
                    }
                }
            }
            Some(News::Local(Message::Progress(progress))) => desk.progress = progress,
            Some(News::LocalOver(result)) => return Err(ended(result.err())),
            Some(News::Member(at, Said::Over(result))) => {
                desk.over(at, result)?;
            }
            Some(News::Member(at, Said::Ended(_) | Said::Delivered(_) | Said::Entries(_))) => {
                desk.down(at, "it says what it was not asked");
            }
            _ => {}
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
