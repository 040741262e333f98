//! What a filter leaves out: on whichever side lists, and without a look into what is left out.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;

use haul_files::protocol::{Hello, LEAVES_OUT, Message, ROOT, Request, VERSION, What};
use haul_files::{
    CopyError, Delivery, Destination, FileProblem, Filter, MAX_PATTERNS, Note, Options, OrderJob, PullJob, PushJob, Report,
    Silent, Wish, order, pull, serve,
};
use haul_files::{Customer, protocol::Entry, protocol::OrderEnd};
use haul_ramstore::memory::{Conditions, pair};
use haul_units::Cancel;

use crate::fixture::*;
use crate::hostile::{Peer, file, misbehaved};

fn filter(lines: &[&str]) -> Filter {
    Filter::new(lines.iter().map(|&line| line.to_owned())).unwrap()
}

/// A tree whose excluded directory cannot be copied without a problem.
fn places_with_tree() -> Places {
    let p = places();
    for path in
        ["tree/a.c", "tree/a.o", "tree/keep.o", "tree/sub/b.c", "tree/sub/b.o", "tree/sub/out/x", "tree/out/y", "tree/out/deep/z"]
    {
        let path = p.from.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, path.as_os_str().as_encoded_bytes()).unwrap();
    }
    let fifo = p.from.join("tree/out/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    p
}

const LINES: [&str; 3] = ["*.o", "/tree/out/", "!keep.o"];

/// Files below a directory, in order.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut stack = vec![dir.to_owned()];
    while let Some(at) = stack.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                stack.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn pulled(p: &Places, source: &Path, to: Destination, filter: Filter) -> Result<Report, CopyError> {
    let job = PullJob { sources: vec![p.from.join(source)], destination: to, options: recursive(), filter };
    let (here, there) = pair(Conditions::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let report = pull(here, &job, &Silent, &Cancel::new());
        server.join().unwrap().unwrap();
        report
    })
}

#[test]
fn a_sender_leaves_out_what_matches_and_does_not_look_into_it() {
    let p = places_with_tree();
    let job = PushJob { filter: filter(&LINES), ..PushJob::new([p.from.join("tree")], &p.to) };
    let report = run_push(&job, &account(), Conditions::default(), &Silent, |_| {}).clean();
    assert_eq!(files(&p.to), ["tree/a.c", "tree/keep.o", "tree/sub/b.c", "tree/sub/out/x"]);
    assert!(!p.to.join("tree/out").exists());
    // a.o, sub/b.o, out: what is in it is not counted.
    assert_eq!(report.left_out, 3);
}

#[test]
fn a_server_leaves_out_for_its_client() {
    let p = places_with_tree();
    let report = pulled(&p, Path::new("tree"), Destination::Path(p.to.clone()), filter(&LINES)).unwrap();
    assert_eq!(files(&p.to), ["tree/a.c", "tree/keep.o", "tree/sub/b.c", "tree/sub/out/x"]);
    assert_eq!((report.left_out, report.problem_count), (3, 0));
}

/// The path that counts is the one that the sender has, whatever the target is called.
#[test]
fn a_source_that_gets_another_name_is_filtered_by_its_own() {
    let p = places_with_tree();
    let to = p.to.join("out");
    let report = pulled(&p, Path::new("tree"), Destination::Path(to.clone()), filter(&["/tree/out", "/out/*", "*.o"])).unwrap();
    assert_eq!(files(&to), ["a.c", "sub/b.c", "sub/out/x"]);
    assert_eq!(report.problem_count, 0);
    let content = p.to.join("content");
    fs::create_dir(&content).unwrap();
    pulled(&p, Path::new("tree/."), Destination::Path(content.clone()), filter(&["/out", "/sub/b.?"])).unwrap();
    assert_eq!(files(&content), ["a.c", "a.o", "keep.o", "sub/out/x"]);
}

/// Sources that a pattern comes to, and such as are named, are left out as anything else is.
#[test]
fn sources_can_be_left_out() {
    let p = places_with_tree();
    let report = pulled(&p, Path::new("tree/*.?"), Destination::Path(p.to.clone()), filter(&["a.*"])).unwrap();
    assert_eq!((files(&p.to), report.left_out), (vec!["keep.o".to_owned()], 2));
    let out = Collected::default();
    let report = pulled(&p, Path::new("tree/*.?"), Destination::stream(out.clone()), filter(&["*.o"])).unwrap();
    assert_eq!(*out.0.lock().unwrap(), fs::read(p.from.join("tree/a.c")).unwrap());
    assert_eq!((report.files, report.left_out), (1, 2));
}

/// Counts what it is told of, and orders nothing.
struct Reader {
    told: std::sync::Mutex<Vec<Vec<u8>>>,
    wishes: std::sync::mpsc::Sender<Wish>,
}

impl<B> Customer<B> for Reader {
    fn entries(&self, entries: Vec<Entry>) -> Result<(), CopyError> {
        self.told.lock().unwrap().extend(entries.into_iter().map(|entry| entry.name.0));
        Ok(())
    }
    fn listed(&self) -> Result<(), CopyError> {
        self.wishes.send(Wish::Enough).map_err(|_| CopyError::Cancelled)
    }
    fn problem(&self, problem: FileProblem) -> Result<(), CopyError> {
        panic!("{problem}")
    }
    fn note(&self, _note: Note) -> Result<(), CopyError> {
        Ok(())
    }
    fn ended(&self, _ends: Vec<OrderEnd>) -> Result<(), CopyError> {
        Ok(())
    }
    fn delivered(&self, _delivery: Delivery<B>) -> Result<(), CopyError> {
        Ok(())
    }
}

fn ordered(
    filter: Filter,
    sources: Vec<std::path::PathBuf>,
    act: impl FnOnce(haul_files::Link<haul_ramstore::memory::Memory>) + Send,
) -> (Result<(), CopyError>, Vec<Vec<u8>>) {
    let (here, there) = pair(Conditions::default());
    let (wishes, wished) = channel();
    let reader = Reader { told: std::sync::Mutex::default(), wishes };
    let job = OrderJob { sources, options: recursive(), filter };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| act(there));
        order(here, &job, wished, &reader, &Cancel::new())
    });
    (result, reader.told.into_inner().unwrap())
}

#[test]
fn what_is_left_out_cannot_be_ordered() {
    let p = places_with_tree();
    let serving = |link| drop(serve(link, &account(), &Silent, &Cancel::new()));
    let (result, mut told) = ordered(filter(&LINES), vec![p.from.join("tree")], serving);
    result.unwrap();
    told.sort();
    assert_eq!(told, [&b"a.c"[..], b"b.c", b"keep.o", b"out", b"sub", b"tree", b"x"]);
    let lying = |link| {
        let mut peer = Peer { link };
        peer.say(&Message::Hello(Hello::ours()));
        peer.say(&Message::Entries(vec![file(1, ROOT, b"a.o", 4)]));
        peer.listen();
    };
    let (result, told) = ordered(filter(&LINES), vec!["a.o".into()], lying);
    assert!(matches!(result, Err(CopyError::PeerMisbehaved("what was to be left out"))), "{result:?}");
    assert!(told.is_empty());
}

/// What a hand-made server makes a client with a filter do.
fn answered(p: &Places, act: impl FnOnce(&mut Peer) + Send) -> Result<Report, CopyError> {
    let (here, there) = pair(Conditions::default());
    let (sources, destination) = (vec!["a.o".into()], Destination::Path(p.to.clone()));
    let job = PullJob { sources, destination, options: Options::default(), filter: filter(&["*.o"]) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            act(&mut peer);
            peer.listen();
        });
        pull(here, &job, &Silent, &Cancel::new())
    })
}

#[test]
fn a_server_that_sends_what_was_left_out_is_refused() {
    let p = places();
    let result = answered(&p, |peer| {
        peer.say(&Message::Hello(Hello::ours()));
        peer.say(&Message::Entries(vec![file(1, ROOT, b"a.o", 0)]));
        peer.finish();
    });
    assert_eq!(misbehaved(result), "what was to be left out");
    assert_nothing_left(&p.to);
}

/// One that would send all is left before it can.
#[test]
fn a_server_that_knows_no_filters_is_named() {
    let p = places();
    let features = Hello::ours().features & !LEAVES_OUT;
    let result = answered(&p, |peer| peer.say(&Message::Hello(Hello { version: VERSION, features })));
    assert!(matches!(result, Err(CopyError::PeerLacks(_))), "{result:?}");
    assert_nothing_left(&p.to);
    let (result, _) = ordered(filter(&["x"]), vec!["a".into()], move |link| {
        let mut peer = Peer { link };
        peer.say(&Message::Hello(Hello { version: VERSION, features }));
        peer.listen();
    });
    assert!(matches!(result, Err(CopyError::PeerLacks(_))), "{result:?}");
}

#[test]
fn a_client_with_patterns_that_cannot_be_is_refused() {
    for lines in [vec!["a".to_owned(); MAX_PATTERNS + 1], vec!["[z-a]".to_owned()]] {
        let (here, there) = pair(Conditions::default());
        let result = std::thread::scope(|scope| {
            let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
            let mut peer = Peer { link: here };
            peer.say(&Message::Hello(Hello::ours()));
            peer.say(&Message::LeaveOut { lines });
            let what = What::Pull { sources: vec![Path::new("a").into()], in_order: false };
            peer.say(&Message::Request(Request { what, options: Options::default(), job: [0; 32] }));
            peer.listen();
            server.join().unwrap()
        });
        assert_eq!(misbehaved(result), "patterns that cannot be used");
    }
}
