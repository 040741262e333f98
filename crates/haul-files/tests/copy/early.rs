//! A client that sends begins before it has heard whether the server is ready, and starts again where the server has something of an earlier run.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_files::block::{Piece, hash};
use haul_files::protocol::{Entry, FileEnd, Hello, Message, Needs, ROOT, Request, Want, What};
use haul_files::{
    BlockRx as _, Cancel, CopyError, Event, Filter, Link, Observer, Options, PushJob, Report, Silent, Transport as _, push,
};
use haul_ramstore::memory::{Conditions, Memory, pair};

use crate::fixture::*;
use crate::hostile::{Peer, file, misbehaved, piece, push_request, pusher_asking};

fn job(sources: &[&Path], to: &Path) -> PushJob {
    PushJob::new(sources.iter().map(|path| path.to_path_buf()), to)
}

/// A push to a hand-made server, and how it ended.
fn pushed(job: &PushJob, act: impl FnOnce(&mut Peer)) -> Result<Report, CopyError> {
    let (here, there) = pair(Conditions::default());
    std::thread::scope(|scope| {
        let client = scope.spawn(|| push(here, job, &Silent, &Cancel::new()));
        let mut server = Peer { link: there };
        act(&mut server);
        let result = client.join().unwrap();
        server.link.transport.kill();
        result
    })
}

/// The ids of the files that were announced until something else was said, and that.
fn announced(server: &mut Peer) -> (Vec<u64>, Message) {
    let mut ids = Vec::new();
    loop {
        match server.hear() {
            Message::Entries(entries) => ids.extend(entries.iter().map(|entry| entry.id)),
            other => return (ids, other),
        }
    }
}

fn is_early_push(message: &Message) -> bool {
    matches!(message, Message::Request(Request { what: What::Push { early: true, .. }, .. }))
}

#[test]
fn content_comes_to_a_server_that_has_said_nothing() {
    let p = places();
    let source = p.from.join("file");
    write(&source, noise(100_000, 1));
    let result = pushed(&job(&[&source], &p.to), |server| {
        assert_eq!(server.hear(), Message::Hello(Hello::ours()));
        assert!(is_early_push(&server.hear()));
        let (ids, then) = announced(server);
        assert_eq!((ids, then), (vec![1], Message::ScanDone));
        let block = server.link.transport.accept_blocks().unwrap().recv().unwrap().expect("the file");
        assert!(block.as_ref().starts_with(&noise(100_000, 1)));
        server.say(&Message::Hello(Hello::ours()));
        server.say(&Message::Start { wants: false });
        assert!(matches!(server.hear(), Message::AllSent(_)));
        server.say(&Message::Finished(haul_files::protocol::Finished::default()));
    });
    result.unwrap();
}

#[test]
fn little_is_sent_in_vain_and_all_comes_anew() {
    let p = places();
    let source = p.from.join("file");
    write(&source, noise(20 << 20, 1));
    let result = pushed(&job(&[&source], &p.to), |server| {
        let (_, request) = (server.hear(), server.hear());
        assert!(is_early_push(&request));
        assert_eq!(announced(server), (vec![1], Message::ScanDone));
        server.say(&Message::Hello(Hello::ours()));
        server.say(&Message::Start { wants: true });
        assert_eq!(server.hear(), Message::Anew { after: 1 });
        assert!(server.link.transport.sent().0 <= 2, "{} blocks", server.link.transport.sent().0);
        assert_eq!(announced(server), (vec![2], Message::ScanDone));
        server.say(&Message::Wants(vec![Want { id: 2, needs: Needs::Ranges(vec![(5, 1005)]) }]));
        let Message::FileEnd(FileEnd::Sent { id: 2, bytes: 1000, .. }) = server.hear() else { panic!("the range") };
        let blocks = server.link.transport.accept_blocks().unwrap();
        while server.hear() != Message::Bye {
            // What was early is taken, so that the rest can come.
            while let Some(block) = blocks.recv().unwrap() {
                assert!(block.as_ref().len() > 1000);
            }
            server.say(&Message::Finished(haul_files::protocol::Finished::default()));
        }
    });
    result.unwrap();
}

#[test]
fn a_server_that_has_nothing_to_want_may_not_ask_for_it() {
    let p = places();
    let source = p.from.join("file");
    write(&source, "x");
    let mut without_resume = job(&[&source], &p.to);
    without_resume.options.resume = false;
    let mut update = job(&[&source], &p.to);
    update.options.update = true;
    for (job, wants) in [(without_resume, true), (update, false)] {
        let result = pushed(&job, |server| {
            server.say(&Message::Hello(Hello::ours()));
            server.say(&Message::Start { wants });
            server.listen();
        });
        assert_eq!(misbehaved(result), "it wants other things than it was asked to");
    }
}

/// Leaves something of an earlier run in `to`, for the same job.
fn interrupt(to: &Path) {
    let content = noise(100, 1);
    let (result, _) = pusher_asking(push_request(to, true), |peer| {
        peer.say(&Message::Entries(vec![file(1, ROOT, b"f", 200)]));
        peer.block(&[piece(1, 0, &content, false)], &content);
        while !matches!(peer.hear(), Message::Start { .. }) {}
        // Until it is written.
        while !matches!(peer.hear(), Message::Progress(progress) if progress.bytes == 100) {}
        peer.link.transport.kill();
    });
    assert!(result.is_err());
}

fn old_name(id: u64) -> Entry {
    file(id, ROOT, b"void", 4)
}

#[test]
fn what_comes_before_the_new_start_counts_for_nothing() {
    let p = places();
    interrupt(&p.to);
    let (result, said) = pusher_asking(push_request(&p.to, true), |peer| {
        peer.say(&Message::Entries(vec![old_name(1), file(2, ROOT, b"f", 200)]));
        peer.say(&Message::FileEnd(FileEnd::Failed { id: 7 }));
        peer.block(&[piece(1, 0, b"evil", true)], b"evil");
        peer.say(&Message::ScanDone);
        peer.say(&Message::Anew { after: 2 });
        peer.block(&[piece(1, 0, b"late", true)], b"late");
        peer.say(&Message::Entries(vec![file(3, ROOT, b"f", 200), file(4, ROOT, b"g", 1)]));
        while !matches!(peer.hear(), Message::Wants(_)) {}
        let rest = noise(100, 2);
        let whole = Piece { file: 4, offset: 0, length: 1, whole: true, hash: hash(b"g", true) };
        peer.block(&[whole], b"g");
        peer.block(&[piece(3, 100, &rest, false)], &rest);
        let mut sum = haul_files::block::PieceSum::default();
        sum.add(100, 100, &hash(&rest, true));
        peer.say(&Message::FileEnd(FileEnd::Sent { id: 3, size: 200, bytes: 100, sum: sum.to_bytes() }));
        peer.finish();
    });
    let report = result.unwrap();
    assert_eq!((report.files, report.resumed.as_u64()), (2, 100));
    assert!(matches!(said.last(), Some(Message::Finished(_))));
    assert_eq!(fs::read(p.to.join("f")).unwrap(), [noise(100, 1), noise(100, 2)].concat());
    assert!(!p.to.join("void").exists());
    assert_nothing_left(&p.to);
}

#[test]
fn one_that_does_not_start_again_is_refused() {
    let p = places();
    interrupt(&p.to);
    let (result, _) = pusher_asking(push_request(&p.to, true), |peer| {
        peer.say(&Message::Entries(vec![old_name(1)]));
        peer.finish();
    });
    assert_eq!(misbehaved(result), "it does not start again");
    assert!(!p.to.join("void").exists());
    let p = places();
    let (result, _) = pusher_asking(push_request(&p.to, true), |peer| peer.say(&Message::Anew { after: 1 }));
    assert_eq!(misbehaved(result), "a message that no sender sends");
}

/// Counts what the user hears.
#[derive(Default)]
struct Heard {
    problems: AtomicU64,
    finished: AtomicU64,
}

impl Observer for Heard {
    fn event(&self, event: Event<'_>) {
        let count = match event {
            Event::Problem(_) => &self.problems,
            Event::FileFinished { .. } => &self.finished,
            _ => return,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }
    fn wants_files(&self) -> bool {
        true
    }
}

#[test]
fn a_run_that_goes_on_tells_everything_once() {
    let p = places();
    let (large, small, missing) = (p.from.join("large"), p.from.join("small"), p.from.join("missing"));
    write(&large, noise(20 << 20, 1));
    write(&small, "small");
    let job = job(&[&small, &missing, &large], &p.to);
    let broken = Conditions { break_after: Some(10), capacity: 2, ..Conditions::default() };
    assert!(run_push(&job, &account(), broken, &Silent, |_| {}).client.is_err());
    let heard = Heard::default();
    let report = run_push(&job, &account(), Conditions::default(), &heard, |_: &std::sync::Arc<Memory>| {}).partial();
    assert_eq!((report.problem_count, heard.problems.into_inner()), (1, 1));
    assert_eq!(heard.finished.into_inner(), report.files);
    assert!(report.resumed.as_u64() > 0);
    assert_eq!(fs::read(p.to.join("large")).unwrap(), noise(20 << 20, 1));
    assert_nothing_left(&p.to);
}

/// A pull asks and says that it is ready in one breath; a server that then refuses leaves nothing behind.
#[test]
fn a_pull_that_is_refused_leaves_nothing() {
    let p = places();
    let (here, there): (Link<Memory>, Link<Memory>) = pair(Conditions::default());
    let job = haul_files::PullJob {
        sources: vec!["a".into()],
        destination: haul_files::Destination::Path(p.to.clone()),
        options: Options::default(),
        filter: Filter::default(),
    };
    let result = std::thread::scope(|scope| {
        let client = scope.spawn(|| haul_files::pull(here, &job, &Silent, &Cancel::new()));
        let mut server = Peer { link: there };
        assert_eq!(server.hear(), Message::Hello(Hello::ours()));
        assert!(matches!(server.hear(), Message::Request(_)));
        assert_eq!(server.hear(), Message::Start { wants: false });
        server.say(&Message::Hello(Hello { version: 1, features: 0 }));
        server.listen();
        server.link.transport.kill();
        client.join().unwrap()
    });
    assert!(matches!(result, Err(CopyError::PeerUnsupported { theirs: 1, .. })), "{result:?}");
    assert_nothing_left(&p.to);
}
