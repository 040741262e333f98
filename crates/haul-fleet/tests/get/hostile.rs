//! Members that lie: they are named, and what they say does no harm. Beside each is an honest one that has the same.

use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

use haul::Connection;
use haul_copy::ConnectionTransport;
use haul_files::block::{Piece, hash, seal};
use haul_files::protocol::{Entry, Hello, Kind, Message, Order, OrderEnd, ROOT, Stamp, VERSION, encode, read_frame};
use haul_files::{BlockTx, CopyError, Transport, WirePath};
use haul_fleet::{Begin, GetError, JobReport, Member};
use haul_peer::{Reply, from_line, to_line};

use crate::fixture::*;

const SIZE: usize = 3 << 20;

/// The far side of a session, made by hand.
struct Liar {
    read: Box<dyn Read + Send>,
    write: Box<dyn Write + Send>,
    blocks: Box<dyn BlockTx>,
}

impl Liar {
    /// Greets, and tells of one file like the honest one's.
    fn meet(connection: &Connection, features: u64) -> Self {
        let (mut send, mut receive) = connection.accept_bi().unwrap();
        let _: haul_copy::Opening = from_line(&mut receive).unwrap();
        send.write_all(&to_line(&Reply::Served { version: "9".into(), unpacks: false })).unwrap();
        let blocks = ConnectionTransport::new(connection.clone()).open_blocks().unwrap();
        let mut liar = Self { read: Box::new(receive), write: Box::new(send), blocks: Box::new(blocks) };
        for _ in 0..3 {
            liar.hear();
        }
        liar.say(&Message::Hello(Hello { version: VERSION, features }));
        liar
    }

    fn list(&mut self, size: u64) {
        let kind = Kind::File { size, data: size, version: 0, linked: false, replaces: None };
        let mtime = Stamp { secs: 1_600_000_000, nanos: 123_456_789 };
        let name = WirePath(b"file".to_vec());
        self.say(&Message::Entries(vec![Entry { id: 5, parent: ROOT, name, mode: 0o644, mtime, uid: 0, gid: 0, kind }]));
        self.say(&Message::ScanDone);
    }

    fn say(&mut self, message: &Message) {
        let mut frame = Vec::new();
        encode(message, &mut frame).unwrap();
        let _ = self.write.write_all(&frame).and_then(|()| self.write.flush());
    }

    fn hear(&mut self) -> Option<Message> {
        read_frame(&mut *self.read, &mut Vec::new()).ok().flatten()
    }

    /// The first thing that it is told to send.
    fn ordered(&mut self) -> Option<Order> {
        loop {
            match self.hear()? {
                Message::Orders(orders) => return orders.first().copied(),
                Message::Enough => return None,
                _ => {}
            }
        }
    }

    fn send(&self, pieces: &[Piece], content: &[u8]) {
        let mut block = content.to_vec();
        seal(&mut block, pieces);
        let _ = self.blocks.send(block);
    }

    /// Stays until the other side has had enough of it.
    fn stay(mut self) {
        while self.hear().is_some() {}
    }
}

fn liar(lie: impl FnOnce(&mut Liar) + Send + 'static) -> Member {
    member("liar", |connection| {
        let mut liar = Liar::meet(&connection, haul_files::protocol::FEATURES);
        liar.list(SIZE as u64);
        lie(&mut liar);
        liar.stay();
    })
}

/// A file from a liar and an honest member: whole and right all the same, and who was in the way.
fn beside(lie: impl FnOnce(&mut Liar) + Send + 'static) -> (JobReport, Vec<String>) {
    let p = places();
    let content = pattern(SIZE, 1);
    p.file("honest", "file", &content);
    // The honest one is slow, so that the liar is asked too.
    let mut honest = serving("honest", &p.of("honest"));
    honest.limit = Some(haul_units::BitRate::from_bps(50_000_000));
    let heard = Heard::default();
    let mut job = job(&["file"], &p.to);
    job.settings.patience = Duration::from_millis(300);
    let report = haul_fleet::get(vec![liar(lie), honest], &job, &heard, &haul_files::Cancel::new()).unwrap();
    assert!(fs::read(p.to.join("file")).unwrap() == content);
    assert_eq!((report.files.files, report.files.problem_count), (1, 0));
    assert!(report.members[1].down.is_none(), "{:?}", report.members[1].down);
    (report, heard.0.into_inner().unwrap())
}

fn downed(report: &JobReport) -> &str {
    report.members[0].down.as_deref().expect("it is to be given up")
}

fn piece(order: Order, content: &[u8]) -> Piece {
    Piece { file: order.file, offset: order.start, length: content.len() as u32, whole: false, hash: hash(content, true) }
}

#[test]
fn content_that_nobody_ordered() {
    let (report, _) = beside(|liar| {
        if let Some(order) = liar.ordered() {
            liar.send(&[piece(Order { file: 77, ..order }, b"evil")], b"evil");
        }
    });
    assert_eq!(downed(&report), "it sends what was not ordered");
    // Nor more than was ordered, right as it may be.
    let (report, _) = beside(|liar| {
        if let Some(order) = liar.ordered() {
            let content = &pattern(SIZE, 1)[order.start as usize..][..1 << 20];
            (0..4).for_each(|_| liar.send(&[piece(order, content)], content));
        }
    });
    assert_eq!(downed(&report), "it sends what was not ordered");
}

#[test]
fn content_with_a_wrong_hash() {
    let (report, heard) = beside(|liar| {
        if let Some(order) = liar.ordered() {
            liar.send(&[Piece { hash: [1; 32], ..piece(order, b"evil") }], b"evil");
        }
    });
    // It is no longer asked for this file, and may have others.
    assert_eq!((report.members[0].delivered.as_u64(), report.members[0].down.as_deref()), (0, None));
    let unfit = heard.iter().find(|line| line.starts_with("Unfit")).expect("it is named");
    assert!(unfit.contains("liar") && unfit.contains("HashMismatch"), "{unfit}");
}

#[test]
fn an_end_of_what_was_not_sent() {
    let (report, _) = beside(|liar| {
        if let Some(Order { number, start, .. }) = liar.ordered() {
            liar.say(&Message::OrderEnds(vec![OrderEnd::Sent { number, end: start, bytes: 0 }]));
        }
    });
    assert_eq!(downed(&report), "it says that it has sent what it has not");
    let (report, _) = beside(|liar| {
        if let Some(order) = liar.ordered() {
            liar.say(&Message::OrderEnds(vec![OrderEnd::Sent { number: order.number + 1000, end: 0, bytes: 0 }]));
        }
    });
    assert_eq!(downed(&report), "it ends what was not ordered");
}

#[test]
fn entries_after_the_list() {
    let (report, _) = beside(|liar| {
        let again = Kind::Directory;
        let (name, mtime) = (WirePath(b"file".to_vec()), Stamp::default());
        liar.say(&Message::Entries(vec![Entry { id: 9, parent: ROOT, name, mode: 0, mtime, uid: 0, gid: 0, kind: again }]));
    });
    assert_eq!(downed(&report), "it says what it was not asked");
}

/// One that says nothing more does not hold up the end: its work is done by others, and it is left behind.
#[test]
fn silence() {
    let (report, _) = beside(|liar| assert!(liar.ordered().is_some()));
    assert_eq!(report.members[0].delivered.as_u64(), 0);
}

/// Another size is another file: both members are named.
#[test]
fn another_size() {
    let p = places();
    p.file("honest", "file", b"content");
    let other = member("liar", |connection| {
        let mut liar = Liar::meet(&connection, haul_files::protocol::FEATURES);
        liar.list(8);
        liar.stay();
    });
    // Else the honest one's may be in place before the other has said a word.
    let mut job = job(&["file"], &p.to);
    job.begin = Begin::WhenAllAreHeard;
    let result = fetch(vec![other, serving("honest", &p.of("honest"))], &job);
    assert!(matches!(result, Err(GetError::Conflict { .. })), "{result:?}");
    assert!(tree(&p.to).is_empty());
}

#[test]
fn a_member_of_another_version_is_named() {
    let p = places();
    p.file("honest", "file", b"content");
    let old = member("old", |connection| Liar::meet(&connection, 3).stay());
    let result = fetch(vec![old, serving("honest", &p.of("honest"))], &job(&["file"], &p.to));
    let Err(GetError::Unsupported { member, source: CopyError::PeerLacks(_) }) = result else { panic!("{result:?}") };
    assert_eq!(member, "old");
}
