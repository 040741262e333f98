//! `haul tcp status` and `watch`: what is loaded, who gets what, and the connections.

use std::fmt::Write as _;
use std::time::Duration;

use haul_tcp::{Connection, Namespace, Tcp, status};

use crate::exit::{Exit, Failure};
use crate::{clock, interrupt, output};

/// Prints it.
pub fn run(tcp: &Tcp, namespace: &Namespace, as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        output::out_json(&status::json(tcp, namespace)?.to_string());
    } else {
        output::out_lines(&status::text(tcp, namespace)?);
    }
    Ok(Exit::Done)
}

/// How often one who watches looks whether that was interrupted.
const LOOKS_A_SECOND: u64 = 10;

/// Prints the connections until it is interrupted.
pub fn watch(tcp: &Tcp, namespace: &Namespace, every_s: u64) -> Result<Exit, Failure> {
    interrupt::watch();
    let mut before: Vec<Connection> = Vec::new();
    loop {
        let connections = tcp.connections(namespace)?;
        let moved = |connection: &Connection| {
            let same = |old: &&Connection| (old.peer, old.own_port) == (connection.peer, connection.own_port);
            before.iter().find(same).map_or(0, |old| connection.acknowledged_bytes.saturating_sub(old.acknowledged_bytes))
        };
        let mut text = format!("{:>10}  {}\n", "Mbit/s", status::HEAD);
        for connection in &connections {
            let rate = moved(connection) as f64 * 8e-6 / every_s as f64;
            let _ = writeln!(text, "{rate:>10.1}  {}", status::row(connection));
        }
        output::clear();
        output::out_lines(&text);
        before = connections;
        for _ in 0..every_s.saturating_mul(LOOKS_A_SECOND) {
            if interrupt::requested() {
                return Ok(Exit::Done);
            }
            clock::pause(Duration::from_millis(1000 / LOOKS_A_SECOND));
        }
    }
}
