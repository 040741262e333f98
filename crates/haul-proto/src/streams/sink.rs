//! Where the bytes of a placed stream go.

use std::fmt;
use std::sync::Arc;

use crate::wire::StreamId;

/// The receiving end of a placed stream: gives each run of bytes its place.
///
/// The transport calls it while the connection is locked: it must be quick and must not call back. Each byte is committed or delivered once; the peer
/// chooses the offsets, so an implementation checks them against what it expects before it gives out memory.
pub trait Sink: Send {
    /// Exactly `len` bytes of memory for the bytes at `offset`, none of which has been committed; they are decrypted straight into it, and it may be
    /// scribbled on by a packet that then turns out not to be authentic. `None`: they come by [`Sink::deliver`] if at all.
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]>;

    /// The bytes in the slot are authentic. `end`: a block ends after them.
    fn commit(&mut self, offset: u64, len: usize, end: bool);

    /// Authentic bytes that had no slot: repeated, overlapping what is there, or unwanted. Takes what is new and returns how much of it was.
    fn deliver(&mut self, offset: u64, bytes: &[u8], end: bool) -> usize;

    /// The sender has written `total` bytes in all and will write no more.
    fn finish(&mut self, total: u64);

    /// Whether these bytes can be taken now if they are new; the packet is authentic. If not, it counts as lost on the way, and comes again. Bytes that will
    /// never be wanted have room: they are acknowledged and dropped.
    fn has_room(&mut self, offset: u64, len: usize) -> bool {
        let _ = (offset, len);
        true
    }

    /// The sender has given up, or the connection has ended: nothing more comes.
    fn reset(&mut self, code: u64);

    /// Bytes that the application is done with: what is received and not consumed is bounded by the credit.
    fn consumed(&self) -> u64;
}

/// Makes the sink of each placed stream that the peer opens.
#[derive(Clone)]
pub struct SinkFactory(Arc<dyn Fn(StreamId) -> Box<dyn Sink> + Send + Sync>);

impl SinkFactory {
    /// A factory out of a function.
    pub fn new(make: impl Fn(StreamId) -> Box<dyn Sink> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// The sink for a stream.
    pub fn make(&self, id: StreamId) -> Box<dyn Sink> {
        (self.0)(id)
    }
}

impl fmt::Debug for SinkFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SinkFactory")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Sink;

    /// Takes nothing.
    pub struct Nothing;

    impl Sink for Nothing {
        fn slot(&mut self, _offset: u64, _len: usize) -> Option<&mut [u8]> {
            None
        }

        fn commit(&mut self, _offset: u64, _len: usize, _end: bool) {}

        fn deliver(&mut self, _offset: u64, _bytes: &[u8], _end: bool) -> usize {
            0
        }

        fn finish(&mut self, _total: u64) {}

        fn reset(&mut self, _code: u64) {}

        fn consumed(&self) -> u64 {
            0
        }
    }
}
