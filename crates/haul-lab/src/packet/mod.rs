//! Packets as a TUN device gives them: a virtio-net header, an IP packet, perhaps a super-packet of many segments.
//!
//! ```text
//!   | vnet | IP | TCP or UDP | payload 0 | payload 1 | .. | the last, perhaps shorter |
//! ```
//!
//! [`Layout`] says where the segments are; [`Part`] makes the headers of some of them. Sources: RFC 791, 8200, 9293, 768.

mod checksum;
mod part;
#[cfg(test)]
mod tests;
mod vnet;

pub use part::{Part, Which, finish_checksum};
pub use vnet::VNET_BYTES;

use vnet::{GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, Vnet};

/// How a packet divides into segments. Lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    kind: Kind,
    /// Before the first payload, the virtio-net header not counted.
    headers: u16,
    /// All payload.
    payload: u32,
    /// Payload of each segment but the last; of the only one, if there is no other.
    segment: u32,
    /// Segments; at least one.
    pub segments: u16,
    /// What a segment takes on the link beside its own headers and payload.
    overhead: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An IP packet that stays as it is, its IP header apart.
    Ip,
    Tcp,
    Udp,
    /// Payloads of UDP datagrams without any header.
    Datagrams,
}

impl Layout {
    /// A single IP packet whose IP header is `headers` long.
    pub fn whole(len: usize, headers: u16) -> Self {
        let payload = (len as u32).saturating_sub(u32::from(headers) + VNET_BYTES as u32);
        Self { kind: Kind::Ip, headers, payload, segment: payload, segments: 1, overhead: 0 }
    }

    /// Datagrams of `segment` bytes each, the last perhaps shorter, `len` altogether, which take `overhead` more on the link.
    pub fn datagrams(len: usize, segment: usize, overhead: u16) -> Self {
        let segment = segment.clamp(1, len.max(1)) as u32;
        let segments = (len as u32).div_ceil(segment).max(1) as u16;
        Self { kind: Kind::Datagrams, headers: 0, payload: len as u32, segment, segments, overhead }
    }

    /// Payload of each segment but the last.
    pub fn segment_bytes(&self) -> usize {
        self.segment as usize
    }

    /// Bytes of segment `index` on the link.
    pub fn link_bytes(&self, index: u16) -> u64 {
        u64::from(self.headers) + u64::from(self.overhead) + self.payload_of(index, 1).len() as u64
    }

    /// Bytes of the packet, its virtio-net header included, up to the end of the first `count` segments; none without segments.
    pub fn bytes_until(&self, count: u16) -> usize {
        if count == 0 { 0 } else { Part::payload(self, Which { first: 0, count, ce: false }).end }
    }

    /// Where the payload of `count` segments from `first` is, from the start of all payload.
    fn payload_of(&self, first: u16, count: u16) -> std::ops::Range<usize> {
        let at = |index: u32| (index * self.segment).min(self.payload) as usize;
        at(u32::from(first))..at(u32::from(first) + u32::from(count))
    }
}

/// An IP packet with its virtio-net header, and where it is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<'a> {
    pub layout: Layout,
    /// 4 or 16 bytes.
    pub destination: &'a [u8],
}

/// Looks at what a TUN device gave; nothing for what is no IP packet or contradicts itself.
pub fn parse(bytes: &[u8]) -> Option<Parsed<'_>> {
    let vnet = Vnet::read(bytes)?;
    let ip = bytes.get(VNET_BYTES..)?;
    let (ip_headers, destination) = match ip.first()? >> 4 {
        4 => (usize::from(ip[0] & 15) * 4, ip.get(16..20)?),
        6 => (IPV6_HEADER, ip.get(24..40)?),
        _ => return None,
    };
    if ip_headers < 20 || ip.len() < ip_headers {
        return None;
    }
    // The size of a segment may be given for a packet that has only one.
    let layout = match vnet.gso_type & !GSO_ECN {
        GSO_NONE => Layout::whole(bytes.len(), ip_headers as u16),
        gso => super_packet(vnet, gso, ip)?,
    };
    Some(Parsed { layout, destination })
}

fn super_packet(vnet: Vnet, gso: u8, ip: &[u8]) -> Option<Layout> {
    let l4 = usize::from(vnet.csum_start);
    let (kind, l4_header, checksum) = match gso {
        GSO_TCPV4 | GSO_TCPV6 => (Kind::Tcp, usize::from(ip.get(l4 + 12)? >> 4) * 4, 16),
        GSO_UDP_L4 => (Kind::Udp, 8, 6),
        _ => return None,
    };
    let headers = l4 + l4_header;
    let sound = vnet.flags & NEEDS_CSUM != 0 && vnet.gso_size > 0 && usize::from(vnet.csum_offset) == checksum;
    if !sound || l4 < 20 || l4_header < 8 || headers > Part::LONGEST_HEADERS || headers >= ip.len() {
        return None;
    }
    let (payload, segment) = ((ip.len() - headers) as u32, u32::from(vnet.gso_size));
    let segments = payload.div_ceil(segment) as u16;
    Some(Layout { kind, headers: headers as u16, payload, segment, segments, overhead: 0 })
}

const IPV6_HEADER: usize = 40;
/// A TCP super-packet with CWR set: only its first segment is to have it.
const GSO_ECN: u8 = 0x80;
