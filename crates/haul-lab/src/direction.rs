//! The thread of one direction: reads what comes, asks the player what is due, writes it, sleeps until the next.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::{now, thread_cpu};
use crate::control::{Control, DirectionStats, Request};
use crate::packet::Which;
use crate::player::{Player, Run};
use crate::store::{Packet, Store};
use haul_sim::LinkConfig;
use haul_units::{BitRate, Time};

/// Where packets come from and go to.
pub trait Ports: Send + 'static {
    /// Reads one packet or super-packet into `room`; nothing when there is none.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<Received>;

    /// Writes `which` segments of a packet that was received.
    fn deliver(&mut self, packet: &Packet, bytes: &[u8], which: Which, kind: Delivery) -> io::Result<()>;

    /// Adds what becomes readable when there is something to receive.
    fn inputs(&self, fds: &mut Inputs);
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A packet, and how many bytes of the room it takes.
    Packet(usize, Packet),
    /// Something that is for nobody.
    Unroutable,
    /// Nothing more at this point.
    Nothing,
}

/// How segments are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// All of them, as they came.
    Whole,
    /// Some, or with a mark.
    Part,
    /// One, with other bytes.
    Corrupted,
}

/// File descriptors to wait for.
#[derive(Debug, Default)]
pub struct Inputs(Vec<libc::pollfd>);

/// A running direction; it ends with this value.
#[derive(Debug)]
pub struct Direction {
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// Reads at a time, so that what is due does not wait for long.
const READS_IN_A_ROW: usize = 16;
/// While packets come and go all the time, the thread looks after them this often: being woken for each one would cost more than all
/// else, and take processor time from the programs that are to be watched. What comes after a pause is looked after at once.
const TICK: Duration = Duration::from_micros(80);

impl Direction {
    /// Starts the thread.
    pub fn start(name: &str, config: LinkConfig, ports: impl Ports) -> io::Result<Self> {
        let control = Arc::new(Control::new()?);
        let shared = Arc::clone(&control);
        let body = move || {
            be_prompt();
            let (player, store) = (Player::new(config), Store::new());
            if config.rate != BitRate::MAX {
                // What is on the wire when the link is full.
                store.prepare(config.rate.bytes_in(config.delay));
            }
            let (inputs, stats) = (Inputs::default(), DirectionStats::default());
            Worker { player, store, ports, control: shared, inputs, stats }.run();
        };
        let thread = std::thread::Builder::new().name(format!("wan {name}")).spawn(body)?;
        Ok(Self { control, thread: Some(thread) })
    }

    /// What it has done so far.
    pub fn stats(&self) -> DirectionStats {
        self.control.stats()
    }

    /// Gives the link other properties.
    pub fn set(&self, config: LinkConfig) {
        self.control.set(config);
    }
}

impl Drop for Direction {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

struct Worker<P> {
    player: Player,
    store: Store,
    ports: P,
    control: Arc<Control>,
    inputs: Inputs,
    stats: DirectionStats,
}

impl<P: Ports> Worker<P> {
    fn run(&mut self) {
        let mut busy_at = Time::ZERO;
        loop {
            let turn = now();
            let done = (self.stats.reads, self.stats.writes);
            if let Some(request) = self.control.take() {
                if request.stop {
                    return;
                }
                self.answer(&request);
            }
            let more = self.read();
            self.write();
            let was_busy = turn.since(busy_at) < 2 * TICK;
            if done != (self.stats.reads, self.stats.writes) {
                busy_at = turn;
            }
            if !more {
                self.sleep((was_busy && busy_at == turn).then(|| turn + TICK));
            }
        }
    }

    /// Whether there may be more.
    fn read(&mut self) -> bool {
        for _ in 0..READS_IN_A_ROW {
            let mut unroutable = false;
            let (ports, store) = (&mut self.ports, &mut self.store);
            let kept = store.keep(|room| {
                ports.receive(room).map(|received| match received {
                    Received::Packet(len, packet) => Some((len, packet)),
                    Received::Unroutable => {
                        unroutable = true;
                        None
                    }
                    Received::Nothing => None,
                })
            });
            match kept {
                Ok(Some((segment, packet))) => {
                    self.stats.reads += 1;
                    let kept = self.player.offer(now(), &segment, &packet.layout);
                    drop(segment);
                    if kept < packet.layout.segments {
                        self.store.trim(packet.layout.bytes_until(kept));
                    }
                }
                Ok(None) if unroutable => self.stats.unroutable_pkts += 1,
                // An error is not the end: a device that is down comes up again.
                Ok(None) | Err(_) => return false,
            }
        }
        true
    }

    fn write(&mut self) {
        let mut time = now();
        while let Some(run) = self.player.next_run(time) {
            let late = time.since(run.arrived.0);
            self.stats.late += late;
            self.stats.latest = self.stats.latest.max(late);
            self.stats.writes += 1;
            if self.deliver(&run).is_err() {
                self.stats.failed_writes += 1;
            }
            time = now();
        }
    }

    fn deliver(&mut self, run: &Run) -> io::Result<()> {
        let kind = match run {
            run if run.corrupted => Delivery::Corrupted,
            run if run.is_whole() => Delivery::Whole,
            _ => Delivery::Part,
        };
        run.first.with_bytes(|packet, bytes| self.ports.deliver(packet, bytes, run.which(), kind))
    }

    /// Until something is due or comes, or until the `tick`, whatever comes.
    fn sleep(&mut self, tick: Option<Time>) {
        let time = now();
        let wake_at = tick.or_else(|| self.player.wake_at());
        if wake_at.is_some_and(|at| at <= time) {
            return;
        }
        self.inputs.0.clear();
        self.inputs.add(self.control.wake_fd());
        if tick.is_none() {
            self.ports.inputs(&mut self.inputs);
        }
        self.inputs.wait(wake_at.map(|at| at.since(time)));
        if self.inputs.is_first_ready() {
            self.control.on_woken();
        }
    }

    fn answer(&mut self, request: &Request) {
        let time = now();
        if let Some(config) = request.config {
            self.player.reconfigure(time, config);
        }
        let (queued, inside_pkts) = self.player.inside(time);
        let (offered, delivered) = self.player.bytes();
        let memory = self.store.memory();
        let (link, cpu) = (self.player.stats(), thread_cpu());
        self.stats = DirectionStats { at: time, link, offered, delivered, queued, inside_pkts, cpu, memory, ..self.stats };
        self.control.answer(request, self.stats);
    }
}

impl Inputs {
    /// One more.
    pub fn add(&mut self, fd: BorrowedFd<'_>) {
        self.0.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    }

    /// Whether the one that was added first can be read.
    fn is_first_ready(&self) -> bool {
        self.0.first().is_some_and(|first| first.revents != 0)
    }

    fn wait(&mut self, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        });
        let until = timeout.as_ref().map_or(std::ptr::null(), |timeout| &raw const *timeout);
        // SAFETY: the array and the time outlive the call; a descriptor closed meanwhile would only be reported. Woken by a signal or
        // for nothing: the loop looks again in any case.
        unsafe { libc::ppoll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, until, std::ptr::null()) };
    }
}

/// Asks the system to wake this thread when it is due, not some time after. What is refused stays as it is: without privileges the
/// delays are less exact, not wrong.
fn be_prompt() {
    // SAFETY: plain system calls on numbers and on a structure that outlives the call; both concern the calling thread only. The structure is one of numbers, of which some C libraries have more.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameters);
    }
}
