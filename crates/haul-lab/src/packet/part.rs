//! Some consecutive segments of a super-packet, as a packet of their own.

use std::ops::Range;

use super::checksum::{fold, pseudo, sum};
use super::vnet::{GSO_NONE, NEEDS_CSUM, VNET_BYTES, Vnet};
use super::{IPV6_HEADER, Kind, Layout};

/// The headers of some segments; their payload stays where it is.
#[derive(Debug, Clone)]
pub struct Part {
    headers: [u8; VNET_BYTES + Self::LONGEST_HEADERS],
    len: usize,
}

/// Which segments, and what the link did to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Which {
    pub first: u16,
    pub count: u16,
    /// The queue marked them.
    pub ce: bool,
}

impl Part {
    /// Headers longer than this are refused: IPv6 with some extensions and the longest TCP header fit.
    pub const LONGEST_HEADERS: usize = 256;

    /// The headers of `which` segments of `bytes`, which `layout` describes. With datagrams there are none.
    pub fn new(layout: &Layout, bytes: &[u8], which: Which) -> Self {
        let mut part = Self { headers: [0; VNET_BYTES + Self::LONGEST_HEADERS], len: 0 };
        if layout.kind == Kind::Datagrams {
            return part;
        }
        part.len = VNET_BYTES + usize::from(layout.headers);
        part.headers[..part.len].copy_from_slice(&bytes[..part.len]);
        let payload = layout.payload_of(which.first, which.count).len();
        if layout.kind != Kind::Ip && which.count < layout.segments {
            part.take_segments(layout, which, payload);
        }
        if which.ce {
            part.mark();
        }
        part.finish_ip();
        part
    }

    /// The headers, the virtio-net header first.
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.len]
    }

    /// Where in the whole packet's bytes the payload of these segments is.
    pub fn payload(layout: &Layout, which: Which) -> Range<usize> {
        let start = if layout.kind == Kind::Datagrams { 0 } else { VNET_BYTES + usize::from(layout.headers) };
        let range = layout.payload_of(which.first, which.count);
        start + range.start..start + range.end
    }

    fn take_segments(&mut self, layout: &Layout, which: Which, payload: usize) {
        let Some(mut vnet) = Vnet::read(&self.headers) else { return };
        let l4 = usize::from(vnet.csum_start);
        let headers = usize::from(layout.headers);
        let last = which.first + which.count == layout.segments;
        if which.count == 1 {
            vnet = Vnet { gso_type: GSO_NONE, gso_size: 0, ..vnet };
        }
        vnet.headers = layout.headers;
        self.headers[..VNET_BYTES].copy_from_slice(&vnet.to_bytes());
        let ip = &mut self.headers[VNET_BYTES..];
        let l4_len = headers - l4 + payload;
        let protocol = if layout.kind == Kind::Tcp {
            let before = u32::from(which.first).wrapping_mul(layout.segment);
            add_u32(&mut ip[l4 + 4..l4 + 8], before);
            // What ends a burst belongs to its last segment, what answers a mark to its first.
            ip[l4 + 13] &= if last { 0xff } else { !(TCP_FIN | TCP_PSH) };
            ip[l4 + 13] &= if which.first == 0 { 0xff } else { !TCP_CWR };
            6
        } else {
            ip[l4 + 4..l4 + 6].copy_from_slice(&(l4_len as u16).to_be_bytes());
            17
        };
        let addresses = if ip[0] >> 4 == 4 {
            ip[2..4].copy_from_slice(&((headers + payload) as u16).to_be_bytes());
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(which.first);
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            12..20
        } else {
            ip[4..6].copy_from_slice(&((headers + payload - IPV6_HEADER) as u16).to_be_bytes());
            8..40
        };
        let partial = pseudo(&ip[addresses], protocol, l4_len);
        let field = l4 + usize::from(vnet.csum_offset);
        ip[field..field + 2].copy_from_slice(&partial.to_be_bytes());
    }

    /// Congestion experienced, where the sender said that it understands (RFC 3168 5).
    fn mark(&mut self) {
        let ip = &mut self.headers[VNET_BYTES..];
        let (byte, shift) = if ip[0] >> 4 == 4 { (1, 0) } else { (1, 4) };
        if (ip[byte] >> shift) & 3 != 0 {
            ip[byte] |= 3 << shift;
        }
    }

    /// The checksum of an IPv4 header.
    fn finish_ip(&mut self) {
        let ip = &mut self.headers[VNET_BYTES..];
        if ip[0] >> 4 == 4 {
            let len = usize::from(ip[0] & 15) * 4;
            ip[10..12].fill(0);
            let checksum = !fold(sum(&ip[..len]));
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// Completes the checksum of a single packet (with its virtio-net header) that was left to the device, and says so in that header.
pub fn finish_checksum(packet: &mut [u8]) {
    let Some(vnet) = Vnet::read(packet).filter(|vnet| vnet.flags & NEEDS_CSUM != 0) else { return };
    let start = VNET_BYTES + usize::from(vnet.csum_start);
    let field = start + usize::from(vnet.csum_offset);
    let Some(covered) = packet.get(start..).filter(|_| packet.len() >= field + 2) else { return };
    // The field itself holds the pseudo header's sum, and so takes its part. Zero is written as its other form: in UDP it means none.
    let checksum = match !fold(sum(covered)) {
        0 => 0xffff,
        checksum => checksum,
    };
    packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    packet[..VNET_BYTES].copy_from_slice(&Vnet::default().to_bytes());
}

fn add_u32(field: &mut [u8], increment: u32) {
    if let Ok(old) = <[u8; 4]>::try_from(&*field) {
        field.copy_from_slice(&u32::from_be_bytes(old).wrapping_add(increment).to_be_bytes());
    }
}

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;
