//! TUN devices with offloads on: super-packets in and out, checksums left to us.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::direction::{Delivery, Inputs, Ports, Received};
use crate::packet::{Part, VNET_BYTES, Which, finish_checksum, parse};
use crate::store::Packet;

/// One end of a device: what the kernel sends there is read here, and what is written here, it receives.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// `/dev/net/tun` cannot be opened.
    #[error("cannot open /dev/net/tun: {0}")]
    Open(Errno),
    /// It cannot be made.
    #[error("cannot make a TUN device: {0}")]
    Create(io::Error),
    /// The kernel has TUN devices, but not with these offloads.
    #[error("this kernel's TUN devices cannot carry super-packets: {0}")]
    Offload(io::Error),
}

impl Tun {
    /// Makes a device in the network namespace of the calling thread. It goes with this value.
    pub fn create(name: &str) -> Result<Self, TunError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(TunError::Open)?;
        // SAFETY: all-zero bytes are a valid `ifreq`: it is made of integers and unions of integers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *place = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
        if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } < 0 {
            return Err(TunError::Create(io::Error::last_os_error()));
        }
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, OFFLOADS) } < 0 {
            // Older kernels (before 6.2) know no UDP segmentation; UDP then comes as single packets.
            // SAFETY: as above.
            if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, TCP_OFFLOADS) } < 0 {
                return Err(TunError::Offload(io::Error::last_os_error()));
            }
        }
        Ok(Self { fd })
    }

    /// Another handle of the same device.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }
}

/// A direction between the devices of two sides.
#[derive(Debug)]
pub struct TunPorts {
    pub inputs: Vec<Tun>,
    pub outputs: Vec<Tun>,
    /// Which output has which address.
    pub routes: Vec<(IpAddr, u32)>,
    /// The input to read first: each in its turn.
    turn: usize,
    scratch: Vec<u8>,
}

impl TunPorts {
    /// From these to those.
    pub fn new(inputs: Vec<Tun>, outputs: Vec<Tun>, routes: Vec<(IpAddr, u32)>) -> Self {
        Self { inputs, outputs, routes, turn: 0, scratch: Vec::new() }
    }

    fn route(&self, destination: &[u8]) -> Option<u32> {
        let is = |address: &IpAddr| match address {
            IpAddr::V4(address) => address.octets() == *destination,
            IpAddr::V6(address) => address.octets() == *destination,
        };
        let known = self.routes.iter().find(|(address, _)| is(address)).map(|(_, to)| *to);
        // A lone host may be a router for what lies behind it.
        known.or_else(|| (self.outputs.len() == 1 && !is_multicast(destination)).then_some(0))
    }
}

/// What the kernel says to everybody on its link stays there: IPv4 multicast and broadcast, IPv6 multicast.
fn is_multicast(destination: &[u8]) -> bool {
    destination.first().is_none_or(|first| if destination.len() == 4 { *first >= 224 } else { *first == 0xff })
}

impl Ports for TunPorts {
    fn receive(&mut self, room: &mut [u8]) -> io::Result<Received> {
        for _ in 0..self.inputs.len() {
            let input = self.turn % self.inputs.len();
            self.turn = input + 1;
            let Some(tun) = self.inputs.get(input) else { continue };
            match rustix::io::read(&tun.fd, &mut *room) {
                Ok(len) => {
                    let bytes = room.get(..len).unwrap_or_default();
                    let routed = parse(bytes).and_then(|parsed| Some((parsed.layout, self.route(parsed.destination)?)));
                    return Ok(routed.map_or(Received::Unroutable, |(layout, to)| Received::Packet(len, Packet { layout, to })));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Received::Nothing)
    }

    fn deliver(&mut self, packet: &Packet, bytes: &[u8], which: Which, kind: Delivery) -> io::Result<()> {
        let Some(output) = self.outputs.get(packet.to as usize) else { return Ok(()) };
        if kind == Delivery::Whole {
            rustix::io::write(&output.fd, bytes)?;
            return Ok(());
        }
        let part = Part::new(&packet.layout, bytes, which);
        let payload = bytes.get(Part::payload(&packet.layout, which)).unwrap_or_default();
        if kind == Delivery::Part {
            rustix::io::writev(&output.fd, &[IoSlice::new(part.headers()), IoSlice::new(payload)])?;
            return Ok(());
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(part.headers());
        self.scratch.extend_from_slice(payload);
        finish_checksum(&mut self.scratch);
        if let Some(last) = self.scratch.get_mut(VNET_BYTES..).and_then(<[u8]>::last_mut) {
            *last ^= 1;
        }
        rustix::io::write(&output.fd, &self.scratch)?;
        Ok(())
    }

    fn inputs(&self, fds: &mut Inputs) {
        self.inputs.iter().for_each(|tun| fds.add(tun.fd.as_fd()));
    }
}

/// Checksums, TCP segmentation for IPv4 and IPv6 (`TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6`).
const TCP_OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04;
/// And UDP segmentation (`TUN_F_USO4 | TUN_F_USO6`).
const OFFLOADS: libc::c_ulong = TCP_OFFLOADS | 0x20 | 0x40;
