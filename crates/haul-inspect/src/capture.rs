//! UDP datagrams in a capture file, as `tcpdump -w` writes it.
//!
//! The classic format, of either byte order, with micro- or nanoseconds: a header of 24 bytes that names the kind of frames, then records of 16 bytes and a frame each. What is no
//! UDP datagram, or was cut short by the capture, is passed over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A datagram as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Since the epoch of the clock that the capture was made by.
    pub at: Duration,
    /// Who sent it.
    pub from: SocketAddr,
    /// Who was to have it.
    pub to: SocketAddr,
    /// Its payload, whole.
    pub payload: &'a [u8],
}

/// Why a file holds no datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Something else than a capture in the classic format.
    #[error("not a capture of tcpdump's classic format")]
    Format,
    /// Frames of another kind of network.
    #[error("frames of kind {kind} are not read, only Ethernet, Linux' cooked ones, raw IP and loopback")]
    Link {
        /// Its number (<https://www.tcpdump.org/linktypes.html>).
        kind: u32,
    },
}

/// A capture in memory.
#[derive(Debug, Clone)]
pub struct Capture<'a> {
    records: &'a [u8],
    big_endian: bool,
    nanoseconds: bool,
    link: u32,
}

impl<'a> Capture<'a> {
    /// Reads the header of a file.
    pub fn new(file: &'a [u8]) -> Result<Self, CaptureError> {
        let (magic, big_endian) = match file.first_chunk::<4>().ok_or(CaptureError::Format)? {
            magic @ [0xa1, ..] => (u32::from_be_bytes(*magic), true),
            magic => (u32::from_le_bytes(*magic), false),
        };
        let nanoseconds = match magic {
            MICROSECONDS => false,
            NANOSECONDS => true,
            _ => return Err(CaptureError::Format),
        };
        let records = file.get(FILE_BYTES..).ok_or(CaptureError::Format)?;
        let mut capture = Self { records, big_endian, nanoseconds, link: 0 };
        // The upper bits are about check sums of frames.
        capture.link = capture.word(file, 20).ok_or(CaptureError::Format)? & 0xffff;
        let known = matches!(capture.link, NULL | ETHERNET | RAW | LOOP | COOKED | COOKED_2 | IPV4 | IPV6);
        if known { Ok(capture) } else { Err(CaptureError::Link { kind: capture.link }) }
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    /// The IP packet in a frame.
    fn packet<'f>(&self, frame: &'f [u8]) -> Option<&'f [u8]> {
        let header = match self.link {
            // Destination, source, type; each VLAN tag adds four bytes before the type.
            ETHERNET => {
                let mut at = 12;
                while matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
                    at += 4;
                }
                at + 2
            }
            COOKED => 16,
            COOKED_2 => 20,
            NULL | LOOP => 4,
            _ => 0,
        };
        frame.get(header..)
    }
}

impl<'a> Iterator for Capture<'a> {
    type Item = Datagram<'a>;

    fn next(&mut self) -> Option<Datagram<'a>> {
        loop {
            let record = self.records;
            let (seconds, fraction) = (self.word(record, 0)?, self.word(record, 4)?);
            let frame = record.get(RECORD_BYTES..)?.get(..self.word(record, 8)? as usize)?;
            self.records = record.get(RECORD_BYTES + frame.len()..)?;
            let nanos = if self.nanoseconds { fraction } else { fraction.saturating_mul(1000) };
            let at = Duration::from_secs(seconds.into()) + Duration::from_nanos(nanos.into());
            if let Some((from, to, payload)) = self.packet(frame).and_then(datagram) {
                return Some(Datagram { at, from, to, payload });
            }
        }
    }
}

/// The UDP datagram in an IP packet; nothing of a fragment, or of one behind extension headers.
fn datagram(packet: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let (from, to, udp): (IpAddr, IpAddr, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            let fragment = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x3fff != 0;
            if fragment || *packet.get(9)? != UDP {
                return None;
            }
            let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
            (address(12)?.into(), address(16)?.into(), packet.get(header..)?)
        }
        6 if *packet.get(6)? == UDP => {
            let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
            (address(8)?.into(), address(24)?.into(), packet.get(40..)?)
        }
        _ => return None,
    };
    let number = |at: usize| Some(u16::from_be_bytes(*udp.get(at..)?.first_chunk()?));
    let payload = udp.get(8..usize::from(number(4)?))?;
    Some((SocketAddr::new(from, number(0)?), SocketAddr::new(to, number(2)?), payload))
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_BYTES: usize = 24;
const RECORD_BYTES: usize = 16;
/// Of IP (RFC 768).
const UDP: u8 = 17;

/// Kinds of frames: <https://www.tcpdump.org/linktypes.html>.
const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const LOOP: u32 = 108;
const COOKED: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const COOKED_2: u32 = 276;

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(payload: &[u8]) -> Vec<u8> {
        let mut udp = vec![0x1e, 0x14, 0, 9, 0, 8 + payload.len() as u8, 0, 0];
        udp.extend_from_slice(payload);
        udp
    }

    fn v4(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend(udp(payload));
        packet
    }

    fn v6(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
        packet.extend([0xfd; 16]);
        packet.extend([0xfe; 16]);
        packet.extend(udp(payload));
        packet
    }

    fn file(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
        let mut file = [&MICROSECONDS.to_le_bytes()[..], &[0; 16], &link.to_le_bytes()].concat();
        for frame in frames {
            let len = (frame.len() as u32).to_le_bytes();
            file.extend([&7_u32.to_le_bytes()[..], &500_000_u32.to_le_bytes(), &len, &len, frame].concat());
        }
        file
    }

    fn payloads(file: &[u8]) -> Vec<Vec<u8>> {
        Capture::new(file).expect("a capture").map(|datagram| datagram.payload.to_vec()).collect()
    }

    #[test]
    fn datagrams_are_found_behind_every_kind_of_frame() {
        for (link, before) in [(RAW, 0), (NULL, 4), (COOKED, 16), (COOKED_2, 20)] {
            let frames = [v4(b"one"), v6(b"two")].map(|packet| [vec![0; before], packet].concat());
            assert_eq!(payloads(&file(link, &frames)), [b"one", b"two"], "{link}");
        }
        let tagged = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0], &v4(b"one")].concat();
        assert_eq!(payloads(&file(ETHERNET, &[tagged, [&[0; 12][..], &[8, 0], &v4(b"two")].concat()])), [b"one", b"two"]);
        let capture = file(RAW, &[v4(b"one")]);
        let datagram = Capture::new(&capture).expect("a capture").next().expect("one");
        assert_eq!(
            (datagram.at, datagram.from.to_string(), datagram.to.to_string()),
            (Duration::from_millis(7500), "10.0.0.1:7700".into(), "10.0.0.2:9".into())
        );
    }

    #[test]
    fn what_is_no_whole_datagram_is_passed_over() {
        let (mut tcp, mut fragment) = (v4(b"tcp"), v4(b"fragment"));
        tcp[9] = 6;
        fragment[6] = 0x20;
        let cut = v4(b"cut short")[..30].to_vec();
        assert_eq!(payloads(&file(RAW, &[tcp, fragment, cut, vec![], v4(b"whole")])), [b"whole"]);
        let whole = file(RAW, &[v4(b"one"), v6(b"two")]);
        for len in 0..whole.len() {
            // However short the file: no panic, and nothing that was not there.
            let found = Capture::new(&whole[..len]).map(Iterator::count).unwrap_or_default();
            assert!(found < 2, "{len}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(Capture::new(b"GIF89a..................").map(drop), Err(CaptureError::Format));
        assert_eq!(Capture::new(&file(147, &[])).map(drop), Err(CaptureError::Link { kind: 147 }));
    }
}
