//! A host in virtual time whose interface spaces what it sends, by gaps or by a timer, and the switch that takes the gaps.
//!
//! The first link of a flow is the line, of the rate that is said here; the route to the switch has that link alone, so that gaps end behind it. Sizes are those on the line.

use std::collections::VecDeque;
use std::time::Duration;

use haul_netdev::ethernet::on_line;
use haul_sim::{Delivered, Endpoint, EndpointId, FlowEnd, Transmit};
use haul_units::{BitRate, Bytes, GapMeter, Time};

use crate::{ClassId, Estimator, Next, Scheduler};

/// What travels on the line of such a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLine<P> {
    /// A packet.
    Packet(P),
    /// A gap.
    Gap,
}

/// One end of a flow behind an interface, with a meter of the gaps between what comes.
#[derive(Debug)]
pub struct Spaced<E: Endpoint> {
    inner: E,
    interface: Interface<E::Packet>,
    follows: Option<Follows<E>>,
    arrivals: GapMeter,
}

/// A rate that follows the end's own window.
#[derive(Debug)]
struct Follows<E> {
    estimator: Estimator,
    /// Its window in packets, what one of them takes on the line, its round trip.
    of: fn(&E) -> (u64, Bytes, Duration),
}

#[derive(Debug)]
enum Interface<P> {
    Plain,
    Gaps(Line<P>),
    Timer(Timer<P>),
}

impl<E: Endpoint> Spaced<E> {
    /// Sends at `rate` over a line, which it fills with gaps that `switch` takes; packets that wait have `room`.
    pub fn by_gaps(inner: E, line: BitRate, rate: BitRate, room: Bytes, switch: EndpointId) -> Self {
        let mut scheduler = Scheduler::new(line);
        let class = scheduler.add_class(Some(rate), room);
        Self::behind(inner, Interface::Gaps(Line { scheduler, class, rate: line, switch, free_at: Time::ZERO }))
    }

    /// Sends what its window asks for, over a line as [`by_gaps`](Self::by_gaps): `of` has its window in packets, what one of them takes on the line, and its round trip.
    pub fn by_following_gaps(
        inner: E,
        line: BitRate,
        of: fn(&E) -> (u64, Bytes, Duration),
        room: Bytes,
        switch: EndpointId,
    ) -> Self {
        let follows = Some(Follows { estimator: Estimator::default(), of });
        Self { follows, ..Self::by_gaps(inner, line, line, room, switch) }
    }

    /// Sends at `rate` by a timer that fires at multiples of `tick`, and lets go whatever is due then.
    pub const fn by_timer(inner: E, tick: Duration, rate: BitRate, room: Bytes) -> Self {
        let timer = Timer { tick, rate, room, queue: VecDeque::new(), queued: Bytes::ZERO, next_at: Time::ZERO };
        Self::behind(inner, Interface::Timer(timer))
    }

    /// Sends as it likes: a receiver, a switch, somebody to compare with.
    pub const fn plain(inner: E) -> Self {
        Self::behind(inner, Interface::Plain)
    }

    const fn behind(inner: E, interface: Interface<E::Packet>) -> Self {
        Self { inner, interface, follows: None, arrivals: GapMeter::new() }
    }

    /// Who is behind the interface.
    pub const fn inner(&self) -> &E {
        &self.inner
    }

    /// The gaps between packets that came.
    pub const fn arrivals(&self) -> &GapMeter {
        &self.arrivals
    }
}

/// An interface that fills its line.
#[derive(Debug)]
struct Line<P> {
    scheduler: Scheduler<Transmit<P>>,
    class: ClassId,
    rate: BitRate,
    /// Where gaps end.
    switch: EndpointId,
    /// When the line has carried what was given to it.
    free_at: Time,
}

impl<P> Line<P> {
    fn push(&mut self, now: Time, transmit: Transmit<P>) {
        if self.scheduler.waiting() == 0 && now > self.free_at {
            self.scheduler.silent(self.rate.bytes_in(now.since(self.free_at)));
            self.free_at = now;
        }
        let bytes = transmit.bytes;
        self.scheduler.push(self.class, transmit, bytes);
    }

    fn hold_to(&mut self, rate: BitRate) {
        self.scheduler.set_rate(self.class, Some(rate.min(self.rate)));
    }

    fn next(&mut self, now: Time) -> Option<Transmit<OnLine<P>>> {
        if now < self.free_at {
            return None;
        }
        let transmit = match self.scheduler.carry() {
            Next::Frame(transmit) => as_packet(transmit),
            Next::Gap(bytes) => Transmit { to: self.switch, way: 0, packet: OnLine::Gap, bytes },
            Next::Idle => return None,
        };
        self.free_at = now + self.rate.time_for(transmit.bytes);
        Some(transmit)
    }
}

/// An interface with a timer.
#[derive(Debug)]
struct Timer<P> {
    tick: Duration,
    rate: BitRate,
    room: Bytes,
    queue: VecDeque<Transmit<P>>,
    queued: Bytes,
    /// When the first in the queue is due.
    next_at: Time,
}

impl<P> Timer<P> {
    fn push(&mut self, now: Time, transmit: Transmit<P>) {
        if self.queued + transmit.bytes <= self.room {
            if self.queue.is_empty() {
                self.next_at = self.next_at.max(now);
            }
            self.queued += transmit.bytes;
            self.queue.push_back(transmit);
        }
    }

    fn next(&mut self, now: Time) -> Option<Transmit<OnLine<P>>> {
        if self.fires_at()? > now {
            return None;
        }
        let transmit = self.queue.pop_front()?;
        self.queued = self.queued.saturating_sub(transmit.bytes);
        self.next_at += self.rate.time_for(transmit.bytes);
        Some(as_packet(transmit))
    }

    /// The first tick at which something is due.
    fn fires_at(&self) -> Option<Time> {
        self.queue.front()?;
        let tick = u64::try_from(self.tick.as_nanos()).unwrap_or(u64::MAX).max(1);
        Some(Time::from_nanos(self.next_at.as_nanos().div_ceil(tick).saturating_mul(tick)))
    }
}

fn as_packet<P>(Transmit { to, way, packet, bytes }: Transmit<P>) -> Transmit<OnLine<P>> {
    Transmit { to, way, packet: OnLine::Packet(packet), bytes }
}

impl<E: Endpoint> Endpoint for Spaced<E> {
    type Packet = OnLine<E::Packet>;

    fn handle(&mut self, now: Time, from: EndpointId, delivered: Delivered<Self::Packet>) {
        let Delivered { packet: OnLine::Packet(packet), at, ce, corrupted } = delivered else { return };
        self.arrivals.record(at);
        self.inner.handle(now, from, Delivered { packet, at, ce, corrupted });
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.inner.poll_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Self::Packet>> {
        if let (Some(Follows { estimator, of }), Interface::Gaps(line)) = (&mut self.follows, &mut self.interface) {
            let (window_pkts, packet, rtt) = of(&self.inner);
            if let Some(target) = estimator.target(window_pkts, packet, rtt) {
                line.hold_to(target);
            }
        }
        while let Some(transmit) = self.inner.poll_transmit(now) {
            let transmit = Transmit { bytes: on_line(transmit.bytes), ..transmit };
            match &mut self.interface {
                Interface::Plain => return Some(as_packet(transmit)),
                Interface::Gaps(line) => line.push(now, transmit),
                Interface::Timer(timer) => timer.push(now, transmit),
            }
        }
        match &mut self.interface {
            Interface::Plain => None,
            Interface::Gaps(line) => line.next(now),
            Interface::Timer(timer) => timer.next(now),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let outer = match &self.interface {
            Interface::Plain => None,
            Interface::Gaps(line) => (line.scheduler.waiting() > 0).then_some(line.free_at),
            Interface::Timer(timer) => timer.fires_at(),
        };
        match (self.inner.poll_timeout(), outer) {
            (Some(inner), Some(outer)) => Some(inner.min(outer)),
            (inner, outer) => inner.or(outer),
        }
    }

    fn ecn_capable(packet: &Self::Packet) -> bool {
        matches!(packet, OnLine::Packet(packet) if E::ecn_capable(packet))
    }
}

impl<E: FlowEnd> FlowEnd for Spaced<E> {
    fn received(&self) -> Bytes {
        self.inner.received()
    }

    fn completed_at(&self) -> Option<Time> {
        self.inner.completed_at()
    }
}

#[cfg(test)]
mod tests {
    use haul_sim::{LinkConfig, LinkId, Network, Tcp, TcpConfig};

    use super::*;

    const LINE: BitRate = BitRate::gbps(1);
    const RATE: BitRate = BitRate::mbps(400);
    /// A frame of 1500 bytes at 400 Mbit/s.
    const PERIOD: Duration = Duration::from_nanos(1538 * 8 * 10 / 4);

    /// A TCP with a window too large for its own good, over a line to a switch with little memory, and on: its packets at the far end, and what the switch dropped.
    fn flow(interface: impl FnOnce(Tcp, EndpointId) -> Spaced<Tcp>) -> (GapMeter, u64, Bytes) {
        flow_of(TcpConfig { max_window_pkts: 2000, ..TcpConfig::RENO }, interface)
    }

    fn flow_of(config: TcpConfig, interface: impl FnOnce(Tcp, EndpointId) -> Spaced<Tcp>) -> (GapMeter, u64, Bytes) {
        let (receiver, switch) = (EndpointId(1), EndpointId(2));
        let mut network = Network::new();
        network.add_endpoint(interface(Tcp::sender(config, receiver, Time::ZERO, None), switch));
        network.add_endpoint(Spaced::plain(Tcp::receiver(config, None)));
        network.add_endpoint(Spaced::plain(Tcp::receiver(config, None)));
        let line = network.add_link(LinkConfig { rate: LINE, delay: Duration::ZERO, ..LinkConfig::default() });
        // As fast as 400 Mbit/s and a little more; 64 kB of memory.
        let path = LinkConfig {
            rate: BitRate::mbps(420),
            delay: Duration::from_millis(25),
            queue: Bytes(64_000),
            ..LinkConfig::default()
        };
        let path = network.add_link(path);
        let back = network.add_link(LinkConfig { delay: Duration::from_millis(25), ..LinkConfig::default() });
        network.route(EndpointId(0), receiver, &[line, path]);
        network.route(EndpointId(0), switch, &[line]);
        network.route(receiver, EndpointId(0), &[back]);
        network.run(Time::ZERO + Duration::from_secs(10));
        let dropped = network.link(LinkId(1)).stats().dropped_pkts;
        (network.endpoint(receiver).arrivals().clone(), dropped, network.endpoint(receiver).received())
    }

    #[test]
    fn gaps_space_packets_exactly_and_nothing_is_dropped() {
        let room = Bytes::mib(8);
        let (gaps, dropped, received) = flow(|tcp, switch| Spaced::by_gaps(tcp, LINE, RATE, room, switch));
        assert_eq!(dropped, 0);
        assert!(received > Bytes(400_000_000), "{received}");
        let (low, high) = (gaps.quantile(0.05).unwrap(), gaps.quantile(0.95).unwrap());
        assert!(low.abs_diff(PERIOD) < PERIOD / 25 && high.abs_diff(PERIOD) < PERIOD / 25, "{low:?} to {high:?}, not {PERIOD:?}");
    }

    /// Both parts of IPG-aware packet scheduling together.
    #[test]
    fn gaps_that_follow_the_window_space_it_over_its_round_trip() {
        /// The receiver's room bounds the window too.
        fn of<const ROOM_PKTS: u32>(tcp: &Tcp) -> (u64, Bytes, Duration) {
            let stats = tcp.stats();
            (stats.window_pkts.min(ROOM_PKTS.into()) as u64, Bytes(1538), stats.rtt)
        }
        fn follow<const ROOM_PKTS: u32>() -> (GapMeter, u64, Bytes) {
            let config = TcpConfig { max_window_pkts: ROOM_PKTS, ..TcpConfig::RENO };
            flow_of(config, |tcp, switch| Spaced::by_following_gaps(tcp, LINE, of::<ROOM_PKTS>, Bytes::mib(8), switch))
        }
        let (gaps, dropped, received) = follow::<1000>();
        assert_eq!(dropped, 0);
        // 1000 packets each 50 ms: one each 50 us, less the time on the way of the first.
        let place = Duration::from_micros(50);
        let (low, middle, high) = (gaps.quantile(0.1).unwrap(), gaps.quantile(0.5).unwrap(), gaps.quantile(0.9).unwrap());
        assert!(
            low > place * 9 / 10 && middle.abs_diff(place) < place / 20 && high < place * 11 / 10,
            "{low:?} {middle:?} {high:?}"
        );
        assert!(received > Bytes(230_000_000), "{received}");
        // Half the window is half the rate: nobody has named one.
        let (gaps, dropped, _) = follow::<500>();
        assert!(dropped == 0 && gaps.quantile(0.5).unwrap().abs_diff(2 * place) < place / 10, "{:?}", gaps.quantile(0.5));
        // Without gaps the same window comes in bursts.
        let config = TcpConfig { max_window_pkts: 1000, ..TcpConfig::RENO };
        let (gaps, ..) = flow_of(config, |tcp, _| Spaced::plain(tcp));
        assert!(gaps.quantile(0.1).unwrap() < place * 8 / 10, "{:?}", gaps.quantile(0.1));
    }

    #[test]
    fn a_timer_is_as_exact_as_its_tick() {
        let room = Bytes::mib(8);
        let timed = |tick| flow(|tcp, _| Spaced::by_timer(tcp, tick, RATE, room));
        let (fine, dropped, _) = timed(Duration::from_micros(1));
        assert_eq!(dropped, 0);
        assert!(fine.quantile(0.95).unwrap().abs_diff(PERIOD) < PERIOD / 10);
        // 4 ms of 400 Mbit/s are 200 kB at once, into 64 kB of memory.
        let (_, dropped, received) = timed(Duration::from_millis(4));
        assert!(dropped > 0);
        assert!(received < Bytes(250_000_000), "{received}");
    }

    #[test]
    fn without_spacing_bursts_overflow_the_switch() {
        let (gaps, dropped, received) = flow(|tcp, _| Spaced::plain(tcp));
        assert!(dropped > 0);
        assert!(received < Bytes(400_000_000), "{received}");
        assert!(gaps.quantile(0.05).unwrap() < PERIOD, "packets leave the switch one after the other");
    }
}
