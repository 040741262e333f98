//! What a host listens on, and who takes what comes.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::thread::Scope;

use haul::{BindError, Endpoint};

use super::ledger::Ledger;
use super::{tcp, transport};

/// Of a host.
pub struct Listeners {
    tcp: TcpListener,
    mptcp: Option<TcpListener>,
    haul: Endpoint,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("a host cannot listen: {0}")]
    Tcp(#[from] io::Error),
    #[error(transparent)]
    Haul(#[from] BindError),
}

impl Listeners {
    /// In the host's namespace.
    pub fn open(address: Ipv4Addr) -> Result<Self, ListenError> {
        Ok(Self {
            tcp: tcp::listen(address, PORT, false)?,
            // Where there is none nobody comes to it.
            mptcp: tcp::listen(address, MPTCP_PORT, true).ok(),
            haul: transport::listen(address, PORT)?,
        })
    }

    /// Takes what comes, each flow in a thread of its own, until nobody receives any more. One that breaks off is a flow that does not arrive.
    pub fn attend<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, ledger: &'scope Ledger) {
        for listener in std::iter::once(&self.tcp).chain(&self.mptcp) {
            scope.spawn(move || {
                while let Ok(Some(stream)) = tcp::accept(listener, ledger) {
                    scope.spawn(move || ledger.receive(stream));
                }
            });
        }
        scope.spawn(move || {
            while let Some(connection) = transport::accept(&self.haul, ledger) {
                scope.spawn(move || transport::receive(&connection, ledger));
            }
        });
    }
}

/// Of haul, and of TCP.
pub const PORT: u16 = 5001;
/// Somebody who listens for MPTCP takes TCP as well; so they do not share a port.
pub const MPTCP_PORT: u16 = 5002;
