//! A server that shakes hands like any other, and then plays a script.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use e2e::Stopwatch;
use haul_proto::handshake::{Accept, Acceptor, CookieJar, Handshake, ServerParams, ServerTls};
use haul_proto::identity::{Identity, PeerTrust};

use crate::attempt::{generous, now};
use crate::outlet::Outlet;
use crate::peer::Peer;

/// It listens on one port, for one client.
pub struct Host {
    outlet: Outlet,
    tls: ServerTls,
    /// What a client has to trust.
    pub fingerprint: String,
}

impl Host {
    /// On a free port of an address.
    pub fn listen(address: IpAddr, protocol: &[u8]) -> Self {
        let identity = Identity::generate();
        let tls = ServerTls::new(&identity, &PeerTrust::Anyone, vec![protocol.to_vec()]).expect("a sound configuration");
        Self { outlet: Outlet::bind(address), tls, fingerprint: identity.public_key().fingerprint().to_string() }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.outlet.address()
    }

    /// Lets the first client in that comes.
    pub fn accept(mut self, limit: Duration) -> Option<Peer> {
        let acceptor = Acceptor::new(CookieJar::new(&[7; 32]));
        let watch = Stopwatch::start();
        let mut under_way: Option<(SocketAddr, Handshake)> = None;
        let mut buffer = [0; 2048];
        while watch.elapsed() < limit {
            while let Some((from, datagram)) = self.outlet.take(&mut buffer) {
                let now = now(&watch);
                if let Some((client, handshake)) = &mut under_way {
                    if *client == from {
                        let _ = handshake.handle_datagram(now, datagram);
                    }
                    continue;
                }
                match acceptor.handle(now, from, datagram, |_| true) {
                    Accept::Respond(answer) => self.outlet.send(from, &answer),
                    Accept::Begin(initial) => {
                        let params = ServerParams::new(self.tls.clone(), generous(), 4711);
                        let mut handshake = Handshake::server(now, params, &initial).expect("a sound configuration");
                        let _ = handshake.handle_datagram(now, datagram);
                        under_way = Some((from, handshake));
                    }
                    Accept::Ignore => {}
                }
            }
            if let Some((client, handshake)) = &mut under_way {
                let now = now(&watch);
                if handshake.poll_timeout().is_some_and(|at| at <= now) {
                    handshake.handle_timeout(now).ok()?;
                }
                while let Some(length) = handshake.poll_transmit(now, &mut buffer) {
                    self.outlet.send(*client, &buffer[..length]);
                }
                if let Some(established) = handshake.take_complete() {
                    return Some(Peer::new(self.outlet, *client, established));
                }
            }
            Outlet::wait([&self.outlet], Duration::from_millis(5));
        }
        None
    }
}
