//! Gaps on a real interface: packets for some destinations leave through here, spaced, and the line is filled between them.
//!
//! A TUN device takes what the host routes to these destinations; a thread frames it, puts PAUSE frames between, and sends both through a packet socket past the
//! interface's own queue. It keeps a little more than a millisecond of the line filled ahead: as long as it runs again within that time, spacing is exact to the byte,
//! whatever its timer does. What comes back takes the usual way. When the [`Injector`] goes, so does the device with its routes, and all is as before; nothing else of the
//! host is changed.
//!
//! What it rests on: the interface is Ethernet with a known rate and sends at that rate (a virtual one does not), the next device drops PAUSE frames as IEEE 802.1D wants it, and
//! nobody else sends through the same interface at the same time: what does, takes its place between the frames and moves them.

mod counters;
mod follow;
mod interface;
mod neighbours;
mod pause;
mod pump;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use haul_netdev::{Device, DeviceError, Layer, PacketSocket};
use haul_units::{BitRate, Bytes, Cancel, Network};

use self::counters::Counters;
pub use self::counters::InjectStats;
use self::follow::{Target, follow};
pub use self::interface::{Interface, InterfaceError};
use self::neighbours::Neighbours;
use self::pump::{Pump, Room};

/// What an injector does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectSpec {
    /// The interface, by its name.
    pub interface: String,
    /// What its line carries; none: what the interface says.
    pub line: Option<BitRate>,
    /// Who is held to what.
    pub classes: Vec<InjectClass>,
}

/// Packets to a network are held to a rate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InjectClass {
    /// Where they go; the longest that holds an address counts.
    pub to: Network,
    /// On the line, with headers and what is around frames. The most, where it follows.
    pub rate: BitRate,
    /// Whether it is held to what the windows of TCP's connections there ask for: a window each round trip, all of them together. While none of them sends it has its whole rate.
    pub follows: bool,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// There is nothing to hold to a rate.
    #[error("no class of packets is named")]
    NoClass,
    /// A class asks for nothing, or for more than there is.
    #[error("{rate} to {to} does not lie between 1 bit/s and the line's {line}")]
    Rate {
        /// The class.
        to: Network,
        /// What it asks for.
        rate: BitRate,
        /// What there is.
        line: BitRate,
    },
    /// The interface will not do.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// No device for the packets to come through.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No frames can be sent.
    #[error("cannot open a packet socket on {interface}: {source}")]
    Socket {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// An injector that runs, until it is dropped.
#[derive(Debug)]
pub struct Injector {
    counters: Arc<Counters>,
    line: BitRate,
    targets: Vec<(Network, Target)>,
    cancel: Cancel,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Injector {
    /// Starts one in the network namespace of the calling thread. Needs `CAP_NET_ADMIN` and `CAP_NET_RAW`.
    pub fn start(spec: &InjectSpec) -> Result<Self, InjectError> {
        if spec.classes.is_empty() {
            return Err(InjectError::NoClass);
        }
        let interface = Interface::named(&spec.interface)?;
        let line = match spec.line {
            Some(line) => line,
            None => interface.line()?,
        };
        for &InjectClass { to, rate, follows } in &spec.classes {
            if rate == BitRate::ZERO || rate > line && !follows {
                return Err(InjectError::Rate { to, rate, line });
            }
        }
        interface.accepts_answers()?;
        let sources = spec.classes.iter().map(|class| interface.source_for(class.to)).collect::<Result<Vec<_>, _>>()?;
        let socket = PacketSocket::sender(&spec.interface)
            .map_err(|source| InjectError::Socket { interface: spec.interface.clone(), source })?;
        let neighbours = Neighbours::start(&spec.interface).map_err(InjectError::Thread)?;
        let device = Device::create(DEVICE, Layer::Packets)?;
        let name = device.name()?;
        let (counters, cancel) = (Arc::<Counters>::default(), Cancel::new());
        let mut pump = Pump::new(device, socket, neighbours, line, interface.mac(), Arc::clone(&counters));
        let mut targets = Vec::new();
        for class in &spec.classes {
            let rate = class.rate.min(line);
            let target = class.follows.then(Target::default);
            targets.extend(target.clone().map(|target| (class.to, target)));
            pump.add_class(class.to, rate, Room::of(rate), target);
        }
        if !targets.is_empty() {
            follow(targets.clone(), cancel.clone()).map_err(InjectError::Thread)?;
        }
        let stop = cancel.clone();
        let thread = std::thread::Builder::new().name("haul-pace".to_owned()).spawn(move || pump.run(&stop));
        let injector = Self { counters, line, targets, cancel, thread: Some(thread.map_err(InjectError::Thread)?) };
        // From here on packets come.
        interface.divert(&name, spec.classes.iter().map(|class| class.to).zip(sources))?;
        Ok(injector)
    }

    /// The rate that the line is taken to have.
    pub const fn line(&self) -> BitRate {
        self.line
    }

    /// What the classes that follow are held to now, in the order in which they were given; none of one for which nobody sends.
    pub fn targets(&self) -> Vec<Option<BitRate>> {
        let read = |(_, target): &(Network, Target)| Some(target.load(Ordering::Relaxed)).filter(|bps| *bps > 0);
        self.targets.iter().map(|target| read(target).map(BitRate::from_bps)).collect()
    }

    /// What it has done.
    pub fn stats(&self) -> InjectStats {
        self.counters.read()
    }

    /// Whether it still runs; it ends by itself where its interface goes, or takes nothing for 5 s.
    pub fn runs(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it; the error that ended it before.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.cancel.cancel();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that fills the line failed")))
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Room {
    /// A fifth of a second: as much as a sender needs to fill a path whose round trip is that long.
    fn of(rate: BitRate) -> Self {
        Self(rate.bytes_in(std::time::Duration::from_millis(200)).max(Bytes::kib(64)))
    }
}

/// The kernel counts.
const DEVICE: &str = "haulpace%d";
