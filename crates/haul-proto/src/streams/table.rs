//! The table of a connection's streams.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::placed::PlacedHalf;
use super::receive::{ChunkPool, ReceiveHalf, StreamViolation};
use super::schedule::Schedule;
use super::send::SendHalf;
use super::sink::SinkFactory;
use crate::flow::SendCredit;
use crate::wire::Frame;
use crate::wire::{Side, StreamId, StreamKind};

/// Bounds of one side.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Streams of each kind that the peer may have open at once.
    pub streams: u32,
    /// Credit that an ordered stream starts with.
    pub stream_window: u64,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub enum Receiver {
    /// Read in order.
    Ordered(ReceiveHalf),
    /// Delivered by offset.
    Placed(PlacedHalf),
}

/// One stream.
#[derive(Debug)]
pub struct Stream {
    /// What we send on it.
    pub send: Option<SendHalf>,
    /// What we receive on it.
    pub receive: Option<Receiver>,
    /// The peer has opened it, and nobody here has accepted it yet.
    waits: bool,
}

/// A stream whose turn it is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which stream.
    pub stream: StreamId,
    /// It has what no credit holds back: lost bytes to send again, or its end.
    pub again: bool,
}

/// Stream numbers are small and bounded by our own limits: nobody can aim collisions at them.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, value: u32) {
        // Fibonacci hashing spreads consecutive numbers over the high bits, which the table uses.
        self.0 = (self.0 ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    limits: Limits,
    /// Credit that the handshake has told the peer for each ordered stream: what it believes of a new one, whatever the limits have become since.
    told_window: u64,
    sinks: Option<SinkFactory>,
    map: HashMap<StreamId, Stream, BuildHasherDefault<IdHasher>>,
    /// Streams of ours opened so far, and how many the peer allows, by kind.
    opened: [u32; 3],
    allowed: [u32; 3],
    /// Streams of the peer's opened so far, closed so far, and how many we have allowed, by kind.
    peer_opened: [u32; 3],
    peer_closed: [u32; 3],
    granted: [u32; 3],
    waiting: [VecDeque<StreamId>; 3],
    peer_stream_credit: u64,
    /// Who sends new bytes next.
    schedule: Schedule,
    /// Who sends lost bytes again, or the bare end of its stream: before anything new, for no credit holds them back, and credit may wait for them.
    again: VecDeque<StreamId>,
    /// The connection's credit for sending.
    pub credit: SendCredit,
    /// Memory for reassembly.
    pub pool: ChunkPool,
    /// Buffers of blocks that have been acknowledged, for reuse.
    pub released: Vec<Vec<u8>>,
    /// Bytes written and not yet sent for the first time, on all streams.
    pub unsent: u64,
    /// Bytes written and not yet acknowledged, on all streams.
    pub unacknowledged: u64,
}

impl Streams {
    /// No streams; `limits` are ours, the peer's come with [`Self::on_peer_limits`].
    pub fn new(side: Side, limits: Limits, sinks: Option<SinkFactory>) -> Self {
        Self {
            side,
            limits,
            told_window: limits.stream_window,
            sinks,
            map: HashMap::default(),
            opened: [0; 3],
            allowed: [0; 3],
            peer_opened: [0; 3],
            peer_closed: [0; 3],
            granted: [limits.streams; 3],
            waiting: Default::default(),
            peer_stream_credit: 0,
            schedule: Schedule::default(),
            again: VecDeque::new(),
            credit: SendCredit::new(0),
            pool: ChunkPool::default(),
            released: Vec::new(),
            unsent: 0,
            unacknowledged: 0,
        }
    }

    /// The handshake has told what the peer allows.
    pub fn on_peer_limits(&mut self, streams: u32, confined: bool, data: u64, stream_data: u64) {
        self.allowed = if confined { [1, 0, 0] } else { [streams.min(StreamId::MAX_COUNT); 3] };
        self.credit.raise(data);
        self.peer_stream_credit = stream_data;
    }

    /// Opens a stream; `None` while the peer allows no more.
    pub fn open(&mut self, kind: StreamKind) -> Option<StreamId> {
        let index = self.opened[kind as usize];
        if index >= self.allowed[kind as usize] {
            return None;
        }
        self.opened[kind as usize] += 1;
        let id = StreamId::new(self.side, kind, index);
        let credit = match kind {
            // The connection's credit rules a placed stream: its bytes never wait for one another.
            StreamKind::Placed => u64::MAX,
            _ => self.peer_stream_credit,
        };
        let receive = (kind == StreamKind::Bidirectional).then(|| self.ordered(id));
        self.map.insert(id, Stream { send: Some(SendHalf::new(id, credit)), receive, waits: false });
        Some(id)
    }

    /// A stream that the peer has opened, oldest first.
    pub fn accept(&mut self, kind: StreamKind) -> Option<StreamId> {
        let id = self.waiting[kind as usize].pop_front()?;
        if let Some(stream) = self.map.get_mut(&id) {
            stream.waits = false;
        }
        Some(id)
    }

    /// The peer allows more streams. Returns true if it does.
    pub fn on_max_streams(&mut self, kind: StreamKind, max: u32) -> bool {
        let allowed = &mut self.allowed[kind as usize];
        let more = max > *allowed;
        *allowed = (*allowed).max(max.min(StreamId::MAX_COUNT));
        more
    }

    /// The stream that the peer's packet names. A new one of the peer's is opened, and all before it; `opened` is told of each. `None`: it is closed.
    pub fn on_peer_use(
        &mut self,
        id: StreamId,
        mut opened: impl FnMut(StreamKind),
    ) -> Result<Option<&mut Stream>, StreamViolation> {
        let Some(kind) = id.kind() else { return Err(StreamViolation::NotYours(id)) };
        if id.opener() == self.side {
            if id.index() >= self.opened[kind as usize] {
                return Err(StreamViolation::NotYours(id));
            }
        } else {
            if id.index() >= self.granted[kind as usize] {
                return Err(StreamViolation::BeyondLimit(id));
            }
            while self.peer_opened[kind as usize] <= id.index() {
                self.open_for_peer(kind);
                opened(kind);
            }
        }
        Ok(self.map.get_mut(&id))
    }

    fn open_for_peer(&mut self, kind: StreamKind) {
        let id = StreamId::new(self.side.peer(), kind, self.peer_opened[kind as usize]);
        self.peer_opened[kind as usize] += 1;
        let ordered = || self.ordered(id);
        let (send, receive) = match kind {
            StreamKind::Bidirectional => (Some(SendHalf::new(id, self.peer_stream_credit)), Some(ordered())),
            StreamKind::Unidirectional => (None, Some(ordered())),
            StreamKind::Placed => {
                let receive = self.sinks.as_ref().map(|sinks| PlacedHalf::new(id, sinks.make(id)));
                (None, receive.map(Receiver::Placed))
            }
        };
        self.map.insert(id, Stream { send, receive, waits: true });
        self.waiting[kind as usize].push_back(id);
    }

    /// The receiving half of a new ordered stream: its window may be larger than what the peer believes, and is told with the first bytes that are read.
    fn ordered(&self, id: StreamId) -> Receiver {
        let mut half = ReceiveHalf::new(id, self.told_window);
        half.widen(self.limits.stream_window);
        Receiver::Ordered(half)
    }

    /// The peer may open one bidirectional stream, and no other of any kind, until [`Self::release`].
    pub const fn confine(&mut self) {
        self.limits.streams = 0;
        self.granted = [1, 0, 0];
    }

    /// The peer may open as many streams as these limits say. Returns the frames that tell it.
    pub fn release(&mut self, limits: Limits) -> impl Iterator<Item = Frame> + use<> {
        self.limits = limits;
        self.granted = self.peer_closed.map(|closed| closed.saturating_add(limits.streams).min(StreamId::MAX_COUNT));
        let granted = self.granted;
        StreamKind::ALL.into_iter().map(move |kind| Frame::MaxStreams { kind, max: granted[kind as usize] })
    }

    /// How many streams of this kind the peer may open.
    pub const fn granted(&self, kind: StreamKind) -> u32 {
        self.granted[kind as usize]
    }

    /// Whether the peer has opened a stream of this kind that nobody has accepted.
    pub fn has_waiting(&self, kind: StreamKind) -> bool {
        !self.waiting[kind as usize].is_empty()
    }

    /// Sinks for placed streams, if there are none yet.
    pub fn provide_sinks(&mut self, sinks: SinkFactory) {
        self.sinks.get_or_insert(sinks);
    }

    /// Whether incoming placed streams have somewhere to go.
    pub const fn takes_placed(&self) -> bool {
        self.sinks.is_some()
    }

    /// A stream by its name.
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.map.get_mut(&id)
    }

    /// A stream's sending half.
    pub fn sender(&mut self, id: StreamId) -> Option<&mut SendHalf> {
        self.map.get_mut(&id)?.send.as_mut()
    }

    /// A stream and, apart from it, the memory pool.
    pub fn with_pool(&mut self, id: StreamId) -> Option<(&mut Stream, &mut ChunkPool)> {
        Some((self.map.get_mut(&id)?, &mut self.pool))
    }

    /// A stream's sending half and, apart from it, what acknowledgements fill.
    pub fn sender_and_released(&mut self, id: StreamId) -> Option<(&mut SendHalf, &mut Vec<Vec<u8>>)> {
        Some((self.map.get_mut(&id)?.send.as_mut()?, &mut self.released))
    }

    /// All streams.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut Stream)> {
        self.map.iter_mut().map(|(&id, stream)| (id, stream))
    }

    /// Puts a stream where its turn comes, if it has something to send.
    pub fn schedule(&mut self, id: StreamId) {
        let Some(send) = self.map.get_mut(&id).and_then(|stream| stream.send.as_mut()) else { return };
        if !send.queued_again && (send.has_lost() || send.wants_bare_fin()) {
            send.queued_again = true;
            self.again.push_back(id);
        }
        if !send.queued && send.has_fresh() {
            send.queued = true;
            self.schedule.push(send.priority, id);
        }
    }

    /// Bytes that wait to be sent, new and again, if no stream among those is to get any more.
    pub fn left_at_the_end(&self) -> Option<u64> {
        let sender = |id: &StreamId| self.map.get(id).and_then(|stream| stream.send.as_ref());
        let ends = self.schedule.iter().filter_map(sender).all(SendHalf::is_finished);
        let again: u64 = self.again.iter().filter_map(sender).map(SendHalf::lost_bytes).sum();
        ends.then_some(self.unsent + again)
    }

    /// Whether no stream has anything to send.
    pub fn is_idle(&self) -> bool {
        self.again.is_empty() && self.schedule.is_empty()
    }

    /// The stream whose turn it is, to be given back with [`Self::end_turn`].
    pub fn next_turn(&mut self) -> Option<Turn> {
        match self.again.pop_front() {
            Some(stream) => Some(Turn { stream, again: true }),
            None => self.schedule.pop().map(|stream| Turn { stream, again: false }),
        }
    }

    /// A stream has had its turn: it goes behind the others if it has more; the end of a placed stream that has sent everything goes to `control`.
    pub fn end_turn(&mut self, turn: Turn, control: &mut VecDeque<Frame>) {
        let Some(send) = self.map.get_mut(&turn.stream).and_then(|stream| stream.send.as_mut()) else { return };
        if turn.again {
            send.queued_again = false;
        } else {
            send.queued = false;
        }
        if let Some(total) = send.take_placed_fin() {
            control.push_back(Frame::PlacedFin { stream: turn.stream, total });
        }
        self.schedule(turn.stream);
    }

    /// Drops halves that are over, and the stream with its last half; then the peer may open another one. Returns the frame that tells so. A stream that waits to be accepted stays and counts: a
    /// peer that opens streams and ends them at once has no more of them kept than it may have open.
    pub fn reap(&mut self, id: StreamId) -> Option<Frame> {
        let stream = self.map.get_mut(&id)?;
        if stream.send.as_ref().is_some_and(SendHalf::is_done) {
            stream.send = None;
        }
        let over = match &stream.receive {
            None => true,
            Some(Receiver::Ordered(half)) => half.is_over(),
            Some(Receiver::Placed(half)) => half.is_settled() && half.is_drained(),
        };
        if !over || stream.send.is_some() || stream.waits {
            return None;
        }
        self.map.remove(&id);
        let kind = id.kind().filter(|_| id.opener() != self.side)?;
        let closed = &mut self.peer_closed[kind as usize];
        *closed += 1;
        let max = closed.saturating_add(self.limits.streams).min(StreamId::MAX_COUNT);
        let granted = &mut self.granted[kind as usize];
        // Worth a frame once half of the allowance has been used up.
        (max - *granted >= (self.limits.streams / 2).max(1)).then(|| {
            *granted = max;
            Frame::MaxStreams { kind, max }
        })
    }

    /// Streams open.
    pub fn count(&self) -> usize {
        self.map.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sink::tests::Nothing;
    use super::*;

    fn pair() -> Streams {
        let mut streams = Streams::new(Side::Server, Limits { streams: 4, stream_window: 1 << 20 }, None);
        streams.on_peer_limits(2, false, 1 << 20, 1 << 16);
        streams
    }

    #[test]
    fn opening_is_bounded_both_ways() {
        let mut streams = pair();
        assert!(streams.open(StreamKind::Unidirectional).is_some() && streams.open(StreamKind::Unidirectional).is_some());
        assert_eq!(streams.open(StreamKind::Unidirectional), None);
        assert!(streams.on_max_streams(StreamKind::Unidirectional, 3));
        assert!(streams.open(StreamKind::Unidirectional).is_some());
        let far = StreamId::new(Side::Client, StreamKind::Bidirectional, 4);
        assert_eq!(streams.on_peer_use(far, |_| ()).err(), Some(StreamViolation::BeyondLimit(far)));
        let ours = StreamId::new(Side::Server, StreamKind::Bidirectional, 0);
        assert_eq!(streams.on_peer_use(ours, |_| ()).err(), Some(StreamViolation::NotYours(ours)));
    }

    #[test]
    fn a_late_first_packet_opens_all_before_it_in_order() {
        let mut streams = pair();
        let mut opened = 0;
        let third = StreamId::new(Side::Client, StreamKind::Bidirectional, 2);
        assert!(streams.on_peer_use(third, |_| opened += 1).unwrap().is_some());
        assert_eq!(opened, 3);
        let order: Vec<u32> = std::iter::from_fn(|| streams.accept(StreamKind::Bidirectional)).map(StreamId::index).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn a_closed_stream_makes_room_for_another() {
        let mut streams = pair();
        let mut frames = 0;
        for index in 0..4 {
            let id = StreamId::new(Side::Client, StreamKind::Unidirectional, index);
            let stream = streams.on_peer_use(id, |_| ()).unwrap().unwrap();
            let Some(Receiver::Ordered(half)) = &mut stream.receive else { panic!("ordered") };
            half.on_reset(0, 0).unwrap();
            half.stop();
            assert_eq!(streams.accept(StreamKind::Unidirectional), Some(id));
            frames += u32::from(streams.reap(id).is_some());
            assert!(streams.on_peer_use(id, |_| ()).unwrap().is_none(), "late packets find it closed");
        }
        assert_eq!(frames, 2);
        assert!(streams.on_peer_use(StreamId::new(Side::Client, StreamKind::Unidirectional, 7), |_| ()).is_ok());
    }

    #[test]
    fn a_bare_end_does_not_wait_behind_a_stream_without_credit() {
        let mut streams = pair();
        let [blocked, ends] = [(); 2].map(|()| streams.open(StreamKind::Unidirectional).expect("within the limit"));
        for id in [blocked, ends] {
            streams.sender(id).expect("it is open").write(&[7; 10], &mut Vec::new());
        }
        let send = streams.sender(ends).expect("it is open");
        assert!(send.next_run(1000, 10, false).is_some());
        streams.schedule(blocked);
        streams.sender(ends).expect("it is open").finish();
        streams.schedule(ends);
        assert!(!streams.is_idle());
        let turn = streams.next_turn().expect("two wait");
        let run = streams.sender(turn.stream).expect("it is open").next_run(1000, 0, false);
        assert_eq!(run.map(|run| (run.stream, run.bytes.len(), run.fin)), Some((ends, 0, true)));
        streams.end_turn(turn, &mut VecDeque::new());
        assert_eq!(streams.next_turn().map(|turn| turn.stream), Some(blocked));
        assert!(streams.is_idle());
    }

    #[test]
    fn a_stream_that_is_over_before_anyone_accepts_it_counts_until_then() {
        let mut streams = pair();
        streams.provide_sinks(SinkFactory::new(|_| Box::new(Nothing)));
        let id = |index| StreamId::new(Side::Client, StreamKind::Placed, index);
        for index in 0..4 {
            let Some(Receiver::Placed(half)) = &mut streams.on_peer_use(id(index), |_| ()).unwrap().unwrap().receive else {
                panic!("placed");
            };
            half.on_reset(0, 0).unwrap();
            assert_eq!((streams.reap(id(index)), streams.count()), (None, index as usize + 1));
        }
        assert_eq!(streams.on_peer_use(id(4), |_| ()).err(), Some(StreamViolation::BeyondLimit(id(4))));
        for index in 0..4 {
            assert_eq!(streams.accept(StreamKind::Placed), Some(id(index)));
            assert_eq!(streams.reap(id(index)).is_some(), index % 2 == 1, "worth a frame");
        }
        assert!(streams.count() == 0 && streams.on_peer_use(id(4), |_| ()).is_ok());
    }
}
