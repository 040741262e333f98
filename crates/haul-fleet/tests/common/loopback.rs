//! A server of copies on loopback, of this process.

use std::net::SocketAddr;
use std::path::Path;

use haul::{ClientConfig, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig};
use haul_copy::{PROTOCOL, ServerSession};
use haul_files::{Access, Silent};
use haul_fleet::Member;
use haul_units::Cancel;

/// Serves what is below a directory to everybody, for as long as the process lives; where, and what its key is.
pub fn serve(home: &Path) -> (SocketAddr, Fingerprint) {
    let identity = Identity::generate();
    let print = identity.public_key().fingerprint();
    let config = ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let (address, access) = (server.local_addr(), Access::Account { home: home.to_owned() });
    std::thread::spawn(move || {
        while let Ok(connection) = server.accept() {
            let access = access.clone();
            std::thread::spawn(move || {
                let Ok(session) = ServerSession::accept(connection) else { return };
                let (_, farewell) = session.serve(&access, None, &Silent, &Cancel::new());
                farewell.part(&Cancel::new());
            });
        }
    });
    (address, print)
}

/// A new connection to one, as the member with this number.
pub fn member(number: usize, address: SocketAddr, print: Fingerprint) -> Member {
    let config = ClientConfig { protocols: vec![PROTOCOL.to_vec()], ..ClientConfig::new(PeerTrust::Pinned(vec![print])) };
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    Member::called_back(format!("m{number}"), endpoint.connect(address, config).unwrap())
}
