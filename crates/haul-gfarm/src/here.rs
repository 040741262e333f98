//! Which storage servers run on this machine.

use std::collections::HashMap;
use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// What is known of them, by their names.
#[derive(Default)]
pub(crate) struct Here {
    known: Mutex<HashMap<String, bool>>,
}

impl Here {
    /// Whether a server runs here; its name is looked up once.
    pub(crate) fn has(&self, host: &str) -> bool {
        let known = |here: &Self| here.known.lock().unwrap_or_else(PoisonError::into_inner).get(host).copied();
        known(self).unwrap_or_else(|| {
            let is_here = is_own(host);
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), is_here);
            is_here
        })
    }
}

/// Whether an address of this name is one of this machine: a socket can have it.
fn is_own(host: &str) -> bool {
    let addresses = (host, 0).to_socket_addrs();
    addresses.is_ok_and(|mut addresses| addresses.any(|address| UdpSocket::bind(address).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_told_from_others() {
        let here = Here::default();
        for (host, is_own) in [("127.0.0.1", true), ("127.8.8.8", true), ("192.0.2.7", false), ("2001:db8::7", false)] {
            assert_eq!((here.has(host), here.has(host)), (is_own, is_own), "{host}");
        }
    }
}
