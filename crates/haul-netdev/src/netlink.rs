//! Questions to the kernel by netlink, and the attributes of its answers. Source: netlink(7).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// `struct nlmsghdr`.
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const NESTED: u16 = 1 << 15;

/// Flag of a question: all there are.
pub const DUMP: u16 = 0x300;

/// A socket of netlink, in the network namespace of the thread that has opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Netlink {
    /// For one of its protocols; without one for that of routes.
    pub fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { socket, buffer: vec![0; 64 << 10] })
    }

    /// Asks; `each` gets the answers, without their headers.
    pub fn ask(&mut self, kind: u16, flags: u16, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | flags).to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        send(&self.socket, &message, SendFlags::empty())?;
        loop {
            let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while let Some((&[a, b, c, d, e, f], _)) = rest.split_first_chunk() {
                let length = u32::from_ne_bytes([a, b, c, d]) as usize;
                let Some(body) = rest.get(HEADER..length) else { return Err(io::ErrorKind::InvalidData.into()) };
                match (u16::from_ne_bytes([e, f]), body.first_chunk()) {
                    (DONE, _) => return Ok(()),
                    (ERROR, Some(code)) => match i32::from_ne_bytes(*code) {
                        0 => return Ok(()),
                        code => return Err(io::Error::from_raw_os_error(-code)),
                    },
                    _ => each(body),
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// What is in a row of attributes: a length that counts itself, a kind, the value, up to a multiple of four.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (&[a, b, c, d], _) = bytes.split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & !NESTED, value))
    })
}
