//! A TCP port, forwarded through a haul connection.
//!
//! ```text
//! forward 8080 web:80 user@host    port 8080 here is port 80 of web, as user@host sees it; host has sshd and haul
//! forward 8080 web:80              the same with both ends of the connection in this program
//! ```

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;

use haul::Identity;
use haul_peer::{Connector, DaemonHost, Host, SshHost};
use haul_tunnel::proxy::{Client, Event, LocalForward, Observer, PROTOCOL, Server, ServerSettings};
use haul_units::Cancel;

/// Prints where it listens.
struct Print;

impl Observer for Print {
    fn event(&self, event: Event<'_>) {
        if let Event::Listening { address, to } = event {
            println!("{address} is {to}");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    forward(&std::env::args().skip(1).collect::<Vec<_>>(), Arc::new(Print))
}

/// Until the connection breaks.
pub fn forward(words: &[String], observer: Arc<dyn Observer>) -> Result<(), Box<dyn Error>> {
    let (listen, target, host) = match words {
        [listen, target, host] => (listen, target.parse()?, Host::Ssh(SshHost::parse(host.as_ref())?)),
        [listen, target] => (listen, target.parse()?, serve_here()?),
        _ => return Err("forward PORT HOST:PORT [[USER@]HOST]".into()),
    };
    let forward = LocalForward::to(listen.parse()?, target);
    Ok(Client { observer, ..Client::new(Connector::new(PROTOCOL), host, vec![forward]) }.run()?)
}

/// The other end: for everybody on this host, to wherever they ask.
fn serve_here() -> Result<Host, Box<dyn Error>> {
    let identity = Identity::generate();
    let key = identity.public_key().fingerprint();
    let allow = vec!["*:*".parse()?];
    let address = Some(Ipv4Addr::LOCALHOST.into());
    let server = Server::bind(ServerSettings { address, allow, ..ServerSettings::new(identity, None, Vec::new()) })?;
    let here = DaemonHost { host: Ipv4Addr::LOCALHOST.to_string(), port: server.local_addr().port() };
    thread::spawn(move || server.run(&Cancel::new()));
    Ok(Host::Open(here, Some(key)))
}
