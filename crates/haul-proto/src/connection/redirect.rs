//! A client that goes on with its server at another address, because nothing comes back from where it was.
//!
//! It has chosen that address, as it chose the first one. The server follows, as it follows a client that has moved: with a challenge to where the newest packet came from.

use std::net::SocketAddr;
use std::time::Duration;

use haul_paths::PeerAddress;
use haul_units::Time;

use super::{Connection, Side};

impl Connection {
    /// Nothing is taken for lost on the paths there are before so much time has passed; zero: as the round trips say.
    pub fn set_patience(&mut self, patience: Duration) {
        self.paths.iter_mut().for_each(|path| path.patience = patience);
    }

    /// From now on a client's packets go to `to`; what was on its way elsewhere is sent again. Nothing happens to a server's connection, or to one that is over.
    pub fn redirect(&mut self, now: Time, to: SocketAddr) {
        if self.side != Side::Client || self.is_closed() || self.paths.is_empty() {
            return;
        }
        self.candidates.clear();
        self.handshake_peer = Some(to);
        if let Some(handshake) = self.handshake.as_mut() {
            handshake.repeat();
        }
        for index in 0..self.paths.len() {
            self.lose_flight(now, index);
            let path = &mut self.paths[index];
            let old = path.peer.current();
            path.peer = if index == 0 { PeerAddress::new(to) } else { PeerAddress::opening(now, to) };
            path.on_new_address(now, old, None);
            path.ping_due = index == 0;
        }
    }
}
