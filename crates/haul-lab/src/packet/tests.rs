//! Splitting against packets made one by one.

use proptest::prelude::*;

use super::checksum::{fold, sum};
use super::part::{Part, Which, finish_checksum};
use super::vnet::{GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, VNET_BYTES, Vnet};
use super::{Layout, parse};

/// A burst as a sender's kernel would make it: one super-packet, or each packet on its own.
#[derive(Debug, Clone)]
struct Burst {
    ipv6: bool,
    tcp: bool,
    options: usize,
    ecn: u8,
    tcp_flags: u8,
    sequence: u32,
    id: u16,
    segment: usize,
    payload: Vec<u8>,
}

const FIN: u8 = 1;
const PSH: u8 = 8;
const ACK: u8 = 16;
const CWR: u8 = 128;

impl Burst {
    fn segments(&self) -> usize {
        self.payload.len().div_ceil(self.segment)
    }

    fn super_packet(&self) -> Vec<u8> {
        let gso = match (self.tcp, self.ipv6) {
            (true, false) => GSO_TCPV4,
            (true, true) => GSO_TCPV6,
            (false, _) => GSO_UDP_L4,
        };
        self.packet(gso, self.segment as u16, self.tcp_flags, self.sequence, self.id, &self.payload)
    }

    /// What arrives of segment `index`, its checksum completed.
    fn expected(&self, index: usize, ce: bool) -> Vec<u8> {
        let start = index * self.segment;
        let end = (start + self.segment).min(self.payload.len());
        let mut flags = self.tcp_flags;
        if index > 0 {
            flags &= !CWR;
        }
        if end < self.payload.len() {
            flags &= !(FIN | PSH);
        }
        let sequence = self.sequence.wrapping_add(start as u32);
        let mut burst = self.clone();
        if ce && self.ecn != 0 {
            burst.ecn = 3;
        }
        let id = self.id.wrapping_add(index as u16);
        let mut packet = burst.packet(GSO_NONE, 0, flags, sequence, id, &self.payload[start..end]);
        finish_checksum(&mut packet);
        packet
    }

    fn packet(&self, gso: u8, gso_size: u16, flags: u8, sequence: u32, id: u16, payload: &[u8]) -> Vec<u8> {
        let l4 = if self.tcp { 20 + self.options } else { 8 };
        let ip = if self.ipv6 { 40 } else { 20 };
        let len = l4 + payload.len();
        let vnet = Vnet {
            flags: NEEDS_CSUM,
            gso_type: gso,
            headers: (ip + l4) as u16,
            gso_size,
            csum_start: ip as u16,
            csum_offset: if self.tcp { 16 } else { 6 },
        };
        let mut packet = vnet.to_bytes().to_vec();
        let protocol = if self.tcp { 6 } else { 17 };
        if self.ipv6 {
            packet.extend([0x60, self.ecn << 4, 0, 0]);
            packet.extend((len as u16).to_be_bytes());
            packet.extend([protocol, 64]);
            packet.extend([0xfd; 16]);
            packet.extend([0xfe; 16]);
        } else {
            let start = packet.len();
            packet.extend([0x45, 0x10 | self.ecn]);
            packet.extend(((ip + len) as u16).to_be_bytes());
            packet.extend(id.to_be_bytes());
            packet.extend([0x40, 0, 64, protocol, 0, 0, 10, 80, 0, 1, 10, 80, 128, 1]);
            let checksum = !fold(sum(&packet[start..]));
            packet[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
        }
        let addresses = if self.ipv6 { VNET_BYTES + 8..VNET_BYTES + 40 } else { VNET_BYTES + 12..VNET_BYTES + 20 };
        let pseudo = fold(sum(&packet[addresses]) + u64::from(protocol) + len as u64).to_be_bytes();
        packet.extend([0x12, 0x34, 0x56, 0x78]);
        if self.tcp {
            packet.extend(sequence.to_be_bytes());
            packet.extend([9, 9, 9, 9, ((l4 / 4) << 4) as u8, flags, 1, 2, pseudo[0], pseudo[1], 0, 0]);
            packet.extend(vec![1; self.options]);
        } else {
            packet.extend((len as u16).to_be_bytes());
            packet.extend(pseudo);
        }
        packet.extend(payload);
        packet
    }
}

/// The bytes that leave for `which` segments.
fn written(layout: &Layout, bytes: &[u8], which: Which) -> Vec<u8> {
    let part = Part::new(layout, bytes, which);
    [part.headers(), &bytes[Part::payload(layout, which)]].concat()
}

/// True if the checksum of a completed packet is right.
fn verifies(packet: &[u8], ipv6: bool) -> bool {
    let ip = &packet[VNET_BYTES..];
    let (header, addresses, protocol) = if ipv6 { (40, 8..40, ip[6]) } else { (20, 12..20, ip[9]) };
    let l4 = &ip[header..];
    let whole = sum(&ip[addresses]) + u64::from(protocol) + l4.len() as u64 + sum(l4);
    fold(whole) == 0xffff && (ipv6 || fold(sum(&ip[..20])) == 0xffff)
}

fn bursts() -> impl Strategy<Value = Burst> {
    let flags = (any::<(bool, bool, bool)>())
        .prop_map(|(fin, psh, cwr)| ACK | (u8::from(fin) * FIN) | (u8::from(psh) * PSH) | (u8::from(cwr) * CWR));
    let payload = (1usize..1500, 1usize..40, any::<u8>()).prop_flat_map(|(segment, segments, fill)| {
        let longest = (segment * segments).min(65000);
        (Just(segment), (1..=longest), Just(fill))
    });
    (any::<(bool, bool)>(), 0usize..10, 0u8..4, flags, any::<(u32, u16)>(), payload).prop_map(
        |((ipv6, tcp), options, ecn, tcp_flags, (sequence, id), (segment, len, fill))| Burst {
            ipv6,
            tcp,
            options: options * 4,
            ecn,
            tcp_flags,
            sequence,
            id,
            segment,
            payload: (0..len).map(|n| (n as u8).wrapping_mul(31) ^ fill ^ (n >> 8) as u8).collect(),
        },
    )
}

proptest! {
    /// Cut anywhere, a super-packet gives the packets that it would have been; also where a part is cut again, as the receiver's kernel does.
    #[test]
    fn parts_are_the_packets(burst in bursts(), cuts in proptest::collection::vec((1u16..50, any::<bool>()), 1..60)) {
        let bytes = burst.super_packet();
        let parsed = parse(&bytes).expect("sound");
        prop_assert_eq!(usize::from(parsed.layout.segments), burst.segments());
        prop_assert_eq!(parsed.destination.len(), if burst.ipv6 { 16 } else { 4 });
        let mut first = 0;
        for (count, ce) in cuts.into_iter().cycle() {
            let count = count.min(parsed.layout.segments - first);
            if count == 0 {
                break;
            }
            let part = written(&parsed.layout, &bytes, Which { first, count, ce });
            let again = parse(&part).expect("a part is a packet");
            prop_assert_eq!(again.layout.segments, count);
            for index in 0..count {
                let mut packet = written(&again.layout, &part, Which { first: index, count: 1, ce: false });
                finish_checksum(&mut packet);
                prop_assert!(verifies(&packet, burst.ipv6));
                let expected = burst.expected(usize::from(first + index), ce);
                prop_assert_eq!(&packet[VNET_BYTES..], &expected[VNET_BYTES..]);
                prop_assert_eq!((packet.len() - VNET_BYTES) as u64, parsed.layout.link_bytes(first + index));
            }
            first += count;
        }
    }

    /// Whatever a device gives, looking at it does not panic, and all that is accepted can be cut.
    #[test]
    fn any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), gso in 0u8..6, ip in prop_oneof![Just(0x45u8), Just(0x60)]) {
        if bytes.len() > VNET_BYTES + 40 {
            bytes[0] |= NEEDS_CSUM;
            bytes[1] = gso;
            bytes[VNET_BYTES] = ip;
            let offset = if gso == GSO_UDP_L4 { 6u16 } else { 16 };
            let start = 20 + u16::from(bytes[6] % 60);
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
        }
        if let Some(parsed) = parse(&bytes) {
            for first in 0..parsed.layout.segments {
                let mut packet = written(&parsed.layout, &bytes, Which { first, count: 1, ce: true });
                finish_checksum(&mut packet);
            }
        }
    }
}

#[test]
fn a_mark_is_for_those_who_understand() {
    let burst = |ecn| Burst {
        ipv6: false,
        tcp: false,
        options: 0,
        ecn,
        tcp_flags: 0,
        sequence: 0,
        id: 1,
        segment: 100,
        payload: vec![7; 100],
    };
    for (sent, arrives) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
        let bytes = burst(sent).super_packet();
        let layout = parse(&bytes).expect("sound").layout;
        let packet = written(&layout, &bytes, Which { first: 0, count: 1, ce: true });
        assert_eq!(packet[VNET_BYTES + 1] & 3, arrives);
    }
}
