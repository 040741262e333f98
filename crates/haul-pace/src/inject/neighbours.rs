//! Who is who on the line: asked of the kernel, beside the thread that must not wait.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use haul_units::Time;

use super::interface::{mac_of, next_hop};
use super::pause::pause;
use crate::clock;

type Answer = (IpAddr, Option<[u8; 6]>);

/// What is known of those who were asked for.
#[derive(Debug)]
pub struct Neighbours {
    known: HashMap<IpAddr, Known>,
    ask: Sender<IpAddr>,
    answers: Receiver<Answer>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    mac: Option<[u8; 6]>,
    asked: Time,
}

impl Neighbours {
    /// Of an interface. The thread that asks ends with this value.
    pub fn start(interface: &str) -> io::Result<Self> {
        let (ask, asked) = channel::<IpAddr>();
        let (answer, answers) = channel();
        let interface = interface.to_owned();
        let body = move || {
            for to in asked {
                if answer.send((to, find(&interface, to))).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("haul-neigh".to_owned()).spawn(body)?;
        Ok(Self { known: HashMap::new(), ask, answers })
    }

    /// Whose address on the line a packet to `to` gets; nothing while that is not known, or where nobody answers.
    pub fn mac(&mut self, to: IpAddr) -> Option<[u8; 6]> {
        for (to, mac) in self.answers.try_iter() {
            if let Some(known) = self.known.get_mut(&to) {
                // One that does not answer for once may still be there.
                known.mac = mac.or(known.mac);
            }
        }
        let now = clock::now();
        if let Some(known) = self.known.get_mut(&to) {
            let patience = if known.mac.is_some() { VALID } else { AGAIN };
            if now.since(known.asked) > patience {
                known.asked = now;
                let _ = self.ask.send(to);
            }
            return known.mac;
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(to, Known { mac: None, asked: now });
        let _ = self.ask.send(to);
        None
    }
}

fn find(interface: &str, to: IpAddr) -> Option<[u8; 6]> {
    let hop = next_hop(interface, to).ok()?;
    if let Some(mac) = mac_of(interface, hop) {
        return Some(mac);
    }
    // Whatever is sent there makes the kernel ask; port 9 discards.
    let any: SocketAddr = if hop.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket2::SockRef::from(&socket).bind_device(Some(interface.as_bytes())).ok()?;
    for _ in 0..TRIES {
        let _ = socket.send_to(&[0], (hop, 9));
        pause(Duration::from_millis(50));
        if let Some(mac) = mac_of(interface, hop) {
            return Some(mac);
        }
    }
    None
}

/// Hosts move and are replaced: what is known is asked again, as the kernel does within about this time.
const VALID: Duration = Duration::from_secs(30);
/// Who did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// In all a second, as long as ARP tries.
const TRIES: u32 = 20;
/// Destinations that are remembered: what comes from outside the host cannot fill it, and what comes from inside may.
const MOST: usize = 65_536;
