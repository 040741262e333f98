//! The contract between the transport and a congestion controller.

use std::fmt::Debug;
use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::RateSample;

use crate::{Company, DispersionSample, Learned, Share};

/// A congestion controller of one path.
///
/// Call order: `on_sent` for every train that counts against the window; for every acknowledgement at most one `on_loss`, then at most one
/// `on_ecn`, then one `on_ack`; `on_spurious` when packets reported by `on_loss` turn up after all; `on_idle` before the first train after
/// a pause with nothing in flight. After each call `window`, `rate` and `burst` give the new limits.
pub trait Controller: Debug + Send {
    /// A train has been handed to the network.
    fn on_sent(&mut self, sent: &SentSample);
    /// Packets have been newly acknowledged.
    fn on_ack(&mut self, ack: &AckSample);
    /// Packets have been declared lost.
    fn on_loss(&mut self, loss: &LossSample);
    /// Packets declared lost have been acknowledged after all: a cut made for them may be undone.
    fn on_spurious(&mut self, now: Time, bytes: Bytes);
    /// The network has marked packets.
    fn on_ecn(&mut self, ecn: &EcnSample);
    /// Nothing was in flight, the application had nothing to send, and sending starts again (draft-ietf-ccwg-bbr 5.4.1).
    fn on_idle(&mut self, now: Time);
    /// The size of a full packet has changed (UDP payload bytes).
    fn on_mtu(&mut self, packet: Bytes);
    /// The path has changed under us (a new address): forget what was learned about it. `rtt`, if it has been measured there.
    fn on_path_change(&mut self, now: Time, rtt: Option<Duration>);
    /// Congestion window: how much may be in flight.
    fn window(&self) -> Bytes;
    /// Pacing rate.
    fn rate(&self) -> BitRate;
    /// The largest train to hand to the network at once.
    fn burst(&self) -> Bytes;
    /// The state for people and plots.
    fn snapshot(&self) -> Snapshot;
    /// The receiver, who sees all that comes through its link, has made room for this rate.
    fn on_room(&mut self, _now: Time, _rate: BitRate) {}
    /// Packets that left together have arrived spread out.
    fn on_dispersion(&mut self, _sample: &DispersionSample) {}
    /// Filler to send while the application has nothing to send, and from when on: the path is to be measured. A train of it may take several calls.
    fn filler(&self) -> Option<(Time, Bytes)> {
        None
    }
    /// Filler has been handed to the network, in place of `on_sent`.
    fn on_filler(&mut self, _sent: &SentSample) {}
    /// What the other paths of its connection are to know of it, if its rule can be theirs together.
    fn share(&self) -> Option<Share> {
        None
    }
    /// The paths that are taken to share a bottleneck with this one: its rule is theirs together from now on.
    fn on_company(&mut self, _company: &Company) {}
    /// What it knows about the path, for the controller that takes its place and for the next connection to the same host. `None`: it
    /// has no model of the path beyond its window.
    fn learned(&self) -> Option<Learned> {
        None
    }
}

/// A train handed to the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SentSample {
    /// When.
    pub now: Time,
    /// Its size.
    pub bytes: Bytes,
    /// In flight, this train included.
    pub in_flight: Bytes,
    /// The application had nothing more to send after it.
    pub app_limited: bool,
}

/// An acknowledgement that covers at least one packet for the first time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AckSample {
    /// When it was processed.
    pub now: Time,
    /// Newly acknowledged.
    pub acked: Bytes,
    /// Total delivered over the life of the path, these included.
    pub delivered: Bytes,
    /// In flight after it.
    pub in_flight: Bytes,
    /// Round-trip time of the newest packet acknowledged, if it is newly acknowledged; the receiver's delay is taken off.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time in the last 10 s.
    pub min_rtt: Duration,
    /// One-way queueing delay seen by the receiver's clock: delay of the newest packet above the smallest of the last 10 s.
    pub queue_delay: Option<Duration>,
    /// Delivery rate, if this acknowledgement gave a sample.
    pub rate: Option<RateSample>,
    /// Rounds counted so far: one passes when a packet sent after the last round's end is acknowledged.
    pub round: u64,
    /// This acknowledgement starts a round.
    pub round_start: bool,
    /// Total declared lost over the life of the path (spurious ones taken off again).
    pub lost_total: Bytes,
}

/// Packets declared lost in one go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossSample {
    /// When.
    pub now: Time,
    /// Lost.
    pub lost: Bytes,
    /// Runs of consecutive packets lost: 1 is a single burst.
    pub runs: u64,
    /// In flight after it.
    pub in_flight: Bytes,
    /// In flight when the newest of the lost packets left.
    pub in_flight_at_send: Bytes,
    /// When the newest of the lost packets left.
    pub sent_at: Time,
    /// Nothing has arrived for several probe timeouts: everything in flight is lost.
    pub persistent: bool,
    /// Smallest round-trip time in the last 10 s.
    pub min_rtt: Duration,
}

/// Congestion marks newly reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EcnSample {
    /// When.
    pub now: Time,
    /// Packets newly reported with CE.
    pub marked_pkts: u64,
    /// Packets newly reported in all.
    pub reported_pkts: u64,
    /// When the newest packet acknowledged left.
    pub sent_at: Time,
}

/// A controller's state for people and plots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot {
    /// The algorithm's name: "cubic".
    pub algorithm: &'static str,
    /// The phase it is in: "startup".
    pub phase: &'static str,
    /// Whether that phase is one in which it looks for the path's rate for the first time.
    pub is_starting: bool,
    /// Estimated bandwidth, where the algorithm has one.
    pub bandwidth: Option<BitRate>,
    /// Loss taken for the path's own, not for congestion, where the algorithm has such an estimate (0..=1).
    pub base_loss: Option<f64>,
    /// Slow-start threshold, where the algorithm has one.
    pub ssthresh: Option<Bytes>,
}
