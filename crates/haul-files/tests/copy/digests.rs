//! Hashes of files that a server has announced, for who compares servers.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use haul_files::protocol::{DIGESTS, Digest, Entry, Hello, Kind, Message, OrderEnd, VERSION};
use haul_files::{CopyError, Customer, Delivery, FileProblem, Filter, Note, OrderJob, Silent, Wish, order, serve};
use haul_ramstore::memory::{Block, Conditions, pair};
use haul_units::Cancel;

use crate::fixture::*;
use crate::hostile::{Peer, misbehaved};

/// Asks for the hash of every file, and of `besides`.
struct Asking<'a> {
    files: Mutex<Vec<(u64, String)>>,
    said: Mutex<Vec<Digest>>,
    besides: Option<u64>,
    before: &'a (dyn Fn() + Sync),
    wishes: Sender<Wish>,
}

impl Customer<Block> for Asking<'_> {
    fn entries(&self, entries: Vec<Entry>) -> Result<(), CopyError> {
        let files = entries.into_iter().filter(|entry| matches!(entry.kind, Kind::File { .. }));
        self.files.lock().unwrap().extend(files.map(|entry| (entry.id, entry.name.to_string())));
        Ok(())
    }
    fn listed(&self) -> Result<(), CopyError> {
        (self.before)();
        let ids = self.files.lock().unwrap().iter().map(|(id, _)| *id).chain(self.besides).collect();
        self.wishes.send(Wish::Digest(ids)).map_err(|_| CopyError::Cancelled)
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
    fn digests(&self, digests: Vec<Digest>) -> Result<(), CopyError> {
        let mut said = self.said.lock().unwrap();
        said.extend(digests);
        if said.len() == self.files.lock().unwrap().len() {
            let _ = self.wishes.send(Wish::Enough);
        }
        Ok(())
    }
    fn delivered(&self, _delivery: Delivery<Block>) -> Result<(), CopyError> {
        panic!("content that was not ordered")
    }
}

type Link = haul_files::Link<haul_ramstore::memory::Memory>;

/// The name of a file, and its hash.
type Named = (String, Option<[u8; 32]>);

/// What a server says of its files, by name.
fn asked<R: Send>(
    source: PathBuf,
    besides: Option<u64>,
    before: &(dyn Fn() + Sync),
    act: impl FnOnce(Link) -> R + Send,
) -> (Result<(), CopyError>, R, Vec<Named>) {
    let (here, there) = pair(Conditions::default());
    let (wishes, wished) = channel();
    let asking = Asking { files: Mutex::default(), said: Mutex::default(), besides, before, wishes };
    let job = OrderJob { sources: vec![source], options: recursive(), filter: Filter::default() };
    let (result, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| act(there));
        (order(here, &job, wished, &asking, &Cancel::new()), server.join().unwrap())
    });
    let (files, said) = (asking.files.into_inner().unwrap(), asking.said.into_inner().unwrap());
    let name = |id| files.iter().find(|(file, _)| *file == id).unwrap().1.clone();
    let mut named: Vec<_> = said.iter().map(|digest| (name(digest.file), digest.hash)).collect();
    named.sort();
    (result, server, named)
}

#[test]
fn a_server_hashes_what_it_has_announced_and_nothing_that_is_another_by_now() {
    let p = places();
    let tree = p.from.join("tree");
    fs::create_dir(&tree).unwrap();
    let content = noise(5 << 20, 3);
    for (name, content) in [("large", &content[..]), ("small", b"small"), ("empty", b""), ("later", b"before"), ("gone", b"x")] {
        fs::write(tree.join(name), content).unwrap();
    }
    let before = || {
        fs::write(tree.join("later"), "behind it").unwrap();
        fs::remove_file(tree.join("gone")).unwrap();
    };
    let serving = |link| serve(link, &account(), &Silent, &Cancel::new());
    let (result, server, said) = asked(tree.clone(), None, &before, serving);
    result.unwrap();
    server.unwrap();
    let hash = |content: &[u8]| Some(*blake3::hash(content).as_bytes());
    let expected = [("empty", hash(b"")), ("gone", None), ("large", hash(&content)), ("later", None), ("small", hash(b"small"))];
    assert_eq!(said, expected.map(|(name, hash)| (name.to_owned(), hash)));
}

#[test]
fn the_hash_of_what_was_not_announced_is_refused() {
    let p = places();
    fs::write(p.from.join("f"), "f").unwrap();
    let serving = |link| serve(link, &account(), &Silent, &Cancel::new());
    let (_, server, _) = asked(p.from.join("f"), Some(99), &|| {}, serving);
    assert_eq!(misbehaved(server), "the hash of what it was not told of");
}

#[test]
fn a_server_that_hashes_nothing_is_named() {
    let features = Hello::ours().features & !DIGESTS;
    let (result, ..) = asked("a".into(), None, &|| {}, |link| {
        let mut peer = Peer { link };
        peer.say(&Message::Hello(Hello { version: VERSION, features }));
        peer.say(&Message::ScanDone);
        peer.listen();
    });
    assert!(matches!(result, Err(CopyError::PeerLacks(_))), "{result:?}");
}
