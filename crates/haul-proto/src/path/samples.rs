//! What the controller is told of a path: what has left, what an acknowledgement says, and what is lost.

use std::time::Duration;

use haul_cc::{AckReport, AckSample, LossSample, SentSample};
use haul_units::{Bytes, Time};

use super::Path;
use crate::recovery::{AckOutcome, Content, Lost, Run};
use crate::wire::ack::Ack;
use crate::wire::{BASE_BYTES, Frame};

impl Path {
    /// A packet or a train of them has left; `bytes` in all, kept as `runs` (content, packets, bytes of each, bytes of the last).
    pub fn on_sent(&mut self, now: Time, bytes: u64, packets: u64, app_limited: bool, runs: impl Iterator<Item = SentRun>) {
        let sample = self.record(now, bytes, packets, app_limited, runs);
        self.controller.on_sent(&sample);
    }

    /// As [`Path::on_sent`], for packets of filler.
    pub fn on_filler_sent(&mut self, now: Time, bytes: u64, packets: u64, run: SentRun) {
        let sample = self.record(now, bytes, packets, true, std::iter::once(run));
        self.controller.on_filler(&sample);
    }

    fn record(
        &mut self,
        now: Time,
        bytes: u64,
        packets: u64,
        app_limited: bool,
        runs: impl Iterator<Item = SentRun>,
    ) -> SentSample {
        if self.sent.in_flight() == 0 {
            // Between trains that the pacer holds back nothing is in flight either where the round trip is short: that is no pause.
            if self.sampler.is_app_limited() {
                self.controller.on_idle(now);
            }
            self.floor_due = self.floor_due.min(now + self.floor_interval());
        }
        let in_flight = Bytes(self.sent.in_flight() + bytes);
        let state = self.sampler.on_sent(now, Bytes(bytes), in_flight);
        for run in runs {
            let position = match run.content {
                Content::Data { .. } => self.trains.on_sent(run.count.into()),
                _ => 0,
            };
            self.sent.push(Run::new(run.first, run.count, run.content, run.packet, run.last_packet, state).at_position(position));
        }
        self.sent_at = now;
        if self.loss.is_persistent() {
            self.unheard_pkts += packets;
        }
        self.meter.sent_pkts += packets;
        self.meter.sent_bytes += bytes;
        SentSample { now, bytes: Bytes(bytes), in_flight, app_limited }
    }

    /// Measures what an acknowledgement tells; the controller gets it once losses are known.
    pub(super) fn sample(
        &mut self,
        now: Time,
        arrived: Time,
        ack: &Ack,
        outcome: &AckOutcome,
        round_start: bool,
    ) -> Option<AckSample> {
        let (number, state) = outcome.newest?;
        self.meter.delivered += outcome.acked_bytes;
        if number < self.measured_from {
            return None;
        }
        self.mtu.on_data_acked(if outcome.acked_bytes > outcome.acked_pkts * u64::from(BASE_BYTES) { u16::MAX } else { 0 });
        let mut rtt = None;
        let mut queue_delay = None;
        if number == ack.largest {
            let round_trip = arrived.since(state.sent_at);
            let own = self.rtt.on_sample(now, round_trip, Duration::from_micros(ack.delay_us));
            rtt = Some(own);
            let arrived = Time::from_nanos(ack.largest_clock_ns);
            let delay = self.one_way.on_sample(now, state.sent_at, arrived, round_trip);
            self.meter.queue_delay = delay;
            self.witness.on_queue_delay(delay, self.rtt.min());
            self.rtts_us.record(u64::try_from(own.as_micros()).unwrap_or(u64::MAX));
            self.queue_delays_us.record(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX));
            queue_delay = Some(delay);
            let dispersion = self.dispersion.on_report(&state, Bytes(ack.bytes), Time::from_nanos(ack.clock_ns));
            if let Some(sample) = dispersion {
                self.controller.on_dispersion(&sample);
            }
        }
        let report = AckReport {
            now,
            receiver_bytes: Bytes(ack.bytes),
            receiver_time: Time::from_nanos(ack.clock_ns),
            lost_total: Bytes(self.meter.lost_bytes),
            min_rtt: self.rtt.min(),
        };
        let rate = self.sampler.on_ack(&state, &report);
        if let Some(rate) = &rate {
            self.meter.delivery_rate = rate.rate;
            self.witness.on_rate(rate.rate);
        }
        Some(AckSample {
            now,
            acked: Bytes(outcome.acked_bytes),
            delivered: Bytes(self.meter.delivered),
            in_flight: Bytes(self.sent.in_flight()),
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            queue_delay,
            rate,
            round: self.round,
            round_start,
            lost_total: Bytes(self.meter.lost_bytes),
        })
    }

    pub(super) fn on_lost(&mut self, now: Time, lost: Lost, persistent: bool) -> Vec<Frame> {
        for size in lost.mtu_probes {
            self.mtu.on_probe_lost(size);
        }
        if lost.packets > 0 {
            self.meter.lost_bytes += lost.bytes.as_u64();
            self.meter.lost_pkts += lost.packets;
            self.witness.on_lost(lost.packets, lost.newest_sent_at, self.meter.queue_delay, self.rtt.min());
            if lost.large_pkts > 0 && self.mtu.on_data_lost(now, lost.large_pkts, self.rtt.smoothed()) {
                self.controller.on_mtu(Bytes(self.mtu.current().into()));
            }
            self.controller.on_loss(&LossSample {
                now,
                lost: lost.bytes,
                runs: lost.runs,
                in_flight: Bytes(self.sent.in_flight()),
                in_flight_at_send: lost.in_flight_at_send,
                sent_at: lost.newest_sent_at,
                persistent,
                min_rtt: self.rtt.min(),
            });
        }
        lost.frames
    }
}

/// A run about to be remembered, without the state that all runs of a train share.
#[derive(Debug)]
pub struct SentRun {
    /// Number of its first packet.
    pub first: u64,
    /// Packets.
    pub count: u8,
    /// What they carry.
    pub content: Content,
    /// Bytes of each but the last.
    pub packet: u16,
    /// Bytes of the last.
    pub last_packet: u16,
}
