//! The connections of a network namespace, as the program `show` writes them: one record each, of fixed layout (bpf/report.h).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use haul_units::{BitRate, Bytes};

use crate::law::Choice;

/// A connection of the kernel's TCP that is open.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// The other end.
    pub peer: SocketAddr,
    /// The port at this end.
    pub own_port: u16,
    /// Its congestion control.
    pub law: Choice,
    /// Packets that may be in flight.
    pub window_packets: u32,
    /// Smoothed.
    pub round_trip: Duration,
    /// At which it may send; none if it does not pace.
    pub pacing: Option<BitRate>,
    /// The last sample.
    pub delivery: BitRate,
    /// Of payload, since it was opened.
    pub acknowledged_bytes: u64,
    /// Since it was opened.
    pub delivered_packets: u32,
    /// Since it was opened.
    pub lost_packets: u32,
    /// What a law of haul has learned of its path.
    pub path: Option<Path>,
    /// The most that the application has taken of it in one round trip.
    pub received_in_round: Bytes,
}

impl Connection {
    /// What is on the way of that which is sent: the rate times the round-trip time, that of an empty queue where it is known.
    pub(crate) fn sent_in_round(&self) -> Bytes {
        let (rate, round_trip) = self.path.as_ref().map_or((self.delivery, self.round_trip), |path| (path.rate, path.base));
        product(rate, round_trip)
    }
}

/// What a law of haul knows of a connection's path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// What the law is doing.
    pub phase: Phase,
    /// The most that was delivered lately.
    pub rate: BitRate,
    /// The smallest round-trip time lately.
    pub base: Duration,
    /// What it is longer by.
    pub queue: Duration,
    /// Lost without a queue, of a million packets.
    pub random_loss_ppm: u32,
    /// Times that congestion made the window smaller.
    pub reductions: u32,
    /// Packets whose loss was not taken for congestion.
    pub ignored_losses: u32,
    /// Times that the retransmission timer ran out.
    pub timeouts: u32,
}

/// Where a law of haul is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Doubling.
    Start,
    /// Sending what was remembered.
    Jump,
    /// Letting a queue go.
    Drain,
    /// Following the path.
    Steady,
    /// Trying more.
    Probe,
}

impl Phase {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Jump => "jump",
            Self::Drain => "drain",
            Self::Steady => "steady",
            Self::Probe => "probe",
        }
    }

    /// In the order of `enum phase` in bpf/flow.h.
    fn numbered(number: u32) -> Self {
        const ALL: [Phase; 5] = [Phase::Start, Phase::Jump, Phase::Drain, Phase::Steady, Phase::Probe];
        ALL.get(number as usize).copied().unwrap_or(Phase::Steady)
    }
}

/// Of `struct report`.
const RECORD: usize = 136;
/// Rates of the programs are packets << 24 a microsecond.
const RATE_SHIFT: u32 = 24;

/// All records of what an iterator has written.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Connection> {
    bytes.chunks_exact(RECORD).filter_map(Reader::connection).collect()
}

/// Takes fields off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn connection(record: &[u8]) -> Option<Connection> {
        let mut reader = Reader(record);
        let address = Ipv6Addr::from(reader.take::<16>()?);
        let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
        let port = u16::from_be_bytes(reader.take()?);
        let own_port = u16::from_ne_bytes(reader.take()?);
        let known = reader.u32()? != 0;
        let name = reader.take::<16>()?;
        let name = name.split(|byte| *byte == 0).next().map(String::from_utf8_lossy)?;
        let law = Choice::of_kernel(&name);
        let pacing = reader.u64()?;
        let acknowledged_bytes = reader.u64()?;
        let window_packets = reader.u32()?;
        let round_trip = reader.micros()?;
        let segment_bytes = reader.u32()?;
        let delivered_packets = reader.u32()?;
        let lost_packets = reader.u32()?;
        let (sampled, interval_us) = (reader.u32()?, reader.u32()?);
        let _law = reader.u32()?;
        let rate = reader.u64()?;
        let phase = Phase::numbered(reader.u32()?);
        let _rounds = reader.u32()?;
        let path = Path {
            phase,
            rate: packets_per_us(rate, segment_bytes),
            base: reader.micros()?,
            queue: reader.micros()?,
            random_loss_ppm: reader.u32()?,
            reductions: reader.u32()?,
            ignored_losses: reader.u32()?,
            timeouts: reader.u32()?,
        };
        let (received, _unused) = (reader.u32()?, reader.u32()?);
        let delivery = if interval_us == 0 { 0 } else { (u64::from(sampled) << RATE_SHIFT) / u64::from(interval_us) };
        Some(Connection {
            peer: SocketAddr::new(address, port),
            own_port,
            law,
            window_packets,
            round_trip,
            // All bits of it: without a bound.
            pacing: (pacing != 0 && pacing < u64::MAX / 8).then(|| BitRate::from_bps(pacing * 8)),
            delivery: packets_per_us(delivery, segment_bytes),
            acknowledged_bytes,
            delivered_packets,
            lost_packets,
            path: known.then_some(path),
            received_in_round: Bytes(received.into()),
        })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn micros(&mut self) -> Option<Duration> {
        self.u32().map(|us| Duration::from_micros(us.into()))
    }
}

/// What is on the way at once.
pub(crate) fn product(rate: BitRate, round_trip: Duration) -> Bytes {
    let product = u128::from(rate.as_bps()) * round_trip.as_micros() / 8_000_000;
    Bytes(u64::try_from(product).unwrap_or(u64::MAX))
}

fn packets_per_us(rate: u64, segment_bytes: u32) -> BitRate {
    let bits = u128::from(rate) * u128::from(segment_bytes) * 8 * 1_000_000;
    BitRate::from_bps((bits >> RATE_SHIFT) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_field_by_field() {
        let mut record = Vec::new();
        record.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 9]);
        record.extend(443_u16.to_be_bytes());
        record.extend(50_000_u16.to_ne_bytes());
        record.extend(1_u32.to_ne_bytes());
        record.extend(b"haul_modest\0\0\0\0\0");
        record.extend([125_000_u64, 7_000].map(u64::to_ne_bytes).concat());
        record.extend([20_u32, 40_000, 1_250, 90, 3, 10, 1_000, 2].map(u32::to_ne_bytes).concat());
        // 10 packets a millisecond.
        record.extend(((10_u64 << RATE_SHIFT) / 1_000).to_ne_bytes());
        record.extend([3_u32, 8, 30_000, 10_000, 10_000, 1, 2, 0, 70_000, 0].map(u32::to_ne_bytes).concat());
        assert_eq!(record.len(), RECORD);
        let read = decode(&[record.clone(), record].concat());
        assert_eq!(read.len(), 2);
        let connection = &read[0];
        assert_eq!(connection.peer, "10.0.0.9:443".parse().expect("an address"));
        assert_eq!(connection.law.to_string(), "modest");
        assert_eq!(connection.pacing, Some(BitRate::from_bps(1_000_000)));
        assert_eq!(connection.received_in_round, Bytes(70_000));
        // 100 Mbit/s for 30 ms.
        assert!(connection.sent_in_round().0.abs_diff(375_000) < 100, "{}", connection.sent_in_round());
        let path = connection.path.as_ref().expect("known");
        assert_eq!((path.phase, path.base, path.queue), (Phase::Steady, Duration::from_millis(30), Duration::from_millis(10)));
        let off = connection.delivery.as_bps().abs_diff(100_000_000);
        assert!(off < 10_000, "{}", connection.delivery);
        assert_eq!(decode(&[0; RECORD - 1]), []);
    }
}
