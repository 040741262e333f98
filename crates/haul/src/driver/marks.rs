//! Datagrams that an application wants which no connection gets: those that begin with a mark.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// How many may wait for the application; what comes beyond is lost.
const WAITING: usize = 64;
/// The longest that is taken, in bytes.
const LONGEST: usize = 1280;

/// One, and who has sent it.
pub(super) type Marked = (SocketAddr, Vec<u8>);

/// Who wants datagrams of which mark.
#[derive(Default)]
pub(super) struct Marks {
    by: Mutex<Option<([u8; 8], SyncSender<Marked>)>>,
    /// Anybody does.
    wanted: AtomicBool,
}

impl Marks {
    /// From now on, in the place of whoever did before.
    pub(super) fn want(&self, mark: [u8; 8]) -> Receiver<Marked> {
        let (give, received) = sync_channel(WAITING);
        self.wanted.store(true, Ordering::Relaxed);
        *self.by.lock().unwrap_or_else(PoisonError::into_inner) = Some((mark, give));
        received
    }

    /// How much of a train is for the connections: the system makes a train of whatever one sender has sent, and what has a mark may be the last of it.
    pub(super) fn cut(&self, from: SocketAddr, train: &[u8], segment_bytes: usize) -> usize {
        if !self.wanted.load(Ordering::Relaxed) {
            return train.len();
        }
        let last = train.chunks(segment_bytes.max(1)).next_back().unwrap_or_default();
        let is_taken = last.len() < train.len() && self.take(from, last);
        train.len() - if is_taken { last.len() } else { 0 }
    }

    /// Whether a datagram is for whoever wants it: then it has it, if there was room.
    pub(super) fn take(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let marks = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, give)) = marks.as_ref().filter(|(mark, _)| datagram.starts_with(mark)) else { return false };
        if datagram.len() <= LONGEST {
            let _ = give.try_send((from, datagram.to_vec()));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: [u8; 8] = *b"mark of ";

    #[test]
    fn what_has_the_mark_at_the_end_of_a_train_is_cut_off() {
        let (marks, from) = (Marks::default(), "192.0.2.1:1".parse().expect("an address"));
        let marked = [&MARK[..], &[0; 56]].concat();
        let train = [&[1; 1200][..], &[1; 1200], &marked].concat();
        assert_eq!(marks.cut(from, &train, 1200), 2464, "nobody wants it");
        let received = marks.want(MARK);
        assert_eq!(marks.cut(from, &train, 1200), 2400);
        assert_eq!(received.try_recv(), Ok((from, marked.clone())));
        assert_eq!(marks.cut(from, &train[..2400], 1200), 2400);
        // A train of one is looked at when nobody else wants it.
        assert_eq!(marks.cut(from, &marked, 64), 64);
        assert!(received.try_recv().is_err());
    }
}
