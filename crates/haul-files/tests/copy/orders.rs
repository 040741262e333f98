//! A receiver that orders parts of files: what it gets, and what a hostile one does not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use haul_files::block::Piece;
use haul_files::protocol::{Entry, Hello, Kind, Message, ORDERS, Order, OrderEnd, ROOT, Request, VERSION, What};
use haul_files::{
    BlockRx, Cancel, CopyError, Customer, Delivery, FileProblem, Filter, Note, Options, OrderJob, Report, Silent, Transport, Why,
    Wish, order, serve,
};
use haul_ramstore::memory::{Block, Conditions, pair};

use haul_units::BitRate;

use crate::fixture::*;
use crate::hostile::{Peer, misbehaved};

const MIB: u64 = 1 << 20;

/// What a customer was told.
#[derive(Default)]
struct Got {
    entries: Vec<Entry>,
    problems: Vec<FileProblem>,
    ends: Vec<OrderEnd>,
    pieces: Vec<(Piece, Vec<u8>)>,
    blocks: usize,
}

/// Orders by `plan` once all is listed; `go_on` hears of every end and may wish for more.
struct Buyer<'a> {
    got: Mutex<Got>,
    wishes: Sender<Wish>,
    plan: &'a (dyn Fn(&Names, &Sender<Wish>) + Sync),
    go_on: &'a (dyn Fn(&[OrderEnd], &Sender<Wish>) + Sync),
}

/// The ids and sizes of files by name.
type Names = BTreeMap<String, (u64, u64)>;

fn names(entries: &[Entry]) -> Names {
    let size = |entry: &Entry| if let Kind::File { size, .. } = entry.kind { size } else { 0 };
    entries.iter().map(|entry| (entry.name.to_string(), (entry.id, size(entry)))).collect()
}

impl Customer<Block> for Buyer<'_> {
    fn entries(&self, entries: Vec<Entry>) -> Result<(), CopyError> {
        self.got.lock().unwrap().entries.extend(entries);
        Ok(())
    }
    fn listed(&self) -> Result<(), CopyError> {
        (self.plan)(&names(&self.got.lock().unwrap().entries), &self.wishes);
        Ok(())
    }
    fn problem(&self, problem: FileProblem) -> Result<(), CopyError> {
        self.got.lock().unwrap().problems.push(problem);
        Ok(())
    }
    fn note(&self, _: Note) -> Result<(), CopyError> {
        Ok(())
    }
    fn ended(&self, ends: Vec<OrderEnd>) -> Result<(), CopyError> {
        (self.go_on)(&ends, &self.wishes);
        self.got.lock().unwrap().ends.extend(ends);
        Ok(())
    }
    fn delivered(&self, delivery: Delivery<Block>) -> Result<(), CopyError> {
        let mut got = self.got.lock().unwrap();
        assert!(delivery.damaged.is_empty());
        got.blocks += 1;
        let content = |range: &std::ops::Range<usize>| delivery.block.as_ref()[range.clone()].to_vec();
        got.pieces.extend(delivery.pieces.iter().map(|(piece, range)| (*piece, content(range))));
        Ok(())
    }
}

fn send(wishes: &Sender<Wish>, orders: &[(u64, u64, u64, u64)]) {
    let orders = orders.iter().map(|&(number, file, start, end)| Order { number, file, start, end }).collect();
    wishes.send(Wish::Orders(orders)).unwrap();
}

/// All of a session with a server of `from`: what the client made of it, what the server did, and what came.
fn buy(
    from: &Path,
    plan: impl Fn(&Names, &Sender<Wish>) + Sync,
    go_on: impl Fn(&[OrderEnd], &Sender<Wish>) + Sync,
) -> (Result<(), CopyError>, Result<Report, CopyError>, Got) {
    let (here, there) = pair(shuffled(7));
    let (wishes, wished) = channel();
    let job = OrderJob { sources: vec![from.to_owned()], options: recursive(), filter: Filter::default() };
    let buyer = Buyer { got: Mutex::default(), wishes, plan: &plan, go_on: &go_on };
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let client = order(here, &job, wished, &buyer, &Cancel::new());
        (client, server.join().unwrap())
    });
    (client, server, buyer.got.into_inner().unwrap())
}

fn enough_after(count: usize) -> impl Fn(&[OrderEnd], &Sender<Wish>) + Sync {
    let seen = Mutex::new(0);
    move |ends, wishes| {
        let mut seen = seen.lock().unwrap();
        *seen += ends.len();
        if *seen >= count {
            let _ = wishes.send(Wish::Enough);
        }
    }
}

/// What came of a file, put together; bytes that did not come are zeros.
fn assembled(got: &Got, (id, size): (u64, u64)) -> Vec<u8> {
    let mut content = vec![0; size as usize];
    for (piece, bytes) in got.pieces.iter().filter(|(piece, _)| piece.file == id) {
        content[piece.offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    content
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i / 1000 + i % 251) as u8).collect()
}

#[test]
fn ranges_come_in_any_order_and_once() {
    let p = places();
    let content = pattern(5 * MIB as usize + 17);
    fs::write(p.from.join("large"), &content).unwrap();
    let plan = |names: &Names, wishes: &Sender<Wish>| {
        let (id, size) = names["large"];
        send(wishes, &[(1, id, 4 * MIB, size), (2, id, 0, MIB + 5)]);
        send(wishes, &[(7, id, MIB + 5, 4 * MIB)]);
    };
    let (client, server, got) = buy(&p.from, plan, enough_after(3));
    client.unwrap();
    assert_eq!(server.unwrap().problem_count, 0);
    let file = names(&got.entries)["large"];
    assert_eq!(assembled(&got, file), content);
    assert_eq!(got.pieces.iter().map(|(piece, _)| u64::from(piece.length)).sum::<u64>(), file.1);
    // Cut at whole multiples, so that two who send the same cut it alike.
    assert!(got.pieces.iter().all(|(piece, _)| piece.offset / MIB == (piece.offset + u64::from(piece.length) - 1) / MIB));
    let mut ends = got.ends;
    ends.sort_by_key(OrderEnd::number);
    let sent = |number, end, bytes| OrderEnd::Sent { number, end, bytes };
    assert_eq!(ends, [sent(1, file.1, MIB + 17), sent(2, MIB + 5, MIB + 5), sent(7, 4 * MIB, 3 * MIB - 5)]);
}

#[test]
fn whole_small_files_share_blocks_and_every_name_is_a_file() {
    let p = places();
    for i in 0..300 {
        fs::write(p.from.join(format!("{i}")), pattern(100 + i)).unwrap();
    }
    fs::hard_link(p.from.join("7"), p.from.join("again")).unwrap();
    let plan = |names: &Names, wishes: &Sender<Wish>| {
        let files = names.values().filter(|(_, size)| *size > 0);
        let orders: Vec<_> = files.enumerate().map(|(i, &(id, size))| (i as u64 + 1, id, 0, size)).collect();
        assert_eq!(orders.len(), 301);
        send(wishes, &orders);
    };
    let (client, server, got) = buy(&p.from, plan, enough_after(301));
    client.unwrap();
    let served = server.unwrap();
    assert_eq!((served.files, served.bytes.as_u64()), (301, got.pieces.iter().map(|(_, content)| content.len() as u64).sum()));
    assert!(got.pieces.len() == 301 && got.pieces.iter().all(|(piece, _)| piece.whole));
    assert!(got.blocks <= 2, "{} blocks", got.blocks);
    let names = names(&got.entries);
    assert_eq!(assembled(&got, names["again"]), pattern(107));
    assert_eq!(assembled(&got, names["299"]), pattern(399));
}

#[test]
fn holes_are_said_and_not_sent() {
    let p = places();
    let file = fs::File::create(p.from.join("sparse")).unwrap();
    file.set_len(64 * MIB).unwrap();
    std::os::unix::fs::FileExt::write_at(&file, &pattern(5000), 40 * MIB).unwrap();
    let plan = |names: &Names, wishes: &Sender<Wish>| send(wishes, &[(1, names["sparse"].0, 0, 64 * MIB)]);
    let (client, _, got) = buy(&p.from, plan, enough_after(1));
    client.unwrap();
    let bytes: u64 = got.pieces.iter().map(|(piece, _)| u64::from(piece.length)).sum();
    assert_eq!(got.ends, [OrderEnd::Sent { number: 1, end: 64 * MIB, bytes }]);
    assert!(bytes < 10 * MIB, "{bytes} bytes");
    let file = names(&got.entries)["sparse"];
    assert_eq!(assembled(&got, file), fs::read(p.from.join("sparse")).unwrap());
}

#[test]
fn what_is_no_longer_what_was_announced_is_not_sent() {
    let p = places();
    for name in ["gone", "grown", "small", "well"] {
        fs::write(p.from.join(name), pattern(3 * MIB as usize)).unwrap();
    }
    fs::write(p.from.join("small"), b"small").unwrap();
    let plan = |names: &Names, wishes: &Sender<Wish>| {
        fs::remove_file(p.from.join("gone")).unwrap();
        fs::write(p.from.join("grown"), pattern(4 * MIB as usize)).unwrap();
        fs::write(p.from.join("small"), b"other").unwrap();
        let orders = ["gone", "grown", "small", "well"].iter().zip(1..).map(|(name, number)| {
            let (id, size) = names[*name];
            (number, id, 0, size)
        });
        send(wishes, &orders.collect::<Vec<_>>());
    };
    let (client, server, got) = buy(&p.from, plan, enough_after(4));
    client.unwrap();
    server.unwrap();
    let well = names(&got.entries)["well"];
    assert!(got.pieces.iter().all(|(piece, _)| piece.file == well.0));
    assert_eq!(assembled(&got, well), pattern(3 * MIB as usize));
    let mut ends = got.ends;
    ends.sort_by_key(OrderEnd::number);
    let failed = |number, why| OrderEnd::Failed { number, why };
    assert_eq!(ends[0], failed(1, Why::Os(rustix::io::Errno::NOENT.raw_os_error())));
    assert_eq!(ends[1..3], [failed(2, Why::Changed), failed(3, Why::Changed)]);
}

/// Limits reach the server's transport as they were wished, the lifting too, and so does what there is room for; one that takes none of these is not told, and serves all the same.
#[test]
fn limits_reach_the_servers_transport() {
    let p = places();
    fs::write(p.from.join("file"), pattern(100)).unwrap();
    let (here, there) = pair(Conditions::default());
    let transport = there.transport.clone();
    let (wishes, wished) = channel();
    let job = OrderJob { sources: vec![p.from.clone()], options: recursive(), filter: Filter::default() };
    let limit = |mbps| Wish::Limit(Some(BitRate::mbps(mbps)));
    let room = |mbps| Wish::Room(BitRate::mbps(mbps));
    let plan = |names: &Names, wishes: &Sender<Wish>| {
        for wish in [limit(80), limit(90), room(70), Wish::Limit(None)] {
            wishes.send(wish).unwrap();
        }
        send(wishes, &[(1, names["file"].0, 0, 100)]);
    };
    let buyer = Buyer { got: Mutex::default(), wishes, plan: &plan, go_on: &enough_after(1) };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        order(here, &job, wished, &buyer, &Cancel::new()).unwrap();
        server.join().unwrap().unwrap();
    });
    assert_eq!(transport.limits(), [Some(BitRate::mbps(80)), Some(BitRate::mbps(90)), None]);
    assert_eq!(transport.rooms(), [BitRate::mbps(70)]);

    let (here, there) = pair(Conditions::default());
    let (wishes, wished) = channel();
    for wish in [limit(80), room(70), Wish::Enough] {
        wishes.send(wish).unwrap();
    }
    let buyer = Buyer { got: Mutex::default(), wishes, plan: &|_, _| {}, go_on: &|_, _| {} };
    let said = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello { version: VERSION, features: ORDERS }));
            peer.say(&Message::ScanDone);
            let mut said = Vec::new();
            while said.last() != Some(&Message::Enough) {
                said.push(peer.hear());
            }
            peer.link.transport.kill();
            said
        });
        let _ = order(here, &job, wished, &buyer, &Cancel::new());
        server.join().unwrap()
    });
    assert!(!said.iter().any(|message| matches!(message, Message::Limit { .. } | Message::Room { .. })), "{said:?}");
}

/// A hand-made receiver: the server's word on what it does after the listing.
fn receiver(from: &Path, act: impl FnOnce(&mut Peer, u64)) -> (Result<Report, CopyError>, Vec<Message>, u64) {
    let (here, there) = pair(Conditions { capacity: 4, ..Conditions::default() });
    let sent = here.transport.clone();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let mut peer = Peer { link: here };
        peer.say(&Message::Hello(Hello::ours()));
        let what = What::Ordered { sources: vec![from.into()] };
        peer.say(&Message::Request(Request { what, options: Options::default(), job: [1; 32] }));
        peer.say(&Message::Start { wants: true });
        assert!(matches!(peer.hear(), Message::Hello(Hello { version: VERSION, .. })));
        let mut file = 0;
        loop {
            match peer.hear() {
                Message::Entries(entries) => file = entries[0].id,
                Message::ScanDone => break,
                other => panic!("{other:?}"),
            }
        }
        act(&mut peer, file);
        let said = peer.listen();
        (server.join().unwrap(), said, sent.sent().0)
    })
}

#[test]
fn orders_of_what_is_not_there_are_refused() {
    let p = places();
    let source = p.from.join("file");
    fs::write(&source, pattern(100)).unwrap();
    let hostile = |orders: Vec<Order>| {
        let (result, _, blocks) = receiver(&source, |peer, _| peer.say(&Message::Orders(orders)));
        assert_eq!(blocks, 0);
        misbehaved(result)
    };
    let one = |file, start, end| vec![Order { number: 1, file, start, end }];
    assert_eq!(hostile(one(1, 0, 101)), "an order of what is not in the file");
    assert_eq!(hostile(one(1, 50, 50)), "an order of what is not in the file");
    assert_eq!(hostile(one(1, u64::MAX, 3)), "an order of what is not in the file");
    for file in [ROOT, 2, u64::MAX] {
        assert_eq!(hostile(one(file, 0, 1)), "an order of what it was not told of");
    }
    let (result, ..) = receiver(&source, |peer, file| {
        peer.say(&Message::Orders(vec![
            Order { number: 5, file, start: 0, end: 100 },
            Order { number: 5, file, start: 0, end: 100 },
        ]));
    });
    assert_eq!(misbehaved(result), "an order whose number does not rise");
    let (result, ..) = receiver(&source, |peer, _| peer.say(&Message::Shorten { number: 1, end: 0 }));
    assert_eq!(misbehaved(result), "it shortens what it has not ordered");
    let (result, ..) = receiver(&source, |peer, file| peer.say(&Message::Unwanted(file)));
    assert_eq!(misbehaved(result), "a message that no receiver sends");
}

/// Who orders without end and takes nothing costs a bounded memory; who shortens it all again costs no more.
#[test]
fn millions_of_orders_are_bounded() {
    let p = places();
    let source = p.from.join("file");
    fs::write(&source, pattern(8 * MIB as usize)).unwrap();
    let orders = |from: u64, file| (from..from + 1000).map(|number| Order { number, file, start: 0, end: MIB }).collect();
    let (result, ..) =
        receiver(&source, |peer, file| (0..80).for_each(|i| peer.say(&Message::Orders(orders(1 + i * 1000, file)))));
    assert_eq!(misbehaved(result), "more orders than can be remembered");
    let mut over = 0;
    let ends = |message: &Message| if let Message::OrderEnds(ends) = message { ends.len() as u64 } else { 0 };
    let (result, said, blocks) = receiver(&source, |peer, file| {
        for i in 0..140 {
            peer.say(&Message::Orders(orders(1 + i * 1000, file)));
            (0..1000).for_each(|j| peer.say(&Message::Shorten { number: 1 + i * 1000 + j, end: 0 }));
            // All but those whose blocks nobody takes.
            while over + 10 < (i + 1) * 1000 {
                over += ends(&peer.hear());
            }
        }
        peer.say(&Message::Enough);
        let rx = peer.link.transport.accept_blocks().unwrap();
        while rx.recv().unwrap().is_some() {}
        peer.say(&Message::Finished(haul_files::protocol::Finished::default()));
    });
    result.unwrap();
    // Those under way, and of the last few orders those whose shortening came too late.
    assert!(blocks <= 20, "{blocks} blocks");
    assert_eq!(over + said.iter().map(ends).sum::<u64>(), 140_000);
}

/// A server of another version is named before anything is ordered.
#[test]
fn a_server_that_takes_no_orders_is_found_out() {
    let (here, there) = pair(Conditions::default());
    let (_wishes, wished) = channel();
    let job = OrderJob { sources: vec!["a".into()], options: Options::default(), filter: Filter::default() };
    let buyer = Buyer { got: Mutex::default(), wishes: channel().0, plan: &|_, _| {}, go_on: &|_, _| {} };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello { version: VERSION, features: 3 }));
            peer.listen();
        });
        order(here, &job, wished, &buyer, &Cancel::new())
    });
    assert!(matches!(result, Err(CopyError::PeerLacks(_))), "{result:?}");
}

/// A server that tells what cannot be is left before its customer hears of it.
#[test]
fn what_a_server_tells_is_checked() {
    let told = |entries: Vec<Entry>| {
        let (here, there) = pair(Conditions::default());
        let (_wishes, wished) = channel();
        let job = OrderJob { sources: vec!["a".into()], options: Options::default(), filter: Filter::default() };
        let buyer = Buyer { got: Mutex::default(), wishes: channel().0, plan: &|_, _| {}, go_on: &|_, _| {} };
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut peer = Peer { link: there };
                peer.say(&Message::Hello(Hello::ours()));
                peer.say(&Message::Entries(entries));
                peer.listen();
            });
            order(here, &job, wished, &buyer, &Cancel::new())
        });
        assert!(buyer.got.into_inner().unwrap().entries.is_empty());
        match result {
            Err(CopyError::PeerMisbehaved(what)) => what,
            other => panic!("{other:?}"),
        }
    };
    let file = crate::hostile::file;
    assert_eq!(told(vec![file(1, ROOT, b"b", 1)]), "a source that was not asked for");
    assert_eq!(told(vec![file(1, ROOT, b"../a", 1)]), "a name that is not plain");
    assert_eq!(told(vec![file(1, 9, b"a", 1)]), "an entry in an unknown directory");
    assert_eq!(told(vec![file(0, ROOT, b"a", 1)]), "an id that does not rise");
    assert_eq!(told(vec![file(1, ROOT, b"a", u64::MAX)]), "a size or time that cannot be");
    let link = Entry { kind: Kind::HardLink { to: 1 }, ..file(1, ROOT, b"a", 1) };
    assert_eq!(told(vec![link]), "an entry that cannot be ordered");
}

/// Content that changed on its way is told as that, and by whom is the customer's to know.
#[test]
fn damaged_content_is_set_aside() {
    struct Damaged(Arc<Mutex<Vec<Piece>>>, Sender<Wish>);
    impl Customer<Block> for Damaged {
        fn entries(&self, _: Vec<Entry>) -> Result<(), CopyError> {
            Ok(())
        }
        fn listed(&self) -> Result<(), CopyError> {
            Ok(())
        }
        fn problem(&self, _: FileProblem) -> Result<(), CopyError> {
            Ok(())
        }
        fn note(&self, _: Note) -> Result<(), CopyError> {
            Ok(())
        }
        fn ended(&self, _: Vec<OrderEnd>) -> Result<(), CopyError> {
            Ok(())
        }
        fn delivered(&self, delivery: Delivery<Block>) -> Result<(), CopyError> {
            assert!(delivery.pieces.iter().all(|(piece, range)| (piece.file, range.clone()) == (2, 4..8)));
            self.0.lock().unwrap().extend(delivery.damaged);
            let _ = self.1.send(Wish::Enough);
            Ok(())
        }
    }
    let (here, there) = pair(Conditions::default());
    let (wishes, wished) = channel();
    let damaged = Arc::new(Mutex::new(Vec::new()));
    let customer = Damaged(damaged.clone(), wishes);
    let job = OrderJob { sources: vec!["a".into()], options: Options::default(), filter: Filter::default() };
    let wrong = Piece { hash: [9; 32], ..crate::hostile::piece(1, 0, b"evil", true) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello::ours()));
            peer.block(&[wrong, crate::hostile::piece(2, 0, b"good", true)], b"evilgood");
            while !matches!(peer.hear(), Message::Enough) {}
            peer.finish();
            peer.listen();
        });
        order(here, &job, wished, &customer, &Cancel::new()).unwrap();
    });
    assert_eq!(*damaged.lock().unwrap(), [wrong]);
}
