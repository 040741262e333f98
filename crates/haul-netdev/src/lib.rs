//! Devices of the kernel that carry whole packets: TUN and TAP, where a program is the other end of a network interface, and packet sockets, which send and see frames
//! on an interface that is there; what frames take on a line ([`ethernet`]), the programs that set interfaces up ([`iproute`]), and questions to the kernel ([`netlink`]). Linux only; devices need `CAP_NET_ADMIN` or `CAP_NET_RAW`.
//!
//! All unsafe code of these is here.

mod device;
pub mod ethernet;
pub mod iproute;
pub mod netlink;
mod packet_socket;

pub use device::{Device, DeviceError, Layer};
pub use packet_socket::{PacketSocket, Seen};
