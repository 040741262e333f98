//! What a scenario is made of, and how its network is built.

use std::borrow::Cow;
use std::time::Duration;

use haul_units::{Bytes, Time};

use super::check::Check;
use crate::topology::{Fabric, Topology};
use crate::{Endpoint, EndpointId, Network, Ways};

/// An endpoint that is one end of a flow.
pub trait FlowEnd: Endpoint {
    /// Payload that this end has received, each byte once.
    fn received(&self) -> Bytes;
    /// When this end had received all of a flow that has an end.
    fn completed_at(&self) -> Option<Time>;
}

/// A scenario.
#[derive(Debug, Clone)]
pub struct Plan<K: Clone + 'static> {
    /// What failures call it.
    pub name: &'static str,
    /// Seed of all chance.
    pub seed: u64,
    /// Where it happens.
    pub topology: Topology,
    /// Who sends to whom.
    pub flows: Cow<'static, [Flow<K>]>,
    /// How long it lasts at most; it ends when all flows are complete.
    pub length: Duration,
    /// What must hold.
    pub checks: &'static [Check],
}

/// A flow from one host to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow<K> {
    /// What it is made of.
    pub kind: K,
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// When it starts.
    pub start: Duration,
    /// How much it sends; `None`: without end.
    pub size: Option<Bytes>,
    /// Round-trip time on top of the path's.
    pub extra_rtt: Duration,
    /// Which of several equal paths it takes. What it does with more than one is its own affair.
    pub ways: Ways,
}

impl<K> Flow<K> {
    /// A flow without end, from the start.
    pub const fn endless(kind: K, from: usize, to: usize) -> Self {
        Self { kind, from, to, start: Duration::ZERO, size: None, extra_rtt: Duration::ZERO, ways: Ways::Hashed(1) }
    }

    /// A flow of a size, from the start.
    pub const fn bulk(kind: K, from: usize, to: usize, size: Bytes) -> Self {
        Self { kind, from, to, start: Duration::ZERO, size: Some(size), extra_rtt: Duration::ZERO, ways: Ways::Hashed(1) }
    }
}

/// What is known when the ends of a flow are built.
#[derive(Debug, Clone, Copy)]
pub struct FlowSpec<'a, K> {
    /// What it is made of.
    pub kind: &'a K,
    /// Number of the host that sends.
    pub host: usize,
    /// Where the sender will be.
    pub sender: EndpointId,
    /// Where the receiver will be.
    pub receiver: EndpointId,
    /// When it starts.
    pub start: Time,
    /// How much it sends.
    pub size: Option<Bytes>,
    /// How many ways it has.
    pub ways: u16,
    /// A seed of its own.
    pub seed: u64,
}

/// A plan on the way.
pub struct Scene<E: FlowEnd> {
    /// Endpoints in pairs: flow `n` is sent by endpoint `2 * n` and received by `2 * n + 1`.
    pub network: Network<E>,
    /// The links.
    pub fabric: Fabric,
}

impl<K: Clone> Plan<K> {
    /// Builds the network and its flows; `ends` gives the sender and the receiver of one.
    pub fn build<E: FlowEnd>(&self, mut ends: impl FnMut(&FlowSpec<'_, K>) -> (E, E)) -> Scene<E> {
        let mut network = Network::new();
        let fabric = self.topology.build(&mut network, self.seed);
        for (number, flow) in self.flows.iter().enumerate() {
            let spec = FlowSpec {
                kind: &flow.kind,
                host: flow.from,
                sender: EndpointId(number * 2),
                receiver: EndpointId(number * 2 + 1),
                start: Time::ZERO + flow.start,
                size: flow.size,
                ways: flow.ways.count(),
                seed: self.seed.wrapping_mul(1_000_003).wrapping_add(number as u64),
            };
            let (sender, receiver) = ends(&spec);
            let (sender, receiver) = (network.add_endpoint(sender), network.add_endpoint(receiver));
            fabric.connect(&mut network, [(flow.from, sender), (flow.to, receiver)], spec.seed, flow.ways, flow.extra_rtt);
        }
        Scene { network, fabric }
    }
}
