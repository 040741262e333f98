//! Which flow has brought how much, and when the last of it was there: what receivers write, and senders wait for.

use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use haul_lab::now;
use haul_units::{Bytes, Time};

/// All flows of a run, by their numbers.
#[derive(Debug)]
pub struct Ledger {
    flows: Vec<Entry>,
    /// When each was complete.
    complete: Mutex<Vec<Option<Time>>>,
    changed: Condvar,
    over: AtomicBool,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Entry {
    /// Of a flow without end: none.
    size: Option<Bytes>,
    received: AtomicU64,
}

impl Ledger {
    /// For flows of these sizes.
    pub fn new(sizes: impl Iterator<Item = Option<Bytes>>) -> Self {
        let flows: Vec<Entry> = sizes.map(|size| Entry { size, received: AtomicU64::new(0) }).collect();
        let complete = Mutex::new(vec![None; flows.len()]);
        Self { flows, complete, changed: Condvar::new(), over: AtomicBool::new(false), closed: AtomicBool::new(false) }
    }

    /// The payload that has arrived.
    pub fn received(&self, flow: usize) -> Bytes {
        Bytes(self.flows.get(flow).map_or(0, |entry| entry.received.load(Ordering::Acquire)))
    }

    /// When the last byte was there.
    pub fn complete_at(&self, flow: usize) -> Option<Time> {
        self.lock().get(flow).copied().flatten()
    }

    /// Whether all flows but those without end are complete.
    pub fn is_complete(&self) -> bool {
        let complete = self.lock();
        self.flows.iter().zip(&*complete).all(|(entry, at)| entry.size.is_none() || at.is_some())
    }

    /// Waits until a flow is complete, or the run is over.
    pub fn wait(&self, flow: usize) {
        let waiting = |complete: &mut Vec<Option<Time>>| !self.is_over() && complete.get(flow).is_some_and(Option::is_none);
        drop(self.changed.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends the run: whoever waits or sends goes. Those who receive stay: a sender may have to get rid of what it has begun.
    pub fn end(&self) {
        // With the lock: nobody is between a look at this and the wait.
        let _complete = self.lock();
        self.over.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// When no sender is left: those who receive go too.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether nobody receives any more.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reads a flow to its end, or until nobody receives any more. What blocks for ever is woken by who closes.
    pub fn receive(&self, mut from: impl Read) -> io::Result<()> {
        let (mut room, mut name, mut named) = (vec![0; ROOM], [0; NAME_BYTES], 0);
        while !self.is_closed() {
            let count = match from.read(&mut room) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if is_not_yet(&error) => continue,
                Err(error) => return Err(error),
            };
            let arrived = room.get(..count).unwrap_or_default();
            let (before, missing) = (named, (NAME_BYTES - named).min(count));
            name[before..before + missing].copy_from_slice(&arrived[..missing]);
            named += missing;
            if named == NAME_BYTES {
                // What came before the name was whole counts with it.
                let held = if before < NAME_BYTES { before } else { 0 };
                self.add(u64::from_be_bytes(name) as usize, (count + held) as u64);
            }
        }
        Ok(())
    }

    fn add(&self, flow: usize, bytes: u64) {
        let Some(entry) = self.flows.get(flow) else { return };
        let received = entry.received.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if entry.size.is_some_and(|size| received >= size.as_u64() && received - bytes < size.as_u64()) {
            let at = now();
            self.lock()[flow] = Some(at);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Time>>> {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a flow sends, in pieces, its own number first: all of its size, or without end.
pub fn send(
    flow: usize,
    size: Option<Bytes>,
    ledger: &Ledger,
    mut write: impl FnMut(&[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut content = vec![0; ROOM];
    content[..NAME_BYTES].copy_from_slice(&(flow as u64).to_be_bytes());
    let mut sent = 0;
    while !ledger.is_over() && size.is_none_or(|size| sent < size.as_u64()) {
        let left = size.map_or(u64::MAX, |size| size.as_u64() - sent);
        // The name once, zeros from then on.
        let from = if sent < NAME_BYTES as u64 { sent as usize } else { NAME_BYTES };
        let piece = &content[from..from + ((ROOM - from) as u64).min(left) as usize];
        match write(piece) {
            Ok(count) => sent += count as u64,
            Err(error) if is_not_yet(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A time of waiting was over, or a signal came.
fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A flow begins with its number.
const NAME_BYTES: usize = 8;
/// What is read and written at once.
const ROOM: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time, and now and then nothing.
    struct Trickle(Vec<u8>, usize);

    impl Read for Trickle {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = self.0.len().min(3);
            room[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn sent(flow: usize, size: u64, ledger: &Ledger) -> Vec<u8> {
        let mut bytes = Vec::new();
        let write = |piece: &[u8]| {
            // Never all at once.
            let count = piece.len().min(5000);
            bytes.extend_from_slice(&piece[..count]);
            Ok(count)
        };
        send(flow, Some(Bytes(size)), ledger, write).expect("it can be written");
        bytes
    }

    #[test]
    fn a_flow_arrives_under_its_number_whole_and_once() {
        let ledger = Ledger::new([None, Some(Bytes(70_000)), Some(Bytes(9))].into_iter());
        for (flow, size) in [(1, 70_000), (2, 9)] {
            let bytes = sent(flow, size, &ledger);
            assert_eq!(bytes.len() as u64, size);
            assert!(!ledger.is_complete());
            ledger.receive(Trickle(bytes, 0)).expect("it can be read");
            assert_eq!(ledger.received(flow), Bytes(size));
            assert!(ledger.complete_at(flow).is_some());
            ledger.wait(flow);
        }
        assert!(ledger.is_complete() && ledger.complete_at(0).is_none());
    }

    #[test]
    fn nobody_waits_for_what_will_not_come() {
        let ledger = Ledger::new(std::iter::once(Some(Bytes(10))));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ledger.wait(0));
            ledger.end();
            waiting.join().expect("it returns");
        });
        assert!(ledger.is_over() && !ledger.is_complete());
    }
}
