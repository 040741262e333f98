//! TUN devices with offloads on: super-packets in and out, checksums left to us.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::AsFd as _;

use haul_netdev::Device;
use rustix::io::Errno;

use crate::direction::{Delivery, Inputs, Ports, Received};
use crate::packet::{Part, VNET_BYTES, Which, finish_checksum, parse};
use crate::store::Packet;

/// A direction between the devices of two sides.
#[derive(Debug)]
pub struct TunPorts {
    pub inputs: Vec<Device>,
    pub outputs: Vec<Device>,
    /// Which output has which address.
    pub routes: Vec<(IpAddr, u32)>,
    /// The input to read first: each in its turn.
    turn: usize,
    scratch: Vec<u8>,
}

impl TunPorts {
    /// From these to those.
    pub fn new(inputs: Vec<Device>, outputs: Vec<Device>, routes: Vec<(IpAddr, u32)>) -> Self {
        Self { inputs, outputs, routes, turn: 0, scratch: Vec::new() }
    }

    fn route(&self, destination: &[u8]) -> Option<u32> {
        let is = |address: &IpAddr| match address {
            IpAddr::V4(address) => address.octets() == *destination,
            IpAddr::V6(address) => address.octets() == *destination,
        };
        let known = self.routes.iter().find(|(address, _)| is(address)).map(|(_, to)| *to);
        // A lone host may be a router for what lies behind it.
        known.or_else(|| (self.outputs.len() == 1 && !is_multicast(destination)).then_some(0))
    }
}

/// What the kernel says to everybody on its link stays there: IPv4 multicast and broadcast, IPv6 multicast.
fn is_multicast(destination: &[u8]) -> bool {
    destination.first().is_none_or(|first| if destination.len() == 4 { *first >= 224 } else { *first == 0xff })
}

impl Ports for TunPorts {
    fn receive(&mut self, room: &mut [u8]) -> io::Result<Received> {
        for _ in 0..self.inputs.len() {
            let input = self.turn % self.inputs.len();
            self.turn = input + 1;
            let Some(tun) = self.inputs.get(input) else { continue };
            match rustix::io::read(tun, &mut *room) {
                Ok(len) => {
                    let bytes = room.get(..len).unwrap_or_default();
                    let routed = parse(bytes).and_then(|parsed| Some((parsed.layout, self.route(parsed.destination)?)));
                    return Ok(routed.map_or(Received::Unroutable, |(layout, to)| Received::Packet(len, Packet { layout, to })));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Received::Nothing)
    }

    fn deliver(&mut self, packet: &Packet, bytes: &[u8], which: Which, kind: Delivery) -> io::Result<()> {
        let Some(output) = self.outputs.get(packet.to as usize) else { return Ok(()) };
        if kind == Delivery::Whole {
            rustix::io::write(output, bytes)?;
            return Ok(());
        }
        let part = Part::new(&packet.layout, bytes, which);
        let payload = bytes.get(Part::payload(&packet.layout, which)).unwrap_or_default();
        if kind == Delivery::Part {
            rustix::io::writev(output, &[IoSlice::new(part.headers()), IoSlice::new(payload)])?;
            return Ok(());
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(part.headers());
        self.scratch.extend_from_slice(payload);
        finish_checksum(&mut self.scratch);
        if let Some(last) = self.scratch.get_mut(VNET_BYTES..).and_then(<[u8]>::last_mut) {
            *last ^= 1;
        }
        rustix::io::write(output, &self.scratch)?;
        Ok(())
    }

    fn inputs(&self, fds: &mut Inputs) {
        self.inputs.iter().for_each(|tun| fds.add(tun.as_fd()));
    }
}
