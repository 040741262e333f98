//! `haul lab relay`: the link between UDP sockets.

use haul_lab::Relay;
use haul_units::Bytes;

use super::args::RelayArgs;
use super::print::print;
use crate::exit::{Exit, Failure};
use crate::interrupt;

/// Relays until it is interrupted.
pub fn run(args: &RelayArgs) -> Result<Exit, Failure> {
    let link = args.link.link()?;
    interrupt::watch();
    let relay = Relay::start(args.listen, args.to, &link)?;
    print(&format!("relaying {} to {}\n", relay.local_addr(), args.to))?;
    while !interrupt::requested() {
        // Ends early when the signal comes; the threads of the relay do all the work.
        wait();
    }
    for (stats, name) in relay.stats().iter().zip(["to the server", "to the clients"]) {
        let (bytes, link): (Bytes, _) = (stats.delivered, stats.link);
        print(&format!(
            "{name}: {} of {} packets delivered ({bytes}), {} lost, {} found the queue full\n",
            link.delivered_pkts, link.sent_pkts, link.lost_pkts, link.dropped_pkts
        ))?;
    }
    Ok(Exit::Done)
}

fn wait() {
    let second = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
    // Whether time passed or a signal came: the caller looks.
    let _ = rustix::event::poll(&mut [], Some(&second));
}
