//! Endpoints joined by links, run in virtual time.
//!
//! A route from one endpoint to another is a list of links; flows that share a link share its queue. Between two endpoints there may be
//! several, told apart by their number: a packet says which way it goes. The network jumps from event to
//! event: what arrives is handled, timers fire, and whoever was touched is asked what it wants to send. Events wait in a heap, at most a
//! few for each link and endpoint: a packet costs the logarithm of their number a hop, however many stand idle.
//! Within an instant links come before timers, each in order of their number: a run depends on nothing but its seeds.

use std::collections::HashMap;

use haul_units::{Bytes, Time};

use crate::agenda::Agenda;
use crate::{Change, Delivered, Link, LinkConfig};

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
    /// Whether queues may mark a packet in place of dropping it.
    fn ecn_capable(_packet: &Self::Packet) -> bool {
        true
    }
}

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit<P> {
    /// To whom.
    pub to: EndpointId,
    /// Which of the ways there; 0 where there is one.
    pub way: u16,
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
    /// The links of all routes, one route after the other.
    hops: Vec<u32>,
    /// The newest route between two endpoints, by way.
    newest: HashMap<(u32, u32, u16), u32>,
    link_events: Agenda,
    timers: Agenda,
    /// Endpoints to be asked for packets.
    touched: Touched,
    /// Links that somebody outside may have changed.
    changed: Vec<usize>,
    events: u64,
}

#[derive(Debug)]
struct Route {
    from: EndpointId,
    to: EndpointId,
    first_hop: u32,
    hops: u32,
}

/// A packet on its way.
#[derive(Debug, Clone)]
pub struct Parcel<P> {
    packet: P,
    bytes: u32,
    route: u32,
    hop: u32,
    ce: bool,
    corrupted: bool,
}

impl<E: Endpoint> Network<E> {
    /// Nothing and nobody, at time zero.
    pub fn new() -> Self {
        Self {
            now: Time::ZERO,
            endpoints: Vec::new(),
            links: Vec::new(),
            routes: Vec::new(),
            hops: Vec::new(),
            newest: HashMap::new(),
            link_events: Agenda::default(),
            timers: Agenda::default(),
            touched: Touched::default(),
            changed: Vec::new(),
            events: 0,
        }
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
        self.timers.grow(self.endpoints.len());
        self.touched.add(self.endpoints.len() - 1);
        EndpointId(self.endpoints.len() - 1)
    }

    /// Adds a link, one direction.
    pub fn add_link(&mut self, config: LinkConfig) -> LinkId {
        self.links.push(Link::new(config));
        self.link_events.grow(self.links.len());
        LinkId(self.links.len() - 1)
    }

    /// Packets from `from` to `to` pass these links; replaces an older route for what is sent from here on.
    pub fn route(&mut self, from: EndpointId, to: EndpointId, links: &[LinkId]) {
        self.route_way(from, to, 0, links);
    }

    /// The same for packets that go this way.
    pub fn route_way(&mut self, from: EndpointId, to: EndpointId, way: u16, links: &[LinkId]) {
        // Older routes stay: parcels on their way refer to them by position.
        let (first_hop, hops) = (self.hops.len() as u32, links.len() as u32);
        self.hops.extend(links.iter().map(|link| link.0 as u32));
        self.newest.insert((from.0 as u32, to.0 as u32, way), self.routes.len() as u32);
        self.routes.push(Route { from, to, first_hop, hops });
    }

    /// Changes of a link to come.
    pub fn schedule(&mut self, link: LinkId, changes: impl IntoIterator<Item = (Time, Change)>) {
        self.link_mut(link).schedule(changes);
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
        self.touched.add(id.0);
        &mut self.endpoints[id.0]
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> &Link<Parcel<E::Packet>> {
        &self.links[id.0]
    }

    /// A link, to change.
    pub fn link_mut(&mut self, id: LinkId) -> &mut Link<Parcel<E::Packet>> {
        self.changed.push(id.0);
        &mut self.links[id.0]
    }

    /// How many endpoints there are.
    pub fn endpoints(&self) -> usize {
        self.endpoints.len()
    }

    /// Arrivals at the end of a link and timers, so far.
    pub fn events(&self) -> u64 {
        self.events
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
            let next = self.link_events.next().min(self.timers.next()).max(self.now);
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

    fn arrivals(&mut self) {
        while let Some(index) = self.link_events.due(self.now) {
            while let Some(delivered) = self.links[index].pop(self.now) {
                self.events += 1;
                let mut parcel = delivered.packet;
                parcel.ce |= delivered.ce;
                parcel.corrupted |= delivered.corrupted;
                parcel.hop += 1;
                self.forward(delivered.at, parcel);
            }
            self.link_events.put(index, self.links[index].next_event());
        }
    }

    /// Hands a parcel to its next link, or to the endpoint at the end of its route.
    fn forward(&mut self, at: Time, parcel: Parcel<E::Packet>) {
        let route = &self.routes[parcel.route as usize];
        if parcel.hop < route.hops {
            let index = self.hops[(route.first_hop + parcel.hop) as usize] as usize;
            let (bytes, ect) = (Bytes(u64::from(parcel.bytes)), E::ecn_capable(&parcel.packet));
            let link = &mut self.links[index];
            link.send_ecn(at, parcel, bytes, ect);
            self.link_events.put(index, link.next_event());
            return;
        }
        let (from, to) = (route.from, route.to);
        self.touched.add(to.0);
        let delivered = Delivered { packet: parcel.packet, at, ce: parcel.ce, corrupted: parcel.corrupted };
        self.endpoints[to.0].handle(self.now, from, delivered);
    }

    fn timeouts(&mut self) {
        while let Some(index) = self.timers.due(self.now) {
            let endpoint = &mut self.endpoints[index];
            if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                self.events += 1;
                endpoint.handle_timeout(self.now);
            }
            // Its next timeout goes onto the agenda when it has been asked for packets.
            self.touched.add(index);
        }
    }

    /// Sends whatever the touched endpoints have to send. A packet without a route vanishes.
    fn settle(&mut self) {
        for index in std::mem::take(&mut self.changed) {
            self.link_events.put(index, self.links[index].next_event());
        }
        let touched = self.touched.take();
        for &index in &touched {
            while let Some(transmit) = self.endpoints[index].poll_transmit(self.now) {
                let Transmit { to, way, packet, bytes } = transmit;
                let Some(&route) = self.newest.get(&(index as u32, to.0 as u32, way)) else { continue };
                let bytes = u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX);
                self.forward(self.now, Parcel { packet, bytes, route, hop: 0, ce: false, corrupted: false });
            }
            self.timers.put(index, self.endpoints[index].poll_timeout());
        }
        self.touched.give_back(touched);
    }
}

/// A set of endpoints, in order of their number.
#[derive(Debug, Default)]
struct Touched {
    marked: Vec<bool>,
    list: Vec<usize>,
}

impl Touched {
    fn add(&mut self, index: usize) {
        if self.marked.len() <= index {
            self.marked.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.marked[index], true) {
            self.list.push(index);
        }
    }

    fn take(&mut self) -> Vec<usize> {
        self.list.sort_unstable();
        for &index in &self.list {
            self.marked[index] = false;
        }
        std::mem::take(&mut self.list)
    }

    /// Saves the memory for the next time, unless somebody was touched in between.
    fn give_back(&mut self, mut list: Vec<usize>) {
        if self.list.is_empty() {
            list.clear();
            self.list = list;
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
