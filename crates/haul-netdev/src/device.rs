//! TUN and TAP: what the kernel sends over such an interface a program reads, and what the program writes, the kernel receives.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The program's end of an interface. The interface goes with the last handle of it.
#[derive(Debug)]
pub struct Device {
    fd: OwnedFd,
}

/// What such an interface carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// IP packets, each as it would be on a wire.
    Packets,
    /// IP packets of up to 64 KiB, with a virtio-net header before each: segmentation and checksums are left to the program.
    SuperPackets,
    /// Ethernet frames.
    Frames,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
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

impl Device {
    /// Makes one in the network namespace of the calling thread; reading does not wait. The kernel replaces `%d` in the name by the first free number.
    pub fn create(name: &str, layer: Layer) -> Result<Self, DeviceError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(DeviceError::Open)?;
        // SAFETY: all-zero bytes are a valid `ifreq`: it is made of integers and unions of integers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *place = byte as libc::c_char;
        }
        let kind = match layer {
            Layer::Packets => libc::IFF_TUN,
            Layer::SuperPackets => libc::IFF_TUN | libc::IFF_VNET_HDR,
            Layer::Frames => libc::IFF_TAP,
        };
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
        if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } < 0 {
            return Err(DeviceError::Create(io::Error::last_os_error()));
        }
        let device = Self { fd };
        // Older kernels (before 6.2) know no UDP segmentation; UDP then comes as single packets.
        if layer == Layer::SuperPackets && device.offload(OFFLOADS).is_err() {
            device.offload(TCP_OFFLOADS).map_err(DeviceError::Offload)?;
        }
        Ok(device)
    }

    fn offload(&self, which: libc::c_ulong) -> io::Result<()> {
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETOFFLOAD, which) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What the interface is called.
    pub fn name(&self) -> Result<String, DeviceError> {
        // SAFETY: all-zero bytes are a valid `ifreq`: it is made of integers and unions of integers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: TUNGETIFF writes one `ifreq`, which outlives the call.
        if unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNGETIFF, &raw mut request) } < 0 {
            return Err(DeviceError::Create(io::Error::last_os_error()));
        }
        let name = request.ifr_name.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0);
        Ok(String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned())
    }

    /// Another handle of the same device.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Checksums, TCP segmentation for IPv4 and IPv6 (`TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6`).
const TCP_OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04;
/// And UDP segmentation (`TUN_F_USO4 | TUN_F_USO6`).
const OFFLOADS: libc::c_ulong = TCP_OFFLOADS | 0x20 | 0x40;
