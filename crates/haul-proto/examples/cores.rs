//! What of a packet's work is done under the lock of its connection, and what several processors can make of it: `cargo run --release -p haul-proto --example cores`.
//!
//! A client sends blocks to a server in the same process, at 10 Gbit/s of virtual time and with real encryption. What a driver does under the connection's lock (making trains, taking in
//! reports, taking in packets, which opens them) and outside of it (sealing) is timed apart, a train at a time; the best of many short rounds counts, for whatever else runs on the machine only adds.
//!
//! The kernel's part is not in it. `--kernel SEND,RECEIVE` gives it in nanoseconds a packet (`cargo run --release -p haul --example pump` prints both) and adds the model: packets per second of
//! one connection with 1, 2 and 4 processors for each side.
//!
//!     cores [--kernel SEND,RECEIVE] [--ordered]

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use haul_cc::ControllerChoice;
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Handled, Origin, ServerConfig, Sink, SinkFactory, StreamId, StreamKind,
    TRAIN_BYTES, Train, Transmit, TransportConfig,
};
use haul_units::{BitRate, Time};

type Failure = Box<dyn Error + Send + Sync>;

const PACKET: u16 = 1472;
const BLOCK: usize = 1 << 20;
const ROUND_TRIP: Duration = Duration::from_millis(4);
/// Rounds, and how long each is in virtual time.
const ROUNDS: usize = 200;
const ROUND: Duration = Duration::from_millis(5);

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let (mut kernel, mut ordered) = (None, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--kernel" => kernel = Some(pair_of_numbers(&args.next().ok_or("--kernel needs SEND,RECEIVE in ns a packet")?)?),
            "--ordered" => ordered = true,
            _ => return Err(format!("{arg}: not known; see the top of examples/cores.rs").into()),
        }
    }
    let spent = measure(ordered)?;
    println!("ns a packet of {PACKET} bytes, the best of {ROUNDS} rounds of {} ms:", ROUND.as_millis());
    println!("  sender    making trains      {:6.0}   under the lock", spent.making);
    println!("            sealing them       {:6.0}   outside", spent.sealing);
    println!("            taking in reports  {:6.0}   under the lock", spent.reports);
    println!("  receiver  taking in, opening {:6.0}   under the lock", spent.opening);
    let locked = spent.making + spent.reports;
    println!("the lock's share of the sender's own work: {:.0} %", 100.0 * locked / (locked + spent.sealing));
    if let Some(kernel) = kernel {
        print_model(&spent, kernel);
    }
    Ok(())
}

fn pair_of_numbers(text: &str) -> Result<(f64, f64), Failure> {
    let (send, receive) = text.split_once(',').ok_or("--kernel needs two numbers: SEND,RECEIVE")?;
    Ok((send.parse()?, receive.parse()?))
}

/// The bounds: as many packets as processors have time for, and as the one thread, or the lock, lets pass that all of them need.
fn print_model(spent: &Spent, (send, receive): (f64, f64)) {
    let locked = spent.making + spent.reports;
    let sender = locked + spent.sealing + send;
    let row = |name: &str, work: f64, serial: f64| {
        let rate = |cores: f64| 1e3 / (work / cores).max(serial);
        println!("  {name:58} {:6.2} {:6.2} {:6.2}", rate(1.0), rate(2.0), rate(4.0));
    };
    println!("model, million packets a second, by processors for a side:     1      2      4");
    row("sender, one send thread", sender, sender - spent.reports);
    row("sender, were there one a path, and sealing under the lock", sender, locked + spent.sealing);
    row("sender, were there one a path", sender, locked);
    row("receiver, one receive thread", spent.opening + receive, spent.opening + receive);
    row("receiver, one a path, as on a client", spent.opening + receive, spent.opening);
}

/// Nanoseconds a packet.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    making: f64,
    sealing: f64,
    reports: f64,
    opening: f64,
}

impl Spent {
    fn least(self, other: Self) -> Self {
        let Self { making, sealing, reports, opening } = other;
        Self {
            making: self.making.min(making),
            sealing: self.sealing.min(sealing),
            reports: self.reports.min(reports),
            opening: self.opening.min(opening),
        }
    }

    fn each(self, pkts: u64) -> Self {
        let Self { making, sealing, reports, opening } = self;
        let each = |sum: f64| sum / pkts.max(1) as f64;
        Self { making: each(making), sealing: each(sealing), reports: each(reports), opening: each(opening) }
    }
}

fn measure(ordered: bool) -> Result<Spent, Failure> {
    let mut ends = Ends::new()?;
    while !ends.client.is_established() || ends.server.is_none() {
        ends.step();
    }
    let kind = if ordered { StreamKind::Bidirectional } else { StreamKind::Placed };
    ends.stream = Some(ends.client.open(kind)?);
    ends.round();
    (0..20).for_each(|_| ends.round());
    let infinite = Spent { making: f64::MAX, sealing: f64::MAX, reports: f64::MAX, opening: f64::MAX };
    let mut least = infinite;
    for _ in 0..ROUNDS {
        ends.round();
        if ends.pkts < 1000 {
            return Err(format!("only {} packets in a round: the window does not open", ends.pkts).into());
        }
        least = least.least(ends.spent.each(ends.pkts));
    }
    Ok(least)
}

/// Both ends, and the network between them.
struct Ends {
    now: Time,
    client: Connection,
    server: Option<Connection>,
    listener: Endpoint,
    /// What the server has sent: when the client gets it.
    back: VecDeque<(Time, Vec<u8>)>,
    train: Train,
    arrived: Vec<u8>,
    stream: Option<StreamId>,
    written: u64,
    buffer: Vec<u8>,
    spent: Spent,
    pkts: u64,
}

impl Ends {
    fn new() -> Result<Self, Failure> {
        let transport = TransportConfig {
            controller: ControllerChoice::Fixed(BitRate::gbps(10)),
            max_packet: PACKET,
            sinks: Some(SinkFactory::new(|_| Box::new(Void::default()))),
            ..TransportConfig::default()
        };
        let identity = Identity::generate();
        let server = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let client = ClientConfig { transport, ..ClientConfig::new(PeerTrust::Anyone) };
        let now = Time::ZERO + Duration::from_secs(1);
        let listener = Endpoint::new(EndpointConfig { seed: [2; 32], server: Some(server) })?;
        let (_, client) = Endpoint::new(EndpointConfig { seed: [1; 32], server: None })?.connect(now, address(1), client)?;
        Ok(Self {
            now,
            client,
            server: None,
            listener,
            back: VecDeque::new(),
            train: Train::default(),
            arrived: vec![0; TRAIN_BYTES],
            stream: None,
            written: 0,
            buffer: vec![1; BLOCK],
            spent: Spent::default(),
            pkts: 0,
        })
    }

    fn round(&mut self) {
        (self.spent, self.pkts) = (Spent::default(), 0);
        let end = self.now + ROUND;
        while self.now < end {
            self.step();
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_micros(50);
        self.write();
        while self.back.front().is_some_and(|(at, _)| *at <= self.now)
            && let Some((_, mut datagram)) = self.back.pop_front()
        {
            let (len, start) = (datagram.len(), clock());
            self.client.handle_train(self.now, Origin::just_now(self.now, address(1)), &mut datagram, len);
            self.spent.reports += nanos(start);
        }
        if self.client.poll_timeout() <= self.now {
            self.client.handle_timeout(self.now);
        }
        while self.client.poll_event().is_some() {}
        loop {
            let start = clock();
            let Some(transmit) = self.client.poll_train(self.now, &mut self.train) else { break };
            let made = clock();
            let sealed = self.train.sealed();
            self.spent.sealing += nanos(made);
            self.spent.making += (made - start).as_nanos() as f64;
            // The network, and both kernels, copy.
            self.arrived[..transmit.len].copy_from_slice(&sealed[..transmit.len]);
            self.pkts += transmit.len.div_ceil(transmit.segment) as u64;
            self.arrive(transmit);
        }
        self.serve();
    }

    fn write(&mut self) {
        let Some(stream) = self.stream else { return };
        while self.client.buffered() < self.client.send_budget() {
            if stream.kind() != Some(StreamKind::Placed) {
                if self.client.write(stream, &self.buffer).is_err() {
                    return;
                }
                continue;
            }
            let mut block = self.client.take_released().unwrap_or_else(|| vec![0; BLOCK]);
            block.resize(BLOCK, 0);
            if self.client.write_block(stream, self.written, block).is_err() {
                return;
            }
            self.written += BLOCK as u64;
        }
    }

    fn arrive(&mut self, transmit: Transmit) {
        let (now, train) = (self.now, &mut self.arrived[..transmit.len]);
        let Some(server) = &mut self.server else {
            match self.listener.handle(now, address(0), train) {
                Handled::New(_, connection) => self.server = Some(*connection),
                Handled::Respond(answer) => self.back.push_back((now, answer)),
                _ => {}
            }
            return;
        };
        let start = clock();
        server.handle_train(now, Origin::just_now(now, address(0)), train, transmit.segment);
        self.spent.opening += nanos(start);
    }

    fn serve(&mut self) {
        let Some(server) = &mut self.server else { return };
        if server.poll_timeout() <= self.now {
            server.handle_timeout(self.now);
        }
        while server.poll_event().is_some() {}
        server.sink_released();
        if let Some(stream) = self.stream.filter(|stream| stream.kind() != Some(StreamKind::Placed)) {
            while server.read(stream, &mut self.arrived).is_ok_and(|len| len > 0) {}
        }
        while let Some(transmit) = server.poll_transmit(self.now, &mut self.arrived) {
            self.back.push_back((self.now + ROUND_TRIP, self.arrived[..transmit.len].to_vec()));
        }
    }
}

fn address(side: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side], 4433))
}

/// Takes everything, into places as far apart as those of a block, and keeps nothing.
#[derive(Default)]
struct Void {
    block: Vec<u8>,
    taken: u64,
}

impl Sink for Void {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        self.block.resize(2 * BLOCK, 0);
        let start = (offset % BLOCK as u64) as usize;
        self.block.get_mut(start..start + len)
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

fn nanos(since: Instant) -> f64 {
    (clock() - since).as_nanos() as f64
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn clock() -> Instant {
    Instant::now()
}
