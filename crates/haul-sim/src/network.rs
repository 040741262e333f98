//! Endpoints joined by links, run in virtual time.
//!
//! A route from one endpoint to another is a list of links; flows that share a link share its queue. The network jumps from event to
//! event: what arrives is handled, timers fire, and whoever was touched is asked what it wants to send.

use haul_units::{Bytes, Time};

use crate::{Delivered, Link, LinkConfig};

/// Something that speaks a protocol, without a clock or a socket.
pub trait Endpoint {
    /// What travels.
    type Packet: Clone;
    /// A packet from endpoint `from` has arrived.
    fn handle(&mut self, now: Time, from: EndpointId, packet: Delivered<Self::Packet>);
    /// The time of [`Self::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Time);
    /// The next packet to send at this instant; called until there is none.
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Self::Packet>>;
    /// When to be woken, if nothing arrives before.
    fn poll_timeout(&self) -> Option<Time>;
}

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit<P> {
    /// To whom.
    pub to: EndpointId,
    /// What.
    pub packet: P,
    /// What it takes on the wire.
    pub bytes: Bytes,
}

/// An endpoint of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub usize);

/// A link of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Endpoints, links and routes.
#[derive(Debug)]
pub struct Network<E: Endpoint> {
    now: Time,
    endpoints: Vec<E>,
    links: Vec<Link<Parcel<E::Packet>>>,
    routes: Vec<Route>,
    /// Endpoints to be asked for packets.
    touched: Vec<bool>,
}

#[derive(Debug)]
struct Route {
    from: EndpointId,
    to: EndpointId,
    links: Vec<LinkId>,
}

/// A packet on its way.
#[derive(Debug, Clone)]
pub struct Parcel<P> {
    packet: P,
    bytes: Bytes,
    route: usize,
    hop: usize,
    ce: bool,
    corrupted: bool,
}

impl<E: Endpoint> Network<E> {
    /// Nothing and nobody, at time zero.
    pub fn new() -> Self {
        Self { now: Time::ZERO, endpoints: Vec::new(), links: Vec::new(), routes: Vec::new(), touched: Vec::new() }
    }

    /// Two endpoints, the first with id 0, and a link each way.
    pub fn pair(first: E, second: E, there: LinkConfig, back: LinkConfig) -> Self {
        let mut network = Self::new();
        let (a, b) = (network.add_endpoint(first), network.add_endpoint(second));
        let (there, back) = (network.add_link(there), network.add_link(back));
        network.route(a, b, &[there]);
        network.route(b, a, &[back]);
        network
    }

    /// Adds an endpoint; it is asked for packets when the network runs next.
    pub fn add_endpoint(&mut self, endpoint: E) -> EndpointId {
        self.endpoints.push(endpoint);
        self.touched.push(true);
        EndpointId(self.endpoints.len() - 1)
    }

    /// Adds a link, one direction.
    pub fn add_link(&mut self, config: LinkConfig) -> LinkId {
        self.links.push(Link::new(config));
        LinkId(self.links.len() - 1)
    }

    /// Packets from `from` to `to` pass these links; replaces an older route for what is sent from here on.
    pub fn route(&mut self, from: EndpointId, to: EndpointId, links: &[LinkId]) {
        // Older routes stay: parcels on their way refer to them by position.
        self.routes.push(Route { from, to, links: links.to_vec() });
    }

    /// The time in the network.
    pub fn now(&self) -> Time {
        self.now
    }

    /// An endpoint.
    pub fn endpoint(&self, id: EndpointId) -> &E {
        &self.endpoints[id.0]
    }

    /// An endpoint, to act on; it is asked for packets when the network runs next.
    pub fn endpoint_mut(&mut self, id: EndpointId) -> &mut E {
        self.touched[id.0] = true;
        &mut self.endpoints[id.0]
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> &Link<Parcel<E::Packet>> {
        &self.links[id.0]
    }

    /// A link, to change.
    pub fn link_mut(&mut self, id: LinkId) -> &mut Link<Parcel<E::Packet>> {
        &mut self.links[id.0]
    }

    /// Runs until `deadline`, or until nothing can happen any more, or until `done`, asked after each instant, says so.
    /// True if `done` did.
    pub fn run_until(&mut self, deadline: Time, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let mut visits = 0;
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let next = self.next_event().unwrap_or(Time::NEVER).max(self.now);
            if next > deadline || next == Time::NEVER {
                self.now = self.now.max(deadline);
                return false;
            }
            visits = if next == self.now { visits + 1 } else { 0 };
            assert!(visits < MAX_VISITS, "time stands still at {next}: an endpoint's timeout does not move on");
            self.now = next;
            self.arrivals();
            self.timeouts();
        }
    }

    /// Runs until `deadline`.
    pub fn run(&mut self, deadline: Time) {
        self.run_until(deadline, |_| false);
    }

    /// When something happens next.
    fn next_event(&self) -> Option<Time> {
        let links = self.links.iter().filter_map(Link::next_event);
        let endpoints = self.endpoints.iter().filter_map(Endpoint::poll_timeout);
        links.chain(endpoints).min()
    }

    fn arrivals(&mut self) {
        for index in 0..self.links.len() {
            while let Some(delivered) = self.links[index].pop(self.now) {
                let mut parcel = delivered.packet;
                parcel.ce |= delivered.ce;
                parcel.corrupted |= delivered.corrupted;
                parcel.hop += 1;
                self.forward(delivered.at, parcel);
            }
        }
    }

    /// Hands a parcel to its next link, or to the endpoint at the end of its route.
    fn forward(&mut self, at: Time, parcel: Parcel<E::Packet>) {
        let route = &self.routes[parcel.route];
        if let Some(link) = route.links.get(parcel.hop) {
            let bytes = parcel.bytes;
            self.links[link.0].send(at, parcel, bytes);
            return;
        }
        let (from, to) = (route.from, route.to);
        self.touched[to.0] = true;
        let delivered = Delivered { packet: parcel.packet, at, ce: parcel.ce, corrupted: parcel.corrupted };
        self.endpoints[to.0].handle(self.now, from, delivered);
    }

    fn timeouts(&mut self) {
        for (endpoint, touched) in self.endpoints.iter_mut().zip(&mut self.touched) {
            if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                endpoint.handle_timeout(self.now);
                *touched = true;
            }
        }
    }

    /// Sends whatever the touched endpoints have to send. A packet without a route vanishes.
    fn settle(&mut self) {
        for index in 0..self.endpoints.len() {
            if !std::mem::take(&mut self.touched[index]) {
                continue;
            }
            while let Some(transmit) = self.endpoints[index].poll_transmit(self.now) {
                let from = EndpointId(index);
                let route = self.routes.iter().rposition(|route| route.from == from && route.to == transmit.to);
                let Some(route) = route else { continue };
                let Transmit { packet, bytes, .. } = transmit;
                self.forward(self.now, Parcel { packet, bytes, route, hop: 0, ce: false, corrupted: false });
            }
        }
    }
}

impl<E: Endpoint> Default for Network<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// More turns at one instant than any exchange without delay needs.
const MAX_VISITS: u32 = 100_000;
