//! A datagram over an emulated path, without root: how long it takes there and back.

use std::net::UdpSocket;
use std::time::Duration;

use haul_lab::{LinkOptions, Relay, now};
use haul_units::BitRate;

/// Prints it.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = UdpSocket::bind("127.0.0.1:0")?;
    let link = LinkOptions { rate: BitRate::mbps(100), rtt: Duration::from_millis(40), ..LinkOptions::default() };
    let relay = Relay::start("127.0.0.1:0".parse()?, server.local_addr()?, &link)?;

    let client = UdpSocket::bind("127.0.0.1:0")?;
    let start = now();
    client.send_to(b"there and back", relay.local_addr())?;
    let mut room = [0; 100];
    let (len, from) = server.recv_from(&mut room)?;
    server.send_to(&room[..len], from)?;
    client.recv_from(&mut room)?;

    println!("there and back in {:?}, which is no less than {:?}", now().since(start), link.rtt);
    let [there, _] = relay.stats();
    println!("{} packet of {} delivered", there.link.delivered_pkts, there.link.sent_pkts);
    Ok(())
}
