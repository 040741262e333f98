use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use crate::frames::{Frame, Frames, MAX_SEGMENTS, MAX_TRAIN_BYTES, fits, head};
use crate::{Carrier, Handed, Lane, Side, tcp};

const LONG: Duration = Duration::from_secs(10);

/// What a peer in a test gets.
struct Told(mpsc::Sender<(Vec<u8>, usize)>, bool);

impl Side for Told {
    fn deliver(&self, train: &mut [u8], segment_bytes: usize) {
        let _ = self.0.send((train.to_vec(), segment_bytes));
    }

    fn heard_over_udp(&self) -> bool {
        self.1
    }
}

fn carrier(udp: bool) -> (Carrier, mpsc::Receiver<(Vec<u8>, usize)>) {
    let (tell, told) = mpsc::channel();
    (Carrier::new(Told(tell, udp)), told)
}

struct OneName(tcp::Name, Carrier, Arc<Mutex<usize>>);

impl tcp::Welcome for OneName {
    fn is_over(&self) -> bool {
        false
    }
    fn knows(&self, name: &tcp::Name, _: std::net::SocketAddr) -> bool {
        *name == self.0
    }
    fn take(&self, _: &tcp::Name, _: std::net::SocketAddr, lane: Lane, _: tcp::Cut) {
        self.1.add(lane).unwrap();
        *self.2.lock().unwrap() += 1;
    }
}

/// A listener for carriers of this name on loopback: its address, and how many lanes it has taken.
fn listener(name: tcp::Name, carrier: Carrier) -> (std::net::SocketAddr, Arc<Mutex<usize>>) {
    let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let (addr, taken) = (listener.local_addr().unwrap(), Arc::default());
    let welcome = OneName(name, carrier, Arc::clone(&taken));
    std::thread::spawn(move || tcp::accept(&listener, welcome));
    (addr, taken)
}

#[test]
fn what_goes_in_comes_out_over_three_lanes_and_each_end_says_whether_it_has_heard_udp() {
    let (near, near_told) = carrier(false);
    let (far, far_told) = carrier(true);
    let (addr, taken) = listener([7; 16], far.clone());
    for _ in 0..3 {
        near.add(tcp::connect(addr, None, &[7; 16], LONG).unwrap()).unwrap();
    }
    assert_eq!((near.lanes(), near.ask(LONG)), (3, Some(true)));
    let mut wanted: Vec<_> = (0..500usize).map(|n| (vec![n as u8; 1 + n * 131], 1 + n * 131 / 40)).collect();
    for (train, segment) in &wanted {
        assert_eq!(near.send(train, *segment, LONG), Handed::Taken);
    }
    let mut got: Vec<_> = (0..500).map(|_| far_told.recv_timeout(LONG).unwrap()).collect();
    got.sort();
    wanted.sort();
    assert!(got == wanted, "content or sizes differ");
    assert_eq!(far.ask(LONG), Some(false));
    assert_eq!(far.send(b"back", 4, LONG), Handed::Taken);
    assert_eq!(near_told.recv_timeout(LONG).unwrap(), (b"back".to_vec(), 4));
    assert_eq!(*taken.lock().unwrap(), 3);
}

#[test]
fn the_last_words_before_the_first_lane_are_kept_and_leave_with_it() {
    let (near, _) = carrier(false);
    let (far, far_told) = carrier(false);
    for n in 0..100u8 {
        assert_eq!(near.send(&[n; 1000], 1000, LONG), Handed::Lost, "nobody takes it");
    }
    let (addr, _) = listener([1; 16], far);
    near.add(tcp::connect(addr, None, &[1; 16], LONG).unwrap()).unwrap();
    let got: Vec<u8> = (0..16).map(|_| far_told.recv_timeout(LONG).unwrap().0[0]).collect();
    assert_eq!(got, (84..100).collect::<Vec<_>>());
    assert!(far_told.recv_timeout(Duration::from_millis(50)).is_err(), "no more than that was kept");
}

#[test]
fn who_does_not_know_the_name_is_cut_off_and_who_talks_nonsense_loses_his_lane() {
    let (far, _told) = carrier(false);
    let (addr, taken) = listener([7; 16], far.clone());
    assert!(tcp::connect(addr, None, &[8; 16], LONG).is_err());
    assert_eq!(*taken.lock().unwrap(), 0);
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(&[&b"haulTCP1"[..], &[7; 16]].concat()).unwrap();
    while far.lanes() == 0 {
        std::thread::yield_now();
    }
    // A segment longer than its train.
    stream.write_all(&[0, 1, 0, 2, 0]).unwrap();
    while far.lanes() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_that_reads_nothing_is_not_waited_for_and_costs_a_bounded_queue() {
    let (near, _) = carrier(false);
    let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = listener.local_addr().unwrap();
    let stream = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"haulTCP1").unwrap();
        stream
    });
    near.add(tcp::connect(addr, None, &[7; 16], LONG).unwrap()).unwrap();
    let _held = stream.join().unwrap();
    let mut taken = 0;
    while near.send(&vec![1; 60_000], 60_000, Duration::from_millis(100)) == Handed::Taken {
        taken += 1;
        assert!(taken < 2000, "120 MB are waiting somewhere");
    }
    assert_eq!(near.send(&vec![1; 60_000], 60_000, Duration::ZERO), Handed::Full, "whose train it still is");
    near.close();
    assert_eq!(near.send(&[1], 1, LONG), Handed::Lost);
}

#[test]
fn what_was_taken_is_written_before_the_end() {
    let (near, _) = carrier(false);
    let (far, told) = carrier(false);
    let (addr, _) = listener([7; 16], far.clone());
    near.add(tcp::connect(addr, None, &[7; 16], LONG).unwrap()).unwrap();
    for _ in 0..50 {
        assert_eq!(near.send(&vec![5; 50_000], 50_000, LONG), Handed::Taken);
    }
    near.close();
    assert_eq!((0..50).filter(|_| told.recv_timeout(LONG).is_ok()).count(), 50);
    while far.lanes() > 0 {
        std::thread::yield_now();
    }
}

/// Frames in a stream that is read in pieces.
fn all_frames(stream: &[u8], piece: usize) -> (Vec<(Vec<u8>, usize)>, bool) {
    let (mut frames, mut found, mut rest) = (Frames::default(), Vec::new(), stream);
    while !rest.is_empty() {
        let room = frames.room();
        assert!(!room.is_empty());
        let read = rest.len().min(piece).min(room.len());
        room[..read].copy_from_slice(&rest[..read]);
        frames.on_read(read);
        rest = &rest[read..];
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(Frame::Train { train, segment_bytes })) => {
                    assert!(fits(train.len(), segment_bytes));
                    found.push((train.to_vec(), segment_bytes));
                }
                Ok(Some(_)) => found.push((Vec::new(), 0)),
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}

#[test]
fn the_largest_frames_fit() {
    let train = vec![3; MAX_TRAIN_BYTES];
    let segment = MAX_TRAIN_BYTES.div_ceil(MAX_SEGMENTS);
    let stream: Vec<u8> = (0..5).flat_map(|_| [&head(train.len(), segment)[..], &train].concat()).collect();
    for piece in [1000, 65_536, usize::MAX] {
        let (found, sound) = all_frames(&stream, piece);
        assert!(sound && found.len() == 5 && found.iter().all(|(found, _)| *found == train));
    }
}

proptest! {
    #[test]
    fn frames_are_found_however_they_are_read(
        trains in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..3000), 1..64usize), 0..20),
        piece in 1..9000usize,
    ) {
        let trains: Vec<_> = trains.into_iter().map(|(train, parts)| {
            let segment = train.len().div_ceil(parts);
            (train, segment)
        }).collect();
        let stream: Vec<u8> = trains.iter().flat_map(|(train, segment)| [&head(train.len(), *segment)[..], train].concat()).collect();
        let (found, sound) = all_frames(&stream, piece);
        prop_assert!(sound);
        prop_assert_eq!(found, trains);
    }

    #[test]
    fn noise_ends_or_is_frames_and_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200_000), piece in 1..70_000usize) {
        let (found, _) = all_frames(&noise, piece);
        prop_assert!(found.len() <= noise.len());
    }
}

/// What an end is asked to call, and the frames that come to one who does not know that word.
#[test]
fn who_is_asked_to_call_back_does_so_before_it_answers() {
    struct Called(mpsc::Sender<u16>);
    impl Side for Called {
        fn deliver(&self, _: &mut [u8], _: usize) {}
        fn call_back(&self, port: u16) {
            let _ = self.0.send(port);
        }
    }
    let (tell, told) = mpsc::channel();
    let (near, _near_told) = carrier(false);
    let (addr, _) = listener([9; 16], Carrier::new(Called(tell)));
    near.add(tcp::connect(addr, None, &[9; 16], LONG).unwrap()).unwrap();
    for port in [1, 60_000] {
        near.call_back(port);
        assert_eq!(near.ask(LONG), Some(false));
        assert_eq!(told.try_recv(), Ok(port));
    }
}

#[test]
fn a_port_comes_in_any_pieces_and_is_one() {
    let bytes = [&crate::frames::call_back(7700).concat()[..], &head(0, 3), &head(0, 0), &head(0, 3), &head(1, 1), b"x"].concat();
    for pieces in 1..=bytes.len() {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in bytes.chunks(pieces) {
            frames.room()[..piece.len()].copy_from_slice(piece);
            frames.on_read(piece.len());
            while let Some(frame) = frames.next().unwrap() {
                found.push(format!("{frame:?}"));
            }
        }
        // Without a port behind it the word says nothing, and what stands there is itself.
        let train = "Train { train: [120], segment_bytes: 1 }";
        assert_eq!(found, ["CallBack { port: 7700 }", "Unknown", "Ping", "Unknown", train], "{pieces}");
    }
}

#[test]
fn what_the_programs_say_to_each_other_arrives_among_trains_and_no_more_than_a_few_words_wait() {
    let (near, _near_told) = carrier(false);
    let (far, far_told) = carrier(false);
    let (addr, _) = listener([9; 16], far.clone());
    near.add(tcp::connect(addr, None, &[9; 16], LONG).unwrap()).unwrap();
    assert_eq!(near.send(&[5; 100], 50, LONG), Handed::Taken);
    near.say(b"a meeting");
    assert_eq!(far.hear(LONG).as_deref(), Some(&b"a meeting"[..]));
    assert_eq!(far_told.recv_timeout(LONG).unwrap(), (vec![5; 100], 50));
    far.say(&[7; 2000]);
    assert_eq!(near.hear(LONG), Some(vec![7; crate::MAX_SAID_BYTES]), "longer ones are cut");
    for word in 0..100 {
        near.say(&[word]);
        near.ask(LONG).expect("an answer");
    }
    let waiting = std::iter::from_fn(|| far.hear(Duration::ZERO)).count();
    assert_eq!(waiting, 8);
    near.close();
    assert_eq!(near.hear(LONG), None, "who has closed waits for nothing");
}

#[test]
fn words_come_in_any_pieces_and_lies_about_their_length_end_the_lane() {
    let bytes = [&crate::frames::say(b"words")[..], &head(0, 0), &head(1, 1), b"x"].concat();
    for pieces in 1..bytes.len() {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in bytes.chunks(pieces) {
            frames.room()[..piece.len()].copy_from_slice(piece);
            frames.on_read(piece.len());
            while let Some(frame) = frames.next().unwrap() {
                found.push(match frame {
                    Frame::Said(words) => String::from_utf8_lossy(words).into_owned(),
                    other => format!("{other:?}"),
                });
            }
        }
        assert_eq!(found[..2], ["words", "Ping"], "{pieces}");
    }
    for second in [head(1025, 0), head(5, 1)] {
        let lie = [head(0, 4), second].concat();
        let mut frames = Frames::default();
        frames.room()[..lie.len()].copy_from_slice(&lie);
        frames.on_read(lie.len());
        assert!(frames.next().is_err());
    }
}
