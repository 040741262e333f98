//! The thread that fills the line.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use haul_netdev::ethernet::{HEADER, on_line, write_pause};
use haul_netdev::{Device, PacketSocket};
use haul_units::{BitRate, Bytes, Cancel, Network, Time};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use rustix::time::Timespec;

use super::counters::Counters;
use super::follow::Target;
use super::neighbours::Neighbours;
use super::pause::pause;
use crate::{ClassId, Next, Scheduler, clock};

/// A class whose rate follows.
#[derive(Debug)]
struct Following {
    class: ClassId,
    most: BitRate,
    target: Target,
    last_bps: u64,
}

/// What a class keeps at most.
#[derive(Debug, Clone, Copy)]
pub struct Room(pub Bytes);

/// From the device to the line.
#[derive(Debug)]
pub struct Pump {
    device: Device,
    socket: PacketSocket,
    neighbours: Neighbours,
    line: BitRate,
    mac: [u8; 6],
    scheduler: Scheduler<Vec<u8>>,
    classes: Vec<(Network, ClassId)>,
    /// Those that follow, with their most, and what they were held to last.
    following: Vec<Following>,
    /// When the line has carried what was given to it.
    line_ends: Time,
    /// Something waits for its place behind what was given.
    behind: bool,
    /// Frames to be sent, and empty ones to be filled.
    batch: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    counters: Arc<Counters>,
}

impl Pump {
    pub fn new(
        device: Device,
        socket: PacketSocket,
        neighbours: Neighbours,
        line: BitRate,
        mac: [u8; 6],
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            device,
            socket,
            neighbours,
            line,
            mac,
            scheduler: Scheduler::new(line),
            classes: Vec::new(),
            following: Vec::new(),
            line_ends: clock::now(),
            behind: false,
            batch: Vec::new(),
            spare: Vec::new(),
            counters,
        }
    }

    /// Packets to a network have a rate and room; those to none of them never come here.
    pub fn add_class(&mut self, to: Network, rate: BitRate, room: Room, target: Option<Target>) {
        let class = self.scheduler.add_class(Some(rate), room.0);
        self.following.extend(target.map(|target| Following { class, most: rate, target, last_bps: 0 }));
        self.classes.push((to, class));
        // The longest one first.
        self.classes.sort_by_key(|(network, _)| std::cmp::Reverse(network.bits()));
    }

    pub fn run(mut self, cancel: &Cancel) -> io::Result<()> {
        // Before programs that compute; where it may not be, it is one among all.
        let _ = setpriority_process(Some(gettid()), -20);
        while !cancel.is_cancelled() {
            self.take_in()?;
            self.follow();
            self.fill();
            self.send(cancel)?;
            self.wait()?;
        }
        Ok(())
    }

    /// What has come through the device gets into its class.
    fn take_in(&mut self) -> io::Result<()> {
        for _ in 0..INTAKE {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.resize(HEADER + MTU_MOST, 0);
            let room = frame.get_mut(HEADER..).unwrap_or_default();
            let length = match rustix::io::read(&self.device, room) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.spare.push(frame);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            frame.truncate(HEADER + length);
            self.admit(frame);
        }
        Ok(())
    }

    fn admit(&mut self, mut frame: Vec<u8>) {
        let Some((to, ether_type)) = destination(frame.get(HEADER..).unwrap_or_default()) else { return };
        let Some((_, class)) = self.classes.iter().find(|(network, _)| network.holds(to)) else { return };
        let Some(mac) = self.neighbours.mac(to) else {
            self.counters.unresolved.fetch_add(1, Ordering::Relaxed);
            return;
        };
        frame[..6].copy_from_slice(&mac);
        frame[6..12].copy_from_slice(&self.mac);
        frame[12..14].copy_from_slice(&ether_type);
        let bytes = on_line(Bytes((frame.len() - HEADER) as u64));
        if !self.scheduler.push(*class, frame, bytes) {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Holds classes to what their connections ask for by now.
    fn follow(&mut self) {
        for following in &mut self.following {
            let bps = following.target.load(Ordering::Relaxed);
            if bps != following.last_bps {
                following.last_bps = bps;
                let rate = if bps == 0 { following.most } else { BitRate::from_bps(bps).min(following.most) };
                self.scheduler.set_rate(following.class, Some(rate));
            }
        }
    }

    /// Makes frames for the line until enough of it is filled.
    fn fill(&mut self) {
        let now = clock::now();
        if self.line_ends < now {
            self.scheduler.silent(self.line.bytes_in(now.since(self.line_ends)));
            // That nobody had anything to send is no fault.
            self.counters.silences.fetch_add(u64::from(self.behind), Ordering::Relaxed);
            self.line_ends = now;
        }
        while self.line_ends.since(now) < AHEAD && self.batch.len() < BATCH {
            let bytes = match self.scheduler.carry() {
                Next::Frame(frame) => {
                    let bytes = on_line(Bytes((frame.len() - HEADER) as u64));
                    self.counters.packets.fetch_add(1, Ordering::Relaxed);
                    self.batch.push(frame);
                    bytes
                }
                Next::Gap(bytes) => {
                    let mut frame = self.spare.pop().unwrap_or_default();
                    write_pause(bytes, self.mac, &mut frame);
                    self.counters.gaps.fetch_add(1, Ordering::Relaxed);
                    self.counters.gap_bytes.fetch_add(bytes.0, Ordering::Relaxed);
                    self.batch.push(frame);
                    bytes
                }
                Next::Idle => break,
            };
            self.line_ends += self.line.time_for(bytes);
        }
        self.behind = self.scheduler.waiting() > 0;
    }

    fn send(&mut self, cancel: &Cancel) -> io::Result<()> {
        let (mut sent, mut full_since) = (0, None);
        while sent < self.batch.len() && !cancel.is_cancelled() {
            match self.socket.send(self.batch.get(sent..).unwrap_or_default()) {
                Ok(count) => (sent, full_since) = (sent + count, None),
                Err(error) if is_full(&error) => {
                    let now = clock::now();
                    // An interface without a carrier says the same, for as long as it has none.
                    if now.since(*full_since.get_or_insert(now)) > PATIENCE {
                        let said = format!("the interface has taken nothing for {} s: is its cable in?", PATIENCE.as_secs());
                        return Err(io::Error::new(io::ErrorKind::NetworkDown, said));
                    }
                    pause(Duration::from_micros(20));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.spare.append(&mut self.batch);
        self.spare.truncate(SPARE);
        Ok(())
    }

    /// Until the line needs more, or until something comes.
    fn wait(&mut self) -> io::Result<()> {
        if self.scheduler.waiting() > 0 {
            let ahead = self.line_ends.since(clock::now());
            if let Some(time) = ahead.checked_sub(AHEAD / 2) {
                pause(time);
            }
            return Ok(());
        }
        let mut fds = [PollFd::new(&self.device, PollFlags::IN)];
        let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        match poll(&mut fds, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where a packet goes, and what Ethernet calls its kind.
fn destination(packet: &[u8]) -> Option<(IpAddr, [u8; 2])> {
    match packet.first()? >> 4 {
        4 => Some((IpAddr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?), [0x08, 0x00])),
        6 => Some((IpAddr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?), [0x86, 0xDD])),
        _ => None,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(code) if code == Errno::NOBUFS.raw_os_error() || code == Errno::BUSY.raw_os_error() || code == Errno::AGAIN.raw_os_error())
}

/// How much of the line is filled ahead: a process that waits for a processor is back within this time on a host that is not overloaded (a scheduling slice of Linux is 3 ms
/// at most where two want to run), and a packet waits no longer for what was given to the interface before it.
const AHEAD: Duration = Duration::from_millis(3);
/// Pauses that a switch asks for are over after hundreds of milliseconds at most; then this host's packets are better off on their usual way.
const PATIENCE: Duration = Duration::from_secs(5);
/// Frames at once, fewer than the smallest ring of a common interface has (256).
const BATCH: usize = 192;
/// Packets taken in before the line is looked at again.
const INTAKE: usize = 256;
/// The largest packet of a jumbo frame.
const MTU_MOST: usize = 9216;
/// Empty frames that are kept.
const SPARE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_says_where_it_goes() {
        let mut four = [0; 20];
        four[0] = 0x45;
        four[16..].copy_from_slice(&[10, 0, 0, 7]);
        assert_eq!(destination(&four), Some(("10.0.0.7".parse().unwrap(), [8, 0])));
        let mut six = [0; 40];
        six[0] = 0x60;
        six[39] = 1;
        assert_eq!(destination(&six), Some(("::1".parse().unwrap(), [0x86, 0xDD])));
        for nonsense in [&four[..19], &six[..39], &[], &[0x50; 60]] {
            assert_eq!(destination(nonsense), None);
        }
    }
}
