#[cfg(unix)]
use std::sync::mpsc;

use super::*;
#[cfg(unix)]
use crate::{Carrier, Side};

const LONG: Duration = Duration::from_secs(10);

/// Both ends of a connection over loopback.
fn connection() -> (TcpStream, Arc<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    near.set_read_timeout(Some(LONG)).unwrap();
    (near, Arc::new(listener.accept().unwrap().0))
}

/// Those who come, and what they came with.
#[derive(Default)]
struct Visitors(Vec<(TcpStream, Place)>);

impl Visitors {
    /// One who says nothing.
    fn come(&mut self, pending: &Arc<Mutex<Pending>>, from: &str) {
        let (near, far) = connection();
        self.0.push((near, Place::take(pending, SocketAddr::new(from.parse().unwrap(), 1000), &far)));
    }

    fn has_place(&self, pending: &Mutex<Pending>, index: usize) -> bool {
        lock(pending).cuts.contains_key(&self.0[index].1.number)
    }
}

#[test]
fn of_those_who_say_nothing_the_oldest_of_the_fullest_source_is_cut_off() {
    let pending = Arc::new(Mutex::new(Pending::new()));
    let mut visitors = Visitors::default();
    visitors.come(&pending, "198.51.100.1");
    for n in 0..MAX_PENDING_OF_SOURCE {
        visitors.come(&pending, &format!("192.0.2.{n}"));
    }
    assert!((0..=MAX_PENDING_OF_SOURCE).all(|index| visitors.has_place(&pending, index)));
    // No more of this source: its first one goes, and hears of it.
    visitors.come(&pending, "192.0.2.255");
    assert!(!visitors.has_place(&pending, 1) && visitors.has_place(&pending, 2));
    assert_eq!((&visitors.0[1].0).read(&mut [0]).unwrap(), 0);
    // Other sources, until all places are taken and beyond.
    for n in 0..4 * MAX_PENDING_OF_SOURCE {
        visitors.come(&pending, &format!("10.0.{}.{n}", n / MAX_PENDING_OF_SOURCE));
    }
    assert!(visitors.has_place(&pending, 0), "one alone of its source stays");
    assert!(!visitors.has_place(&pending, 2), "the oldest of those of which there are most goes");
    let all = lock(&pending);
    assert_eq!((all.strangers.len(), all.cuts.len()), (MAX_PENDING, MAX_PENDING));
    drop(all);
    drop(visitors);
    let all = lock(&pending);
    assert!(all.strangers.is_empty() && all.cuts.is_empty(), "who has left holds a place");
}

/// Is there as long as a thread of its carrier's is.
#[cfg(unix)]
struct Held(#[expect(dead_code, reason = "its end tells")] mpsc::Sender<()>);

#[cfg(unix)]
impl Side for Held {
    fn deliver(&self, _: &mut [u8], _: usize) {}
}

/// On Windows a write that waits goes on waiting; its connection ends by keep-alive.
#[cfg(unix)]
#[test]
fn who_is_cut_off_holds_no_thread_whether_it_goes_on_talking_or_reads_nothing() {
    let (tell, told) = mpsc::channel();
    let carrier = Carrier::new(Held(tell));
    let (mut near, far) = connection();
    let cut = Cut(Arc::clone(&far));
    carrier.add(lane(far).unwrap()).unwrap();
    while carrier.send(&vec![1; 60_000], 60_000, Duration::from_millis(100)) == crate::Handed::Taken {}
    // Questions, so that the lane does not fall silent, until nobody takes them any more.
    let talking = thread::spawn(move || {
        while near.write_all(&[0; 4]).is_ok() {
            thread::park_timeout(Duration::from_millis(1));
        }
    });
    cut.off();
    carrier.close();
    drop(carrier);
    assert_eq!(told.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected), "a thread of its lane goes on");
    drop(cut);
    talking.join().unwrap();
}
