//! Measures the path to a host that ssh reaches and that has haul for a second, both ways at once, and prints each interval: `measure [USER@]HOST`.

use std::error::Error;
use std::time::Duration;

use haul_peer::{Connector, Host};
use haul_perf::{Amount, Both, PROTOCOL, Plan, Role, Ways, measure, mesh::ssh_host};
use haul_units::{BitRate, Bytes, Cancel};

fn main() -> Result<(), Box<dyn Error>> {
    let host = std::env::args().nth(1).ok_or("measure [USER@]HOST")?;
    run(&Host::Ssh(ssh_host(&host)?))
}

/// To any host that haul reaches.
pub fn run(host: &Host) -> Result<(), Box<dyn Error>> {
    let connected = Connector::new(PROTOCOL).connect(host)?;
    let plan = Plan { ways: Ways::Both, amount: Amount::Time(1_000_000), interval_us: 250_000, ..Plan::default() };
    let mut show = |both: &Both| {
        let bytes = Bytes(both.receiver.bytes.iter().sum());
        println!("{:?} from {:.2} s: {bytes} arrived", both.direction, both.receiver.start_us as f64 / 1e6);
    };
    let outcome = measure(&connected.connection, &plan, &Cancel::new(), &mut show)?;
    for &direction in plan.ways.directions() {
        let total = outcome.total(direction, Role::Receiver).ok_or("no total")?;
        println!("{direction:?}: {}", BitRate::of(Bytes(total.bytes.iter().sum()), Duration::from_micros(total.time_us)));
    }
    connected.end();
    Ok(())
}
