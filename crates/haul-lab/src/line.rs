//! An Ethernet line of a known rate from one host to a switch, which drops PAUSE frames and passes the rest on to another host.
//!
//! Both hosts are network namespaces with a TAP device. The line carries one byte after the other: a frame begins where the one before ended, or when it came, whichever is
//! later; so what is spaced by bytes on a line that is never silent is spaced exactly here, as on a wire, however late this thread looks. What the switch sees of a frame's end is
//! recorded; the far host gets it at about that time. The way back has no line.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use haul_netdev::ethernet::{HEADER, is_pause, on_line};
use haul_netdev::iproute::ip_batch;
use haul_netdev::{Device, DeviceError, Layer};
use haul_units::{BitRate, Bytes, Cancel, GapMeter, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use rustix::time::Timespec;

use crate::clock;
use crate::namespace::{Namespace, NamespaceError, set};

/// A line that is there as long as this value.
#[derive(Debug)]
pub struct Line {
    /// The host that the line leads from: [`Line::INTERFACE`] with [`Line::NEAR`].
    pub near: Namespace,
    /// The host behind the switch: [`Line::FAR`].
    pub far: Namespace,
    report: Arc<Mutex<LineReport>>,
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
}

/// What a line has carried.
#[derive(Debug, Clone, Default)]
pub struct LineReport {
    /// Frames that the switch passed on.
    pub frames: u64,
    /// PAUSE frames, which it dropped.
    pub pauses: u64,
    /// Between the ends of frames of 1000 bytes and more that were passed on.
    pub gaps: GapMeter,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// No namespaces, or not as they were to be.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// No devices.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Line {
    /// What the near host's interface is called.
    pub const INTERFACE: &str = "line0";
    /// The near host.
    pub const NEAR: &str = "10.88.0.1";
    /// The far host.
    pub const FAR: &str = "10.88.0.2";

    /// Lays one. Needs root.
    pub fn lay(rate: BitRate) -> Result<Self, LineError> {
        Self::lay_far(rate, Duration::ZERO)
    }

    /// Lays one whose far host is so far behind the switch.
    pub fn lay_far(rate: BitRate, delay: Duration) -> Result<Self, LineError> {
        let host = |address: &str| {
            Namespace::make(|| {
                let device = Device::create(Self::INTERFACE, Layer::Frames)?;
                // Nothing but what a program sends: no router solicitations between.
                set("ipv6/conf/all/disable_ipv6", "1");
                ip_batch(&format!(
                    "link set lo up\nlink set dev {0} txqueuelen 4000 up\naddress add {address}/24 dev {0}\n",
                    Self::INTERFACE
                ))
                .map_err(NamespaceError::from)?;
                Ok::<_, LineError>(device)
            })
        };
        let ((near, from), (far, to)) = (host(Self::NEAR)?, host(Self::FAR)?);
        let (report, cancel) = (Arc::<Mutex<LineReport>>::default(), Cancel::new());
        let switch =
            Switch { from, to, rate, delay, line_ends: clock::now(), travelling: VecDeque::new(), report: Arc::clone(&report) };
        let stop = cancel.clone();
        let thread = std::thread::Builder::new().name("line".to_owned()).spawn(move || switch.run(&stop));
        Ok(Self { near, far, report, cancel, thread: Some(thread.map_err(LineError::Thread)?) })
    }

    /// What it has carried so far.
    pub fn report(&self) -> LineReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Switch {
    from: Device,
    to: Device,
    rate: BitRate,
    delay: Duration,
    line_ends: Time,
    /// Frames with the time at which the far host gets them.
    travelling: VecDeque<(Time, Vec<u8>)>,
    report: Arc<Mutex<LineReport>>,
}

impl Switch {
    fn run(mut self, cancel: &Cancel) {
        // What comes while it does not run is late by that.
        let _ = setpriority_process(Some(gettid()), -20);
        let mut room = vec![0; 65_536];
        while !cancel.is_cancelled() {
            while let Ok(length) = rustix::io::read(&self.from, &mut *room) {
                self.carry(room.get(..length).unwrap_or_default());
            }
            while let Ok(length) = rustix::io::read(&self.to, &mut *room) {
                let _ = rustix::io::write(&self.from, room.get(..length).unwrap_or_default());
            }
            let now = clock::now();
            while self.travelling.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, frame)) = self.travelling.pop_front() {
                    let _ = rustix::io::write(&self.to, &frame);
                }
            }
            let patience = self.travelling.front().map_or(PATIENCE, |(at, _)| at.since(now).min(PATIENCE));
            let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
            let mut fds = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.to, PollFlags::IN)];
            if poll(&mut fds, Some(&patience)).is_err_and(|error| error != Errno::INTR) {
                return;
            }
        }
    }

    fn carry(&mut self, frame: &[u8]) {
        let bytes = on_line(Bytes(frame.len().saturating_sub(HEADER) as u64));
        self.line_ends = self.line_ends.max(clock::now()) + self.rate.time_for(bytes);
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if is_pause(frame) {
            report.pauses += 1;
            return;
        }
        report.frames += 1;
        if frame.len() >= LARGE {
            report.gaps.record(self.line_ends);
        }
        drop(report);
        self.travelling.push_back((self.line_ends + self.delay, frame.to_vec()));
    }
}

/// Acknowledgements and ARP are not what is spaced.
const LARGE: usize = 1000;
/// Until it looks whether it shall end.
const PATIENCE: Duration = Duration::from_millis(50);
