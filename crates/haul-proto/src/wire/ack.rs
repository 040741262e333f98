//! The acknowledgement report of one path.
//!
//! It tells the fate of the packets from [`Ack::largest`] downwards, as runs (two varints for each gap) where few are missing, as a bitmap where
//! many are; whichever is shorter. With it go the receiver's clock and counters, from which the sender samples delay and delivery rate,
//! and the connection's credit.

use std::ops::RangeInclusive;

use super::DecodeError;
use super::varint::{Reader, put_varint};

/// A report of what has been received on a path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ack {
    /// Which path.
    pub path: u8,
    /// The largest packet number received.
    pub largest: u64,
    /// Microseconds that the receiver held the largest before it built this report.
    pub delay_us: u64,
    /// Nanoseconds on the receiver's clock when the newest packet arrived.
    pub clock_ns: u64,
    /// Nanoseconds on the receiver's clock when the largest packet arrived.
    pub largest_clock_ns: u64,
    /// Bytes of packets received in all (UDP payload), each packet once.
    pub bytes: u64,
    /// Packets received with ECT(0) in all.
    pub ect0: u64,
    /// Packets received with ECT(1) in all.
    pub ect1: u64,
    /// Packets received with CE in all.
    pub ce: u64,
    /// Credit of the connection, as in [`super::Frame::MaxData`].
    pub credit: u64,
    /// Packets received, as runs of packet numbers, highest first, not adjacent.
    pub runs: Vec<RangeInclusive<u64>>,
    /// The lowest packet number that the report covers: what is not in `runs` from here up to `largest` has not arrived.
    pub lowest: u64,
}

const FORM_RUNS: u8 = 0;
const FORM_BITMAP: u8 = 1;
/// Bytes of the report that are not runs, at most: ten varints, path and form.
pub(crate) const FIXED_BYTES: usize = 2 + 12 * 10;
/// A report that claims more packets than this at once is nonsense.
const MAX_SPAN: u64 = 1 << 24;

impl Ack {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.path);
        let span = self.largest - self.lowest;
        for field in [
            self.largest,
            span,
            self.delay_us,
            self.clock_ns,
            self.clock_ns.saturating_sub(self.largest_clock_ns),
            self.bytes,
            self.ect0,
            self.ect1,
            self.ce,
            self.credit,
        ] {
            put_varint(out, field);
        }
        let runs_bytes: usize = run_lengths(self).map(varint_bytes).sum();
        let bitmap_bytes = (span / 8 + 1) as usize;
        if runs_bytes <= bitmap_bytes {
            out.push(FORM_RUNS);
            put_varint(out, self.runs.len() as u64);
            for length in run_lengths(self) {
                put_varint(out, length);
            }
        } else {
            out.push(FORM_BITMAP);
            let start = out.len();
            out.resize(start + bitmap_bytes, 0);
            for run in &self.runs {
                for number in run.clone() {
                    let bit = self.largest - number;
                    out[start + (bit / 8) as usize] |= 1 << (bit % 8);
                }
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let path = reader.u8()?;
        let largest = reader.varint()?;
        let span = reader.varint()?;
        if span > largest || span > MAX_SPAN {
            return Err(DecodeError::BadAck);
        }
        let delay_us = reader.varint()?;
        let clock_ns = reader.varint()?;
        let largest_clock_ns = clock_ns.checked_sub(reader.varint()?).ok_or(DecodeError::BadAck)?;
        let mut ack = Self {
            path,
            largest,
            delay_us,
            clock_ns,
            largest_clock_ns,
            bytes: reader.varint()?,
            ect0: reader.varint()?,
            ect1: reader.varint()?,
            ce: reader.varint()?,
            credit: reader.varint()?,
            runs: Vec::new(),
            lowest: largest - span,
        };
        match reader.u8()? {
            FORM_RUNS => ack.decode_runs(reader)?,
            FORM_BITMAP => ack.decode_bitmap(reader, span)?,
            _ => return Err(DecodeError::BadAck),
        }
        Ok(ack)
    }

    /// Run lengths alternate: packets received from the top down, packets missing below them, and so on.
    fn decode_runs(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let count = reader.varint()?;
        let mut top = self.largest;
        for index in 0..count {
            if index > 0 {
                let missing = reader.varint()?;
                // The gap lies below the last run's lowest packet, which is `top`.
                top = top.checked_sub(missing).and_then(|top| top.checked_sub(2)).ok_or(DecodeError::BadAck)?;
            }
            let more = reader.varint()?;
            let low = top.checked_sub(more).ok_or(DecodeError::BadAck)?;
            if low < self.lowest {
                return Err(DecodeError::BadAck);
            }
            self.runs.push(low..=top);
            top = low;
        }
        if count == 0 { Err(DecodeError::BadAck) } else { Ok(()) }
    }

    fn decode_bitmap(&mut self, reader: &mut Reader<'_>, span: u64) -> Result<(), DecodeError> {
        let bytes = reader.take((span / 8 + 1) as usize)?;
        let received = |bit: u64| bytes[(bit / 8) as usize] & (1 << (bit % 8)) != 0;
        let mut bit = 0;
        while bit <= span {
            if !received(bit) {
                bit += 1;
                continue;
            }
            let first = bit;
            while bit <= span && received(bit) {
                bit += 1;
            }
            self.runs.push(self.largest - (bit - 1)..=self.largest - first);
        }
        if self.runs.first().is_some_and(|run| *run.end() == self.largest) { Ok(()) } else { Err(DecodeError::BadAck) }
    }
}

/// What the runs form writes: for the first run its length less one; for each further one the packets missing before it less one, and its length
/// less one.
fn run_lengths(ack: &Ack) -> impl Iterator<Item = u64> + '_ {
    let mut above: Option<u64> = None;
    ack.runs.iter().flat_map(move |run| {
        let missing = above.map(|low| low - run.end() - 2);
        above = Some(*run.start());
        missing.into_iter().chain(std::iter::once(run.end() - run.start()))
    })
}

/// Length of a varint.
pub(crate) const fn varint_bytes(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any report: run lengths from the top down, gaps between them.
    fn any_ack() -> impl Strategy<Value = Ack> {
        (prop::collection::vec((1..200u64, 1..200u64), 1..60), any::<[u32; 6]>(), 0..1000u64).prop_map(|(lengths, n, below)| {
            let total: u64 = lengths.iter().map(|(gap, run)| gap + run).sum();
            let largest = total + below + u64::from(n[0]);
            let mut runs = Vec::new();
            let mut top = largest + 1;
            for (index, (gap, run)) in lengths.into_iter().enumerate() {
                let end = if index == 0 { largest } else { top - gap - 1 };
                runs.push(end + 1 - run..=end);
                top = end + 1 - run;
            }
            let lowest = top.saturating_sub(below);
            Ack {
                path: n[1] as u8,
                largest,
                delay_us: n[2].into(),
                clock_ns: u64::from(n[3]) + 5,
                largest_clock_ns: n[3].into(),
                bytes: n[4].into(),
                ect0: n[5].into(),
                ect1: 1,
                ce: 2,
                credit: u64::MAX,
                runs,
                lowest,
            }
        })
    }

    proptest! {
        #[test]
        fn round_trips_in_either_form(ack in any_ack()) {
            let mut out = Vec::new();
            ack.encode(&mut out);
            prop_assert_eq!(Ack::decode(&mut Reader::new(&out)), Ok(ack));
        }

        #[test]
        fn whatever_arrives_does_not_panic(bytes: Vec<u8>) {
            let _ = Ack::decode(&mut Reader::new(&bytes));
        }
    }

    #[test]
    fn heavy_loss_costs_a_bit_per_packet() {
        let runs = (0..1000u64).rev().map(|n| 3 * n..=3 * n).collect();
        let ack = Ack { largest: 2997, lowest: 0, runs, ..Ack::default() };
        let mut out = Vec::new();
        ack.encode(&mut out);
        assert!(out.len() < 400, "{}", out.len());
    }
}
