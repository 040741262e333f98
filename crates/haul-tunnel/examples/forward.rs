//! A TCP port, forwarded to where a host that has sshd and haul sees it: `forward 8080 web:80 [USER@]HOST`

use std::error::Error;
use std::sync::Arc;

use haul_peer::{Connector, Host, SshHost};
use haul_tunnel::proxy::{Client, Event, LocalForward, Observer, PROTOCOL};

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
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, target, host] = &*words else { return Err("forward PORT HOST:PORT [USER@]HOST".into()) };
    forward([port, target], Host::Ssh(SshHost::parse(host.as_ref())?), Arc::new(Print))
}

/// Until the connection breaks.
pub fn forward([port, target]: [&str; 2], host: Host, observer: Arc<dyn Observer>) -> Result<(), Box<dyn Error>> {
    let forward = LocalForward::to(port.parse()?, target.parse()?);
    Ok(Client { observer, ..Client::new(Connector::new(PROTOCOL), host, vec![forward]) }.run()?)
}
