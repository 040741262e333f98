//! What a client makes a daemon remember of one file. A process of its own: all clients of a process share what there is.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use haul_files::block::{Piece, hash, seal};
use haul_files::protocol::{Entry, Hello, Kind, Message, ROOT, Request, Stamp, What, encode, read_frame};
use haul_files::{
    Access, BlockTx, Cancel, CopyError, Export, Link, Options, Ownership, Report, Silent, Transport, Verify, WirePath,
    limit_remembered, serve,
};
use haul_ramstore::memory::{Conditions, Memory, pair};

/// One copy may take half of it.
const ALL_BYTES: usize = 8 << 20;
/// Pieces of a block.
const PIECES: u64 = 1000;

fn say(link: &mut Link<Memory>, message: &Message) {
    let mut frame = Vec::new();
    encode(message, &mut frame).unwrap();
    // The server may have hung up already.
    let _ = link.control_out.write_all(&frame);
}

fn file(id: u64) -> Entry {
    let kind = Kind::File { size: 1 << 40, data: 1 << 40, version: 0, linked: false, replaces: None };
    let (name, mtime) = (WirePath(format!("f{id}").into_bytes()), Stamp { secs: 1, nanos: 0 });
    Entry { id, parent: ROOT, name, mode: 0o644, mtime, uid: 0, gid: 0, kind }
}

/// One byte at every second offset, from the `block`th thousand of them on.
fn scattered(block: u64) -> Vec<u8> {
    let mut content = vec![b'x'; PIECES as usize];
    let piece = |at| Piece { file: 1, offset: (block * PIECES + at) * 2, length: 1, whole: false, hash: hash(b"x", true) };
    let pieces: Vec<Piece> = (0..PIECES).map(piece).collect();
    seal(&mut content, &pieces);
    content
}

/// A client that sends `blocks` to a daemon, and what the daemon made of it.
fn pushed(blocks: impl Iterator<Item = Vec<u8>>, options: Options) -> Result<Report, CopyError> {
    let dir = tempfile::tempdir().unwrap();
    let export = Export { name: "data".into(), path: dir.path().into(), writable: true, ownership: Ownership::default() };
    let access = Access::Exports(vec![export]);
    let (mut here, there) = pair(Conditions { capacity: 10_000, ..Conditions::default() });
    std::thread::scope(|scope| {
        let line = there.transport.open_blocks().unwrap();
        let access = &access;
        let server = scope.spawn(move || {
            let served = serve(there, access, &Silent, &Cancel::new());
            line.kill();
            served
        });
        say(&mut here, &Message::Hello(Hello::ours()));
        let what = What::Push { destination: WirePath(b"/data".to_vec()), sources: 1, stream: false, early: false };
        say(&mut here, &Message::Request(Request { what, options, job: [7; 32] }));
        say(&mut here, &Message::Entries(vec![file(1)]));
        let tx = here.transport.open_blocks().unwrap();
        for block in blocks {
            let _ = tx.send(block);
        }
        let _ = tx.finish();
        say(&mut here, &Message::AllSent(haul_files::Waits::default()));
        while let Ok(Some(message)) = read_frame(&mut *here.control_in, &mut Vec::new()) {
            if matches!(message, Message::Stop(_) | Message::Bye) {
                say(&mut here, &Message::Bye);
                break;
            }
        }
        server.join().unwrap()
    })
}

#[test]
fn parts_of_a_file_that_do_not_touch_take_their_part_of_the_memory_and_no_more() {
    limit_remembered(ALL_BYTES);
    let options = Options { verify: Verify::Arrival, ..Options::default() };
    // A file with many holes is an honest one.
    let few = pushed((0..100).map(scattered), options).expect_err("it has no end");
    assert!(matches!(few, CopyError::PeerMisbehaved("files without an end")), "{few}");
    let many = pushed((0..200).map(scattered), options).expect_err("more than may be remembered");
    assert!(many.to_string().contains("no memory is left for so many parts of files"), "{many}");
}
