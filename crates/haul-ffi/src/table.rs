//! Handles: numbers for C, entries behind them.
//!
//! A number is a generation (31 bits), a kind (8 bits) and a place (24 bits). A place is used again with the next generation, so a number that was closed is never
//! another thing, until a place has been used 2^31 times. The kind is there for words about handles of the wrong one.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use haul::Identity;
use haul_fleet::Session;

use crate::failure::{Code, Failure, Outcome};
use crate::fork;
use crate::things::{Conn, Job, Place, Receiver, Sender, Stream, TheBlock};
use crate::waiting::{Gate, Patience};
use crate::watch::Watch;

/// What a handle names.
pub enum Object {
    Identity(Identity),
    Endpoint(Place),
    Connection(Conn),
    Stream(Stream),
    Sender(Sender),
    Receiver(Receiver),
    Block(TheBlock),
    Job(Job),
    Fleet(Session),
}

/// A thing with a handle.
pub struct Entry {
    pub object: Object,
    pub gate: Gate,
    pub watch: OnceLock<Arc<Watch>>,
    /// Milliseconds that sending and receiving wait; below 0 for ever.
    pub send_timeout: AtomicI64,
    pub receive_timeout: AtomicI64,
}

impl Entry {
    /// A thing whose calls wait as long as it takes.
    pub fn new(object: Object) -> Self {
        let [send_timeout, receive_timeout] = [AtomicI64::new(-1), AtomicI64::new(-1)];
        Self { object, gate: Gate::default(), watch: OnceLock::new(), send_timeout, receive_timeout }
    }

    /// A thing that was made from another one, and waits as long.
    pub fn from(parent: &Self, object: Object) -> Self {
        let copied = |timeout: &AtomicI64| AtomicI64::new(timeout.load(Ordering::Relaxed));
        let (send_timeout, receive_timeout) = (copied(&parent.send_timeout), copied(&parent.receive_timeout));
        Self { send_timeout, receive_timeout, ..Self::new(object) }
    }

    pub fn sending(&self) -> Patience {
        Patience::from_ms(self.send_timeout.load(Ordering::Relaxed))
    }

    pub fn receiving(&self) -> Patience {
        Patience::from_ms(self.receive_timeout.load(Ordering::Relaxed))
    }
}

impl Object {
    fn kind(&self) -> u8 {
        match self {
            Self::Identity(_) => 1,
            Self::Endpoint(_) => 2,
            Self::Connection(_) => 3,
            Self::Stream(_) => 4,
            Self::Sender(_) | Self::Receiver(_) => 5,
            Self::Block(_) => 6,
            Self::Job(_) => 7,
            Self::Fleet(_) => 8,
        }
    }
}

/// What a handle of a kind is called.
fn name(kind: u8) -> &'static str {
    const NAMES: [&str; 9] = [
        "a thing of no kind",
        "an identity",
        "an endpoint",
        "a connection",
        "a stream",
        "a stream of blocks",
        "a block",
        "a job",
        "a fleet",
    ];
    NAMES.get(usize::from(kind)).unwrap_or(&"a thing of no kind")
}

struct Slot {
    generation: u32,
    entry: Option<Arc<Entry>>,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { slots: Vec::new(), free: Vec::new() });

/// Gives a thing its handle.
pub fn insert(entry: Entry) -> Outcome<i64> {
    fork::note_use();
    let kind = entry.object.kind();
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let at = match table.free.pop() {
        Some(at) => at,
        None if table.slots.len() <= MAX_PLACE => {
            table.slots.push(Slot { generation: 1, entry: None });
            table.slots.len() - 1
        }
        None => return Err(Failure::new(Code::System, format!("{} handles are open: close some", MAX_PLACE + 1))),
    };
    let Some(slot) = table.slots.get_mut(at) else { return Err(Failure::new(Code::Internal, "a free place that is none")) };
    slot.entry = Some(Arc::new(entry));
    Ok(i64::from(slot.generation) << 32 | i64::from(kind) << 24 | at as i64)
}

/// The thing of a handle.
pub fn get(handle: i64) -> Outcome<Arc<Entry>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.find(handle).map(Arc::clone).ok_or_else(|| unknown(handle))
}

/// Takes a handle away from its thing.
pub fn remove(handle: i64) -> Outcome<Arc<Entry>> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    if table.find(handle).is_none() {
        return Err(unknown(handle));
    }
    let at = place(handle);
    table.take(at).ok_or_else(|| unknown(handle))
}

/// Takes all handles away, those first whose things depend on others: streams before connections, connections before endpoints.
pub fn take_all() -> Vec<Arc<Entry>> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let mut taken: Vec<_> = (0..table.slots.len()).filter_map(|at| table.take(at)).collect();
    drop(table);
    taken.sort_by_key(|entry| std::cmp::Reverse(entry.object.kind()));
    taken
}

impl Table {
    fn find(&self, handle: i64) -> Option<&Arc<Entry>> {
        let slot = self.slots.get(place(handle)).filter(|slot| i64::from(slot.generation) == handle >> 32)?;
        slot.entry.as_ref().filter(|entry| i64::from(entry.object.kind()) == handle >> 24 & 0xff)
    }

    fn take(&mut self, at: usize) -> Option<Arc<Entry>> {
        let slot = self.slots.get_mut(at)?;
        let entry = slot.entry.take()?;
        slot.generation += 1;
        // A place that has used up its numbers is left alone.
        if i32::try_from(slot.generation).is_ok() {
            self.free.push(at);
        }
        Some(entry)
    }
}

fn place(handle: i64) -> usize {
    (handle & MAX_PLACE as i64) as usize
}

fn unknown(handle: i64) -> Failure {
    let what = match (handle, (handle >> 24 & 0xff) as u8) {
        (0, _) => "0 is no handle".to_owned(),
        (..0, _) => format!("{handle} is no handle, but the code of a failure"),
        (_, kind @ 1..=8) if handle >> 32 > 0 => format!("the handle of {} that is closed: {handle:#x}", name(kind)),
        _ => format!("{handle:#x} is no handle: is it kept in a variable smaller than haul_t?"),
    };
    Failure::new(Code::Handle, what)
}

/// A handle of a kind that cannot do what is asked.
pub fn wrong_kind(entry: &Entry, wanted: &str) -> Failure {
    Failure::new(Code::Handle, format!("the handle of {} where {wanted} is wanted", name(entry.object.kind())))
}

const MAX_PLACE: usize = (1 << 24) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_number_is_never_another_thing() {
        let make = || insert(Entry::new(Object::Identity(Identity::generate()))).unwrap();
        let first = make();
        assert!(first > 0 && get(first).is_ok());
        assert!(remove(first).is_ok());
        let second = make();
        assert_eq!(place(first), place(second));
        assert!(get(first).is_err_and(|failure| failure.code == Code::Handle));
        assert!(remove(first).is_err() && get(second).is_ok());
        for wrong in [0, -1, i64::MIN, i64::MAX, second & 0xffff_ffff, second ^ 1 << 24, second | 1 << 32, second + 1] {
            assert!(wrong == second || get(wrong).is_err(), "{wrong:#x}");
        }
        assert!(remove(second).is_ok());
    }
}
