//! What an acknowledgement or a loss does to streams and frames.

use haul_units::Time;

use super::{Connection, Event, ProtocolViolation};
use crate::path::Path;
use crate::streams::StreamId;
use crate::wire::Frame;
use crate::wire::ack::Ack;

/// Loss from which on a lost range is sent more than once at the end of a transfer.
const COPY_LOSS: f64 = 0.0005;
/// Loss from which on it is sent three times.
const COPY_TWICE_LOSS: f64 = 0.02;

/// A range to be sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct LostRange {
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) fin: bool,
}

impl Connection {
    /// A report of the peer's.
    pub(super) fn on_ack(&mut self, now: Time, arrived: Time, ack: &Ack) -> Result<(), ProtocolViolation> {
        self.streams.credit.raise(ack.credit);
        self.introduce(ack.path.into());
        let Some(path) = self.paths.get_mut(usize::from(ack.path)) else { return Ok(()) };
        if ack.largest >= path.next_number {
            return Err(ProtocolViolation::AckOfUnsent);
        }
        if path.skips.are_in(&ack.runs) {
            return Err(ProtocolViolation::AckOfSkipped);
        }
        let (streams, touched) = (&mut self.streams, &mut self.touched);
        let mut lost = Vec::new();
        let mut finished = Vec::new();
        let outcome = path.on_report(
            now,
            arrived,
            ack,
            |id, offset, len, fin| {
                if let Some((send, released)) = streams.sender_and_released(id) {
                    let new = send.on_acked(offset, len, fin, released);
                    streams.unacknowledged = streams.unacknowledged.saturating_sub(new);
                    if touched.last() != Some(&id) {
                        touched.push(id);
                    }
                }
            },
            |frames| finished.extend(frames.iter().filter_map(placed_fin)),
            |stream, offset, len, fin| lost.push(LostRange { stream, offset, len, fin }),
        );
        let path_id = path.id;
        if let Some(one_way_ns) = outcome.one_way_ns {
            self.roster.on_delay(path_id, Time::from_nanos(ack.largest_clock_ns), one_way_ns);
        }
        if let (Some(keys), Some(number)) = (self.keys.as_mut(), outcome.newest_acked) {
            keys.sealer.on_acknowledged(path_id, number);
        }
        self.requeue(lost, outcome.frames);
        for id in finished {
            if let Some(send) = self.streams.sender(id) {
                send.on_placed_fin_acked();
                self.touched.push(id);
            }
        }
        self.feed_the_starved();
        self.settle_touched();
        Ok(())
    }

    /// Streams whose bytes were acknowledged may be done, or have their end to tell.
    fn settle_touched(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for id in touched.drain(..) {
            if self.streams.sender(id).is_some_and(|send| send.is_done()) {
                self.events.push_back(Event::Acknowledged(id));
                self.reap(id);
            } else {
                self.feed_from_reserve(id);
            }
        }
        self.touched = touched;
    }

    /// Queues what is to be sent again.
    pub(super) fn requeue(&mut self, lost: Vec<LostRange>, frames: Vec<Frame>) {
        let loss = self.paths.iter().map(Path::loss_ratio).fold(0.0, f64::max);
        let copies = u8::from(loss > COPY_LOSS) + u8::from(loss > COPY_TWICE_LOSS);
        for range in lost {
            self.send_again(&range, copies);
        }
        for frame in frames {
            if frame.is_reliable() && self.is_current(&frame) {
                self.control.push_back(frame);
            }
        }
    }

    /// Queues a range, and so many copies of it for when there is nothing else to do.
    pub(super) fn send_again(&mut self, &LostRange { stream, offset, len, fin }: &LostRange, copies: u8) {
        if let Some(send) = self.streams.sender(stream) {
            send.on_lost(offset, len, fin, copies);
            self.streams.schedule(stream);
        }
    }

    /// Takes for lost what is overdue.
    pub(super) fn detect_losses(&mut self, now: Time) {
        for index in 0..self.paths.len() {
            let mut lost = Vec::new();
            let frames = self.paths[index].detect_losses(now, |stream, offset, len, fin| {
                lost.push(LostRange { stream, offset, len, fin });
            });
            self.requeue(lost, frames);
        }
    }

    /// The probe timeout of a path has passed: the oldest data goes again, or a ping if there is none that is still missing.
    pub(super) fn on_probe_timeout(&mut self, now: Time, index: usize) {
        let is_beside_others = self.is_beside_others(index);
        let path = &mut self.paths[index];
        let mut lost = Vec::new();
        let mut on_lost = |stream, offset, len, fin| lost.push(LostRange { stream, offset, len, fin });
        let mut frames = if is_beside_others {
            path.on_probe_timeout_beside_others(now, &mut on_lost)
        } else {
            path.on_probe_timeout(now, &mut on_lost)
        };
        if lost.is_empty() && frames.is_empty() {
            path.sent.probe(
                2,
                |stream, offset, len, fin| lost.push(LostRange { stream, offset, len, fin }),
                |sent| frames.extend(sent.iter().cloned()),
            );
        }
        // A copy in flight of what has arrived otherwise leaves no packet.
        let is_missing = lost.iter().any(|lost| self.is_missing(lost));
        let says_something = frames.iter().any(|frame| frame.is_reliable() && self.is_current(frame));
        self.requeue(lost, frames);
        self.paths[index].ping_due |= !is_missing && !says_something;
    }

    /// What is in flight on a path has gone where nobody is: it is to be sent again.
    pub(super) fn lose_flight(&mut self, now: Time, index: usize) {
        let mut lost = Vec::new();
        let on_lost = |stream, offset, len, fin| lost.push(LostRange { stream, offset, len, fin });
        let frames = self.paths[index].lose_all(now, on_lost);
        self.requeue(lost, frames);
    }

    pub(super) fn is_missing(&mut self, &LostRange { stream, offset, len, fin }: &LostRange) -> bool {
        self.streams.sender(stream).is_some_and(|send| send.lacks(offset, len, fin))
    }

    /// Whether a lost frame still says something: credit that has grown since is told by the newer frame.
    fn is_current(&mut self, frame: &Frame) -> bool {
        match frame {
            Frame::MaxData(max) => *max >= self.credit.told(),
            Frame::MaxStreams { kind, max } => *max >= self.streams.granted(*kind),
            Frame::PathStatus(path, told) => self.paths.get(usize::from(*path)).is_some_and(|path| path.duty.is_last(told)),
            Frame::MaxStreamData { stream, .. } | Frame::StopSending { stream, .. } => {
                self.streams.get_mut(*stream).is_some_and(|stream| stream.receive.is_some())
            }
            _ => true,
        }
    }
}

fn placed_fin(frame: &Frame) -> Option<StreamId> {
    match frame {
        Frame::PlacedFin { stream, .. } => Some(*stream),
        _ => None,
    }
}
