//! Peers that break the protocol: refused, and nothing lands outside the destination.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_files::block::{Hash, MAX_CONTENT, Piece, PieceSum, hash, seal};
use haul_files::protocol::{
    Entry, FileEnd, Hello, Kind, MAX_FRAME, Message, ROOT, Request, Stamp, VERSION, What, encode, read_frame,
};
use haul_files::{
    Access, BlockTx, Cancel, CopyError, Destination, Export, Filter, Link, Options, PullJob, Report, Silent, Stop, Transport,
    Waits, Why, WirePath, pull, serve,
};
use haul_ramstore::memory::{Conditions, Memory, pair};
use proptest::prelude::*;

use crate::fixture::*;

type Served = Result<Report, CopyError>;

/// A hand-made peer.
pub struct Peer {
    pub link: Link<Memory>,
}

impl Peer {
    pub fn say(&mut self, message: &Message) {
        let mut frame = Vec::new();
        encode(message, &mut frame).unwrap();
        self.raw(&frame);
    }

    /// The other side may have hung up already.
    fn raw(&mut self, bytes: &[u8]) {
        let _ = self.link.control_out.write_all(bytes);
    }

    pub fn block(&mut self, pieces: &[Piece], content: &[u8]) {
        let mut block = content.to_vec();
        seal(&mut block, pieces);
        let _ = self.link.transport.open_blocks().unwrap().send(block);
    }

    pub fn finish(&mut self) {
        let _ = self.link.transport.open_blocks().unwrap().finish();
        self.say(&Message::AllSent(Waits::default()));
    }

    /// What the other side says next.
    pub fn hear(&mut self) -> Message {
        read_frame(&mut *self.link.control_in, &mut Vec::new()).unwrap().expect("a message")
    }

    /// Everything that the other side says until it hangs up.
    pub fn listen(&mut self) -> Vec<Message> {
        let mut said = Vec::new();
        while let Ok(Some(message)) = read_frame(&mut *self.link.control_in, &mut Vec::new()) {
            let over = matches!(message, Message::Stop(_) | Message::Finished(_) | Message::Bye);
            said.push(message);
            if over {
                self.say(&Message::Bye);
                break;
            }
        }
        said
    }
}

/// A client that pushes to a server which writes to `to`, and what the server made of it.
pub fn pusher(to: &Path, act: impl FnOnce(&mut Peer)) -> (Served, Vec<Message>) {
    pusher_asking(push_request(to, false), act)
}

/// As [`pusher`], with a request of its own.
pub fn pusher_asking(request: Request, act: impl FnOnce(&mut Peer)) -> (Served, Vec<Message>) {
    pusher_where(&Access::Account { home: "/".into() }, request, act)
}

/// As [`pusher_asking`], where the server gives this access.
fn pusher_where(access: &Access, request: Request, act: impl FnOnce(&mut Peer)) -> (Served, Vec<Message>) {
    pusher_to(|there| serve(there, access, &Silent, &Cancel::new()), request, act)
}

/// As [`pusher_asking`], to this server.
pub fn pusher_to(
    serve: impl FnOnce(Link<Memory>) -> Served + Send,
    request: Request,
    act: impl FnOnce(&mut Peer),
) -> (Served, Vec<Message>) {
    let (here, there) = pair(Conditions { capacity: 10_000, ..Conditions::default() });
    std::thread::scope(|scope| {
        let line = there.transport.open_blocks().unwrap();
        let server = scope.spawn(move || {
            let served = serve(there);
            // As a connection ends with its server: who still listens hears that, whatever was told before.
            line.kill();
            served
        });
        let mut peer = Peer { link: here };
        peer.say(&Message::Hello(Hello::ours()));
        peer.say(&Message::Request(request));
        act(&mut peer);
        let said = peer.listen();
        let result = server.join().unwrap();
        (result, said)
    })
}

/// A request to push, for the same job each time.
pub fn push_request(to: &Path, early: bool) -> Request {
    let what = What::Push { destination: to.into(), sources: 1, stream: false, early };
    Request { what, options: preserving(), job: [7; 32] }
}

fn entry(id: u64, parent: u64, name: &[u8], kind: Kind) -> Entry {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Entry { id, parent, name: WirePath(name.to_vec()), mode: 0o755, mtime: Stamp { secs: 1, nanos: 2 }, uid, gid, kind }
}

pub fn directory(id: u64, parent: u64, name: &[u8]) -> Entry {
    entry(id, parent, name, Kind::Directory)
}

pub fn file(id: u64, parent: u64, name: &[u8], size: u64) -> Entry {
    entry(id, parent, name, Kind::File { size, data: size, version: 0, linked: false, replaces: None })
}

pub fn piece(file: u64, offset: u64, content: &[u8], whole: bool) -> Piece {
    Piece { file, offset, length: content.len() as u32, whole, hash: hash(content, true) }
}

pub fn misbehaved(result: Served) -> &'static str {
    match result {
        Err(CopyError::PeerMisbehaved(what)) => what,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_hand_made_peer_can_be_honest() {
    let p = places();
    let (result, said) = pusher(&p.to, |peer| {
        peer.block(&[piece(2, 0, b"content", true)], b"content");
        peer.say(&Message::Entries(vec![entry(1, ROOT, b"dir", Kind::Directory), file(2, 1, b"file", 7)]));
        peer.finish();
    });
    assert_eq!(result.unwrap().files, 1);
    assert!(matches!(said.last(), Some(Message::Finished(_))));
    assert_eq!(fs::read(p.to.join("dir/file")).unwrap(), b"content");
}

/// The last words do not wait for the blocks, nor does the receiver for a farewell.
#[test]
fn all_may_be_said_before_anything_has_arrived() {
    let p = places();
    let content = vec![7; 100_000];
    let half = content.len() / 2;
    let (result, said) = pusher(&p.to, |peer| {
        let pieces = [piece(1, 0, &content[..half], false), piece(1, half as u64, &content[half..], false)];
        let mut sum = PieceSum::default();
        for piece in &pieces {
            sum.add(piece.offset, piece.length, &piece.hash);
        }
        let bytes = content.len() as u64;
        peer.say(&Message::Entries(vec![file(1, ROOT, b"file", bytes)]));
        peer.say(&Message::FileEnd(FileEnd::Sent { id: 1, size: bytes, bytes, sum: sum.to_bytes() }));
        peer.say(&Message::AllSent(Waits::default()));
        peer.block(&pieces[1..], &content[half..]);
        peer.block(&pieces[..1], &content[..half]);
        let _ = peer.link.transport.open_blocks().unwrap().finish();
    });
    assert_eq!(result.unwrap().files, 1);
    assert!(matches!(said.last(), Some(Message::Finished(_))));
    assert_eq!(fs::read(p.to.join("file")).unwrap(), content);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let long = vec![b'x'; 256];
    for name in [&b"../evil"[..], b"..", b".", b"", b"/etc/evil", b"a/../../evil", b"a\0b", b"a/b", &long] {
        for parent in [ROOT, 1] {
            for kind in 0..4 {
                let p = places();
                let kind = match kind {
                    0 => Kind::File { size: 0, data: 0, version: 0, linked: false, replaces: None },
                    1 => Kind::Symlink { target: WirePath(b"/etc".to_vec()) },
                    2 => Kind::HardLink { to: 1 },
                    _ if name.is_empty() && parent == ROOT => continue,
                    _ => Kind::Directory,
                };
                let (result, said) = pusher(&p.to, |peer| {
                    peer.say(&Message::Entries(vec![entry(1, ROOT, b"dir", Kind::Directory), entry(2, parent, name, kind)]));
                    peer.finish();
                });
                assert_eq!(misbehaved(result), "a name that is not plain");
                assert!(matches!(said.last(), Some(Message::Stop(Stop::Misbehaved(_)))));
                assert!(!p.from.join("../evil").exists());
            }
        }
    }
}

#[test]
fn a_file_through_a_symlink_does_not_land_at_its_target() {
    let p = places();
    // One that was there, and one that the peer makes.
    symlink(&p.from, p.to.join("was there")).unwrap();
    for name in [&b"was there"[..], b"made"] {
        let target = WirePath(p.from.as_os_str().as_encoded_bytes().to_vec());
        let (result, _) = pusher(&p.to, |peer| {
            let link = entry(1, ROOT, name, Kind::Symlink { target });
            peer.say(&Message::Entries(vec![link, entry(2, ROOT, name, Kind::Directory), file(3, 2, b"evil", 4)]));
            peer.block(&[piece(3, 0, b"evil", true)], b"evil");
            peer.finish();
        });
        let report = result.unwrap();
        assert_eq!((report.files, report.problem_count), (0, 1));
        // And with the link itself as the parent.
        let (result, _) = pusher(&p.to, |peer| {
            let target = WirePath(b"/".to_vec());
            peer.say(&Message::Entries(vec![entry(1, ROOT, b"l", Kind::Symlink { target }), file(2, 1, b"evil", 0)]));
            peer.finish();
        });
        assert_eq!(misbehaved(result), "an entry in an unknown directory");
    }
    assert_eq!(fs::read_dir(&p.from).unwrap().count(), 0);
}

#[test]
fn a_file_never_writes_through_a_link_of_its_name() {
    let p = places();
    write(p.from.join("victim"), "safe");
    symlink(p.from.join("victim"), p.to.join("file")).unwrap();
    let (result, _) = pusher(&p.to, |peer| {
        peer.say(&Message::Entries(vec![file(1, ROOT, b"file", 4)]));
        peer.block(&[piece(1, 0, b"evil", true)], b"evil");
        peer.finish();
    });
    result.unwrap();
    assert_eq!(fs::read(p.from.join("victim")).unwrap(), b"safe");
    assert_eq!(fs::read(p.to.join("file")).unwrap(), b"evil");
}

/// The names of stages, in every way that a file system may read them, at every depth: none is made, for a later copy would trust it.
#[test]
fn a_stage_is_not_a_name() {
    for name in [".haul-07070707", ".HAUL-07070707", ".haul-0102abcd", ".haul-07070707.3", ".ha\u{200d}ul-07070707"] {
        for alias in [false, true] {
            for depth in 0..3 {
                let p = places();
                let (result, _) = pusher(&p.to, |peer| {
                    let mut entries = Vec::new();
                    // The destination itself under another id.
                    if alias {
                        entries.push(entry(1, ROOT, b"", Kind::Directory));
                    }
                    for id in 0..depth {
                        let parent = if id == 0 { u64::from(alias) } else { 10 + id - 1 };
                        entries.push(entry(10 + id, parent, b"d", Kind::Directory));
                    }
                    let parent = if depth == 0 { u64::from(alias) } else { 10 + depth - 1 };
                    entries.push(entry(20, parent, name.as_bytes(), Kind::Directory));
                    entries.push(entry(21, 20, b"below", Kind::Directory));
                    entries.push(file(22, 20, b"journal", 0));
                    entries.push(file(23, parent, name.as_bytes(), 0));
                    entries.push(entry(24, parent, name.as_bytes(), Kind::Symlink { target: WirePath(b"/".to_vec()) }));
                    peer.say(&Message::Entries(entries));
                    peer.finish();
                });
                let report = result.unwrap();
                let reasons: Vec<&Why> = report.problems.iter().map(|problem| &problem.why).collect();
                assert_eq!(reasons, [&Why::Reserved; 3], "{name} at depth {depth}");
                let made = snapshot(&p.to);
                assert_eq!(made.len() as u64, depth + 1, "{made:?}");
            }
        }
    }
}

#[test]
fn a_stage_is_not_a_destination() {
    let p = places();
    fs::create_dir(p.to.join(".haul-12345678")).unwrap();
    let access = Access::Exports(vec![Export {
        name: "data".into(),
        path: p.to.clone(),
        writable: true,
        ownership: haul_files::Ownership::default(),
    }]);
    write(p.from.join("f"), "x");
    for path in ["/data/.haul-07070707", "/data/.haul-12345678/journal", "/data/.haul-12345678/", "/data/.HAUL-12345678/p1"] {
        let job = haul_files::PushJob::new([p.from.join("f")], path);
        let outcome = run_push(&job, &access, shuffled(1), &Silent, |_| {});
        let reserved = matches!(&outcome.client, Err(CopyError::Refused(Stop::Destination { why: Why::Reserved, .. })));
        assert!(reserved, "{path}: {:?}", outcome.client);
    }
    assert_eq!(fs::read_dir(p.to.join(".haul-12345678")).unwrap().count(), 0);
}

#[test]
fn what_a_daemon_remembers_of_a_client_is_bounded() {
    /// What a client of a daemon may have remembered for it.
    const ROOM_BYTES: usize = 256 << 20;
    const BATCH: u64 = 4000;
    let p = places();
    let access = Access::Exports(vec![Export {
        name: "data".into(),
        path: p.to.clone(),
        writable: true,
        ownership: haul_files::Ownership::default(),
    }]);
    // Links cost their sender nothing and are made last: until then each is remembered with its name, of the longest kind.
    let name = |id: u64| format!("{id:0>250}");
    let batches = ROOM_BYTES as u64 / 250 / BATCH + 1;
    let (result, _) = pusher_where(&access, push_request(Path::new("/data"), false), |peer| {
        peer.say(&Message::Entries(vec![directory(1, ROOT, b"d"), file(2, 1, b"f", 1)]));
        for first in (0..batches).map(|batch| 3 + batch * BATCH) {
            let links = (first..first + BATCH).map(|id| entry(id, 1, name(id).as_bytes(), Kind::HardLink { to: 2 }));
            peer.say(&Message::Entries(links.collect()));
        }
        // Were it all remembered, it would be found out here.
        peer.finish();
    });
    let error = result.expect_err("more than may be remembered");
    assert!(error.to_string().contains("no memory is left for so many directories and hard links"), "{error}");
}

#[test]
fn entries_and_content_that_cannot_be_are_refused() {
    let dir = || entry(1, ROOT, b"d", Kind::Directory);
    type Act = Box<dyn FnOnce(&mut Peer)>;
    let entries = |list: Vec<Entry>| -> Act { Box::new(move |peer| peer.say(&Message::Entries(list))) };
    let content = |size: u64, pieces: Vec<(u64, Vec<u8>, bool)>, end: Option<FileEnd>| -> Act {
        Box::new(move |peer| {
            peer.say(&Message::Entries(vec![file(1, ROOT, b"f", size)]));
            for (offset, content, whole) in pieces {
                peer.block(&[piece(1, offset, &content, whole)], &content);
            }
            if let Some(end) = end {
                peer.say(&Message::FileEnd(end));
            }
            peer.finish();
        })
    };
    let mib = || vec![1; MAX_CONTENT];
    let sent = |size, bytes| Some(FileEnd::Sent { id: 1, size, bytes, sum: [0; 32] });
    let mut late = file(2, 1, b"f", 1);
    late.mtime.nanos = 1_000_000_000;
    let cases: Vec<(&str, Act)> = vec![
        ("an id that does not rise", entries(vec![dir(), entry(1, ROOT, b"e", Kind::Directory)])),
        ("an id that does not rise", entries(vec![entry(0, ROOT, b"e", Kind::Directory)])),
        ("an entry in an unknown directory", entries(vec![file(5, 99, b"f", 1)])),
        ("an entry in an unknown directory", entries(vec![file(1, ROOT, b"f", 1), file(2, 1, b"f", 1)])),
        ("a size or time that cannot be", entries(vec![file(1, ROOT, b"f", 1 << 63)])),
        ("a size or time that cannot be", entries(vec![file(1, ROOT, b"f", u64::MAX)])),
        ("a size or time that cannot be", entries(vec![dir(), late])),
        ("a link to what comes later", entries(vec![entry(1, ROOT, b"l", Kind::HardLink { to: 1 })])),
        ("a piece beyond the end of its file", content(10, vec![(5, b"sixsix".to_vec(), false)], None)),
        ("a piece beyond the end of its file", content(10, vec![(1 << 62, b"x".to_vec(), false)], None)),
        ("content that was sent before", content(2 << 20, vec![(0, mib(), false), (0, mib(), false)], None)),
        ("content that was sent before", content(2 << 20, vec![(0, mib(), false), ((1 << 20) - 1, b"x".to_vec(), false)], None)),
        ("a whole piece that is not the file", content(10, vec![(0, b"short".to_vec(), true)], None)),
        ("a whole piece that is not the file", content(10, vec![(1, vec![0; 10], true)], None)),
        ("an end that does not fit the file", content(2 << 20, vec![(0, mib(), false)], sent(1 << 20, 1 << 20))),
        ("an end that does not fit the file", content(2 << 20, vec![(0, mib(), false)], sent(2 << 20, 5))),
        ("files without an end", content(2 << 20, vec![(0, mib(), false)], None)),
        ("files without an end", content(2 << 20, vec![], sent(2 << 20, 1 << 20))),
        (
            "content of a file that was not announced",
            Box::new(|peer| {
                peer.block(&[piece(9, 0, b"x", true)], b"x");
                peer.say(&Message::AllSent(Waits::default()));
            }),
        ),
        (
            "a malformed block",
            Box::new(|peer| {
                let _ = peer.link.transport.open_blocks().unwrap().send(vec![0; 100]);
            }),
        ),
        ("a message that no sender sends", Box::new(|peer| peer.say(&Message::Start { wants: true }))),
        ("a malformed control frame", Box::new(|peer| peer.raw(&[0xff; 40]))),
        ("a malformed control frame", Box::new(|peer| peer.raw(&(MAX_FRAME as u32 + 1).to_le_bytes()))),
        ("a malformed control frame", Box::new(|peer| peer.raw(&[3, 0, 0, 0, 0xee, 0xee, 0xee]))),
    ];
    for (what, act) in cases {
        let p = places();
        assert_eq!(misbehaved(pusher(&p.to, act).0), what);
        assert!(!p.to.join("f").exists());
    }
}

#[test]
fn content_that_is_not_what_was_read_is_not_kept() {
    let wrong: Hash = [3; 32];
    for whole in [true, false] {
        let p = places();
        write(p.to.join("f"), "old");
        let (result, said) = pusher(&p.to, |peer| {
            peer.say(&Message::Entries(vec![file(1, ROOT, b"f", 4), file(2, ROOT, b"g", 4)]));
            peer.block(&[Piece { hash: wrong, ..piece(1, 0, b"evil", whole) }, piece(2, 0, b"good", true)], b"evilgood");
            peer.finish();
        });
        let report = result.unwrap();
        assert_eq!((report.files, report.problem_count), (1, 1));
        assert!(said.contains(&Message::Unwanted(1)));
        assert_eq!(fs::read(p.to.join("f")).unwrap(), b"old");
        assert_eq!(fs::read(p.to.join("g")).unwrap(), b"good");
        assert_nothing_left(&p.to);
    }
}

/// A server that answers a pull of `asked` with these entries, and what the client made of it.
fn puller(to: &Path, asked: &str, entries: Vec<Entry>) -> Served {
    puller_with(to, asked, &[Message::Hello(Hello::ours())], entries)
}

fn puller_with(to: &Path, asked: &str, greeting: &[Message], entries: Vec<Entry>) -> Served {
    let (here, there) = pair(Conditions::default());
    std::thread::scope(|scope| {
        let job = PullJob {
            sources: vec![asked.into()],
            destination: Destination::Path(to.to_owned()),
            options: preserving(),
            filter: Filter::default(),
        };
        let client = scope.spawn(move || pull(here, &job, &Silent, &Cancel::new()));
        let mut peer = Peer { link: there };
        for message in greeting {
            peer.say(message);
        }
        peer.say(&Message::Entries(entries));
        peer.finish();
        peer.listen();
        client.join().unwrap()
    })
}

#[test]
fn a_server_gives_only_what_was_asked_for() {
    let p = places();
    assert_eq!(misbehaved(puller(&p.to, "wanted", vec![file(1, ROOT, b".bashrc", 0)])), "a source that was not asked for");
    assert_eq!(
        misbehaved(puller(&p.to, "wanted", vec![entry(1, ROOT, b"", Kind::Directory)])),
        "a source that was not asked for"
    );
    let two = vec![file(1, ROOT, b"a", 0), file(2, ROOT, b"b", 0)];
    assert_eq!(misbehaved(puller(&p.to.join("name"), "a", two)), "several sources for one name");
    puller(&p.to, "x/wanted", vec![file(1, ROOT, b"wanted", 0)]).unwrap();
    assert!(p.to.join("wanted").exists() && !p.to.join(".bashrc").exists());
}

#[test]
fn a_pull_that_is_refused_leaves_nothing() {
    let p = places();
    let stop = Message::Stop(Stop::Misbehaved("no".into()));
    let refused = puller_with(&p.to, "wanted", &[Message::Hello(Hello::ours()), stop], vec![]);
    assert!(matches!(refused, Err(CopyError::Refused(_))), "{refused:?}");
    assert_nothing_left(&p.to);
    puller(&p.to, "wanted", vec![file(1, ROOT, b"other", 0)]).unwrap_err();
    assert_nothing_left(&p.to);
}

#[test]
fn a_server_gives_only_what_a_pattern_matches() {
    let p = places();
    let asked = |greeting: &[Message], name: &[u8]| puller_with(&p.to, "x/*.log", greeting, vec![file(1, ROOT, name, 0)]);
    let greeting = [Message::Hello(Hello::ours()), Message::Matched(1)];
    for name in [&b".bashrc"[..], b"a.txt", b".a.log", b"../a.log", b""] {
        assert_eq!(misbehaved(asked(&greeting, name)), "a source that was not asked for");
    }
    // It matches, but is not a name.
    assert_eq!(misbehaved(asked(&greeting, b"x/../a.log")), "a name that is not plain");
    asked(&greeting, b"a.log").unwrap();
    assert!(p.to.join("a.log").exists());
    // The count is a promise, and a server that cannot expand gives the very name or nothing.
    assert_eq!(misbehaved(asked(&greeting[..1], b"a.log")), "no word on the patterns");
    let old = [Message::Hello(Hello { version: VERSION, features: 0 })];
    assert_eq!(misbehaved(asked(&old, b"a.log")), "a source that was not asked for");
    asked(&old, b"*.log").unwrap();
}

/// Everything that a server says to a client with these features.
fn served_to(features: u64, what: What) -> Vec<Message> {
    let (here, there) = pair(Conditions { capacity: 10_000, ..Conditions::default() });
    std::thread::scope(|scope| {
        scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let mut peer = Peer { link: here };
        peer.say(&Message::Hello(Hello { version: VERSION, features }));
        peer.say(&Message::Request(Request { what, options: Options::default(), job: [7; 32] }));
        peer.say(&Message::Start { wants: false });
        let mut said = Vec::new();
        while let Ok(Some(message)) = read_frame(&mut *peer.link.control_in, &mut Vec::new()) {
            let over = matches!(message, Message::ScanDone | Message::Stop(_));
            said.push(message);
            if over {
                break;
            }
        }
        peer.link.transport.kill();
        said
    })
}

#[test]
fn an_older_client_hears_nothing_that_it_does_not_know() {
    let p = places();
    write(p.from.join("a"), "x");
    let pull = |pattern: &str| What::Pull { sources: vec![p.from.join(pattern).as_path().into()], in_order: false };
    let said = served_to(0, pull("*"));
    assert!(!said.iter().any(|message| matches!(message, Message::Matched(_) | Message::Entries(_))), "{said:?}");
    let missing = |message: &Message| matches!(message, Message::Problem(problem) if problem.why == Why::Os(2));
    assert!(said.iter().any(missing), "{said:?}");
    let said = served_to(u64::MAX, pull("*"));
    assert!(matches!(&said[1..], [Message::Matched(1), Message::Entries(_), ..]), "{said:?}");
    assert!(matches!(&served_to(u64::MAX, pull("b*"))[1..], [Message::Matched(0), Message::Problem(_), ..]));
    // A plain name needs no count.
    assert!(matches!(&served_to(u64::MAX, pull("a"))[1..], [Message::Entries(_), ..]));
}

#[test]
fn patterns_that_would_take_for_ever_do_not() {
    let p = places();
    for i in 0..30 {
        write(p.from.join(format!("{}{i}/x", "a".repeat(200))), "x");
    }
    let pattern = p.from.join(format!("{}/{}", "*a".repeat(100) + "b", "*".repeat(1000)));
    let sources = vec![pattern.as_path().into(); 1000];
    let said = served_to(u64::MAX, What::Pull { sources, in_order: false });
    assert!(matches!(said[1], Message::Matched(0)), "{:?}", said[1]);
    // What is plain in it would be copied into each of many paths.
    for plain in ["a".repeat(1 << 20), "a".repeat(256), "a/".repeat(2048)] {
        let pattern = p.from.join(format!("*/{plain}"));
        let said = served_to(u64::MAX, What::Pull { sources: vec![pattern.as_path().into()], in_order: false });
        let no_match = |message: &Message| matches!(message, Message::Problem(problem) if problem.why == Why::NoMatch);
        assert!(said.iter().any(no_match), "{:?}", said.iter().skip(1).take(2).collect::<Vec<_>>());
    }
    // Few enough, but of nine hundred bytes each.
    let pattern = p.from.join("*/../".repeat(3) + "*");
    let said = served_to(u64::MAX, What::Pull { sources: vec![pattern.as_path().into()], in_order: false });
    assert!(matches!(said[1], Message::Matched(0)), "{:?}", said[1]);
    // Up and down again and again: 30^9 ways.
    let pattern = p.from.join("*/../".repeat(9));
    let said = served_to(u64::MAX, What::Pull { sources: vec![pattern.as_path().into()], in_order: false });
    let too_many = |message: &Message| matches!(message, Message::Problem(problem) if problem.why == Why::Os(7));
    assert!(said.iter().any(too_many), "{said:?}");
}

#[test]
fn another_version_is_refused_by_name() {
    let (here, there) = pair(Conditions::default());
    let mut peer = Peer { link: here };
    peer.say(&Message::Hello(Hello { version: VERSION + 1, features: u64::MAX }));
    let result = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let said = peer.listen();
        assert!(matches!(said.last(), Some(Message::Stop(Stop::Version { speaks: VERSION }))));
        server.join().unwrap()
    });
    assert!(matches!(result, Err(CopyError::PeerUnsupported { theirs, .. }) if theirs == VERSION + 1));
}

#[test]
fn a_receiver_that_wants_nonsense_is_refused() {
    use haul_files::protocol::{Needs, Want};
    let p = places();
    write(p.from.join("f"), noise(3 << 20, 1));
    for needs in [
        Needs::Ranges(vec![(0, (3 << 20) + 1)]),
        Needs::Ranges(vec![(5, 5)]),
        Needs::Ranges(vec![(10, 20), (15, 30)]),
        Needs::Ranges(vec![(u64::MAX - 1, u64::MAX)]),
    ] {
        let (here, there) = pair(Conditions::default());
        let result = std::thread::scope(|scope| {
            let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
            let mut peer = Peer { link: here };
            let what = What::Pull { sources: vec![p.from.join("f").as_path().into()], in_order: false };
            peer.say(&Message::Hello(Hello::ours()));
            peer.say(&Message::Request(Request { what, options: Options::default(), job: [0; 32] }));
            peer.say(&Message::Start { wants: true });
            while let Ok(Some(message)) = read_frame(&mut *peer.link.control_in, &mut Vec::new()) {
                if matches!(message, Message::Entries(_)) {
                    break;
                }
            }
            peer.say(&Message::Wants(vec![Want { id: 1, needs }]));
            peer.listen();
            server.join().unwrap()
        });
        assert_eq!(misbehaved(result), "it wants ranges that are not in the file");
    }
}

proptest! {
    #[test]
    fn any_control_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = haul_files::protocol::decode(&bytes);
        let _ = haul_files::journal::decode(&bytes);
        let _ = read_frame(&mut &bytes[..], &mut Vec::new());
    }

    #[test]
    fn messages_survive_the_wire(id in any::<u64>(), name in prop::collection::vec(any::<u8>(), 0..300), size in any::<u64>(), mode in any::<u32>()) {
        let mut odd = file(id, id / 2, &name, size);
        odd.mode = mode;
        let messages = [
            Message::Entries(vec![odd, entry(id, 0, &name, Kind::Symlink { target: WirePath(name.clone()) })]),
            Message::FileEnd(FileEnd::Sent { id, size, bytes: size / 2, sum: [mode as u8; 32] }),
            Message::Request(push_request(Path::new("x"), true)),
            Message::Stop(Stop::Misbehaved("no".into())),
        ];
        let mut frames = Vec::new();
        for message in &messages {
            encode(message, &mut frames).unwrap();
        }
        let mut stream = &frames[..];
        for message in messages {
            prop_assert_eq!(read_frame(&mut stream, &mut Vec::new()).unwrap(), Some(message));
        }
        prop_assert_eq!(read_frame(&mut stream, &mut Vec::new()).unwrap(), None);
    }
}
