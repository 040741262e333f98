//! Further addresses of a server: it tells them to clients that open paths by interfaces, and these look for it there where the first one does not answer.
//!
//! What of it is believed, and how often an address is asked that does not answer, is haul-paths' to say ([`haul_paths::ServerAddresses`], [`haul_paths::PeerAddress`]).

use std::net::SocketAddr;

use haul_units::Time;

use super::Connection;
use crate::streams::Side;
use crate::wire::Frame;

impl Connection {
    /// Whether this is a server whose client wants to know where else it can be reached.
    pub fn takes_addresses(&self) -> bool {
        self.side == Side::Server && self.takes_addresses && !self.is_closed()
    }

    /// A server tells a client that wants to know where else it can be reached.
    pub fn announce(&mut self, addresses: &[SocketAddr]) {
        if self.takes_addresses() {
            self.control.extend(addresses.iter().copied().map(Frame::ServerAddress));
        }
    }

    /// Where a client's server can be: where it was reached first, then what it has told, as far as a client goes there.
    pub fn server_addresses(&self) -> Vec<SocketAddr> {
        self.handshake_peer.into_iter().chain(self.server_addresses.others().iter().copied()).collect()
    }

    /// The server can be reached there too.
    pub(super) fn on_server_address(&mut self, now: Time, told: SocketAddr) {
        let Some(reached) = self.handshake_peer.filter(|_| self.side == Side::Client && !self.config.via.is_empty()) else {
            return;
        };
        if self.server_addresses.on_told(reached, told) {
            for index in 0..self.paths.len() {
                if !self.paths[index].peer.is_open() {
                    self.look_elsewhere(now, index);
                }
            }
        }
    }

    /// A client's path does not know whether its server answers where it leads.
    pub(super) fn look_elsewhere(&mut self, now: Time, index: usize) {
        if !self.server_addresses.others().is_empty() {
            let addresses = self.server_addresses();
            self.paths[index].peer.look_elsewhere(now, addresses);
        }
    }
}
