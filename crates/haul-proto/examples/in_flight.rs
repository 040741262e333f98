//! What packets in flight cost: time for a report on both sides, and memory, for windows of 1,000 to 1,000,000 packets.
//!
//! A client sends blocks at 10 Gbit/s to a server in the same process, in virtual time, over a round trip that puts so many packets in flight;
//! encryption is real. Data need not wait anywhere: the server's clock is a round trip ahead of the client's, so that the server has a packet at
//! once and its report reaches the client when the client's clock gets there. Only what the library does with reports is timed. Memory is counted
//! by the allocator, for each side, without the blocks themselves.
//!
//!     in_flight [--loss RATIO] [PACKETS ..]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use haul_cc::ControllerChoice;
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Event, Handled, Origin, ServerConfig, Sink, SinkFactory, StreamId,
    StreamKind, TRAIN_BYTES, TransportConfig,
};
use haul_units::{BitRate, Bytes, Time};

type Failure = Box<dyn Error + Send + Sync>;

const RATE: BitRate = BitRate::gbps(10);
const PACKET: u64 = 1472;
const BLOCK: usize = 1 << 20;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1).peekable();
    let mut loss = 0.0;
    if args.next_if_eq("--loss").is_some() {
        loss = args.next().ok_or("--loss needs a ratio")?.parse()?;
    }
    let mut windows = args.map(|arg| arg.parse()).collect::<Result<Vec<u64>, _>>()?;
    if windows.is_empty() {
        windows = vec![1_000, 10_000, 100_000, 1_000_000];
    }
    println!("loss {} %", loss * 100.0);
    println!(
        "packets in flight   round trip   reports  packets/report   sender ns/report  ns/packet   receiver ns/report   memory B/packet: sender  receiver"
    );
    for window in windows {
        Trial::new(window, loss)?.run()?;
    }
    Ok(())
}

/// Client and server; index 0 and 1.
struct Trial {
    window: u64,
    loss: f64,
    round_trip: Duration,
    now: Time,
    client: Connection,
    server: Option<Connection>,
    endpoints: [Endpoint; 2],
    /// What the server has sent: when the client gets it.
    back: VecDeque<(Time, Vec<u8>)>,
    train: Vec<u8>,
    written: u64,
    stream: Option<StreamId>,
    random: u64,
    lost: u64,
    measured: Option<Measured>,
}

#[derive(Default)]
struct Measured {
    reports: u64,
    client: Duration,
    built: u64,
    server: Duration,
    acknowledged_before: u64,
}

impl Trial {
    fn new(window: u64, loss: f64) -> Result<Self, Failure> {
        let transport = TransportConfig {
            controller: ControllerChoice::Fixed(RATE),
            memory: Bytes::gib(16),
            max_packet: PACKET as u16,
            sinks: Some(SinkFactory::new(|_| Box::new(Void::default()))),
            ..TransportConfig::default()
        };
        let identity = Identity::generate();
        let server = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let client = ClientConfig { transport, ..ClientConfig::new(PeerTrust::Anyone) };
        let now = Time::ZERO + Duration::from_secs(1);
        let mut endpoints = [
            Endpoint::new(EndpointConfig { seed: [1; 32], server: None })?,
            Endpoint::new(EndpointConfig { seed: [2; 32], server: Some(server) })?,
        ];
        let (_, client) = endpoints[0].connect(now, address(1), client)?;
        Ok(Self {
            window,
            loss,
            round_trip: RATE.time_for(Bytes(window * PACKET)),
            now,
            client,
            server: None,
            endpoints,
            back: VecDeque::new(),
            train: vec![0; TRAIN_BYTES],
            written: 0,
            stream: None,
            random: 7,
            lost: 0,
            measured: None,
        })
    }

    fn run(mut self) -> Result<(), Failure> {
        while !self.client.is_established() {
            self.step();
        }
        // Small round trips first have to find the packet size.
        let start = self.now + Duration::from_millis(20);
        while self.now < start {
            self.step();
        }
        let before = [heap(0), heap(1)];
        self.stream = Some(self.client.open(StreamKind::Placed)?);
        // Credit, which starts small, needs some round trips to let the window fill.
        let full = self.now + self.round_trip * 5 + Duration::from_millis(100);
        while self.now < full {
            self.step();
        }
        let acknowledged_before = self.client.stats(self.now).map_or(0, |stats| stats.acknowledged.as_u64());
        self.measured = Some(Measured { acknowledged_before, ..Measured::default() });
        let end = self.now + Duration::from_millis(400);
        while self.now < end {
            self.step();
        }
        self.print(before);
        Ok(())
    }

    fn print(&self, before: [i64; 2]) {
        let (Some(measured), Some(stats)) = (&self.measured, self.client.stats(self.now)) else { return };
        let packets = (stats.acknowledged.as_u64() - measured.acknowledged_before) as f64 / PACKET as f64;
        let in_flight = stats.in_flight.as_u64() / PACKET;
        let per = |time: Duration, count: f64| time.as_nanos() as f64 / count.max(1.0);
        println!(
            "{in_flight:17} {:9.1} ms {:9} {:15.0} {:18.0} {:10.1} {:20.0} {:25.2} {:9.2}",
            self.round_trip.as_secs_f64() * 1e3,
            measured.reports,
            packets / measured.reports as f64,
            per(measured.client, measured.reports as f64),
            per(measured.client, packets),
            per(measured.server, measured.built as f64),
            (heap(0) - before[0]) as f64 / in_flight as f64,
            (heap(1) - before[1]) as f64 / in_flight as f64,
        );
        if in_flight < self.window * 8 / 10 {
            println!("  only {in_flight} of {} packets in flight", self.window);
        }
    }

    /// The client does what there is to do now; then time goes on to what comes next.
    fn step(&mut self) {
        self.write();
        SIDE.store(0, Ordering::Relaxed);
        while self.back.front().is_some_and(|(at, _)| *at <= self.now)
            && let Some((_, datagram)) = self.back.pop_front()
        {
            self.client_takes(datagram);
        }
        if self.client.poll_timeout() <= self.now {
            self.client.handle_timeout(self.now);
        }
        while self.client.poll_event().is_some() {}
        let mut train = std::mem::take(&mut self.train);
        while let Some(transmit) = self.client.poll_transmit(self.now, &mut train) {
            SIDE.store(1, Ordering::Relaxed);
            self.server_takes(&mut train[..transmit.len], transmit.segment);
            SIDE.store(0, Ordering::Relaxed);
        }
        self.train = train;
        SIDE.store(1, Ordering::Relaxed);
        self.server_timers();
        SIDE.store(0, Ordering::Relaxed);
        let next = self.back.front().map_or(Time::NEVER, |(at, _)| *at).min(self.client.poll_timeout());
        let server_next = self.server.as_ref().map_or(Time::NEVER, Connection::poll_timeout);
        self.now = next.min(server_next.before(self.round_trip)).max(self.now + Duration::from_micros(1));
    }

    fn write(&mut self) {
        let Some(stream) = self.stream else { return };
        while self.client.buffered() < self.client.send_budget() {
            let mut block = self.client.take_released().unwrap_or_else(|| vec![0; BLOCK]);
            block.resize(BLOCK, 0);
            if self.client.write_block(stream, self.written, block).is_err() {
                return;
            }
            self.written += BLOCK as u64;
        }
    }

    fn client_takes(&mut self, mut datagram: Vec<u8>) {
        let len = datagram.len();
        let (start, measured) = (now(), self.measured.is_some());
        self.client.handle_train(self.now, Origin::just_now(self.now, address(1)), &mut datagram, len);
        if measured && let Some(measured) = &mut self.measured {
            measured.client += start.elapsed();
            measured.reports += 1;
        }
        SIDE.store(2, Ordering::Relaxed);
        drop(datagram);
        SIDE.store(0, Ordering::Relaxed);
    }

    fn server_takes(&mut self, train: &mut [u8], segment: usize) {
        let at = self.now + self.round_trip;
        let Some(server) = &mut self.server else {
            match self.endpoints[1].handle(at, address(0), train) {
                Handled::New(_, connection) => self.server = Some(*connection),
                Handled::Respond(answer) => self.back.push_back((at, answer)),
                _ => {}
            }
            return;
        };
        for packet in train.chunks_mut(segment) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let is_data = packet.len() > 1000 && self.stream.is_some();
            if is_data && ((self.random >> 40) as f64) < self.loss * (1u64 << 24) as f64 {
                self.lost += 1;
                continue;
            }
            let len = packet.len();
            server.handle_train(at, Origin::just_now(at, address(0)), packet, len);
        }
        server.sink_released();
        self.server_sends(at);
    }

    /// The server's clock may run as far as the client's next packet could arrive.
    fn server_timers(&mut self) {
        let horizon = self.now + self.round_trip;
        while let Some(server) = &mut self.server {
            let at = server.poll_timeout();
            if at > horizon {
                return;
            }
            server.handle_timeout(at.max(self.now));
            self.server_sends(at.max(self.now));
        }
    }

    fn server_sends(&mut self, at: Time) {
        let Some(server) = &mut self.server else { return };
        while let Some(event) = server.poll_event() {
            if event == Event::Connected {
                self.endpoints[1].on_connected(server.id(), server.met());
            }
        }
        let mut out = vec![0; TRAIN_BYTES];
        loop {
            let start = now();
            let Some(transmit) = server.poll_transmit(at, &mut out) else { return };
            if let Some(measured) = &mut self.measured {
                measured.server += start.elapsed();
                measured.built += 1;
            }
            SIDE.store(2, Ordering::Relaxed);
            self.back.push_back((at, out[..transmit.len].to_vec()));
            SIDE.store(1, Ordering::Relaxed);
        }
    }
}

fn address(side: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side], 4433))
}

/// Takes everything and keeps nothing.
#[derive(Default)]
struct Void {
    place: Vec<u8>,
    taken: u64,
}

impl Sink for Void {
    fn slot(&mut self, _offset: u64, len: usize) -> Option<&mut [u8]> {
        self.place.resize(len, 0);
        Some(&mut self.place)
    }

    fn commit(&mut self, _offset: u64, len: usize, _end: bool) {
        self.taken += len as u64;
    }

    fn deliver(&mut self, _offset: u64, bytes: &[u8], _end: bool) -> usize {
        self.taken += bytes.len() as u64;
        bytes.len()
    }

    fn finish(&mut self, _total: u64) {}

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        self.taken
    }
}

/// Which side allocates: 0 and 1 are client and server, 2 is the network between them.
static SIDE: AtomicUsize = AtomicUsize::new(0);
static HEAP: [AtomicI64; 3] = [AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0)];

fn heap(side: usize) -> i64 {
    HEAP[side].load(Ordering::Relaxed)
}

/// Counts what each side holds, blocks and buffers for datagrams left out.
struct Counting;

fn count(bytes: usize, sign: i64) {
    if bytes != BLOCK && bytes != TRAIN_BYTES {
        HEAP[SIDE.load(Ordering::Relaxed)].fetch_add(sign * bytes as i64, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}
