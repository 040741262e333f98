//! Measures a path for a second and prints each interval: to a host that ssh reaches and that has haul, or within this machine, to a server in a thread.
//!
//!     measure [[USER@]HOST]

use std::sync::Arc;
use std::{env, error::Error, thread, time::Duration};

use haul::BitRate;
use haul_peer::{Connector, DaemonHost, Host};
use haul_perf::{Amount, Both, PROTOCOL, Plan, Role, Server, ServerSettings, Ways, measure, mesh::ssh_host};
use haul_units::{Bytes, Cancel};

fn main() -> Result<(), Box<dyn Error>> {
    run(env::args().nth(1).as_deref())
}

fn run(host: Option<&str>) -> Result<(), Box<dyn Error>> {
    let stop = Cancel::new();
    let host = match host {
        Some(host) => Host::Ssh(ssh_host(host)?),
        None => serve_here(&stop)?,
    };
    let connected = Connector::new(PROTOCOL).connect(&host)?;
    let plan = Plan { ways: Ways::Both, amount: Amount::Time(1_000_000), interval_us: 250_000, ..Plan::default() };
    let mut show = |both: &Both| {
        let bytes = Bytes(both.receiver.bytes.iter().sum());
        println!("{:?} from {:.2} s: {bytes} arrived", both.direction, both.receiver.start_us as f64 / 1e6);
    };
    let outcome = measure(&connected.connection, &plan, &Cancel::new(), &mut show)?;
    for &direction in plan.ways.directions() {
        let total = outcome.total(direction, Role::Receiver).ok_or("no total")?;
        let rate = BitRate::of(Bytes(total.bytes.iter().sum()), Duration::from_micros(total.time_us));
        println!("{direction:?}: {rate}");
    }
    connected.end();
    stop.cancel();
    Ok(())
}

/// A server in a thread of this program, until it is stopped.
fn serve_here(stop: &Cancel) -> Result<Host, Box<dyn Error>> {
    let server = Server::listen(&ServerSettings { bind: Some([127, 0, 0, 1].into()), ..ServerSettings::default() })?;
    let host = DaemonHost { host: "127.0.0.1".to_owned(), port: server.address().port() };
    let (key, stop) = (server.key(), stop.clone());
    thread::spawn(move || server.run(&stop, Arc::new(())));
    Ok(Host::Open(host, Some(key)))
}

#[test]
fn measures_within_this_machine() {
    run(None).expect("a measurement");
}
