//! A wide area network on one machine, in real time.
//!
//! Network namespaces are the hosts. Each has a TUN device, at whose other end the emulator reads what the kernel sends, plays it through the
//! links of `haul-sim`, and writes it out at another host's device. Offloads stay on: what comes and goes are mostly super-packets of up
//! to 64 KB, and one is split only where the link treats its packets differently.
//!
//! ```text
//!   host a: programs, kernel, tun ----> [store] ---> player: haul_sim::Link, packet by packet ---> runs ----> tun, kernel, programs: host b
//! ```
//!
//! A direction is a thread that owns all of this and sleeps until something is due; nothing is allocated for a packet. Without root the same
//! links carry UDP datagrams through a [`Relay`].
//!
//! | module | idea |
//! |---|---|
//! | `options` | what a WAN is asked to be like |
//! | `packet` | headers of packets and super-packets, and those of a part of one |
//! | `store` | memory of the packets inside |
//! | `player` | a link that is offered super-packets and gives runs of their packets back |
//! | `direction` | the thread around a player |
//! | `tun`, `namespace`, `wan` | devices, hosts, all together |
//! | `relay` | the same between UDP sockets |
//! | `constant` | constant UDP traffic with loss and jitter |
//! | `model` | what a model of TCP makes of the link, in virtual time |

mod clock;
mod constant;
mod control;
mod direction;
mod model;
mod namespace;
mod options;
mod packet;
mod player;
mod relay;
mod store;
mod tun;
mod wan;

pub use clock::now;
pub use constant::{ConstantReport, receive_constant, send_constant};
pub use control::DirectionStats;
pub use model::{FlowRate, tcp_rates};
pub use namespace::{Namespace, NamespaceError, value as setting};
pub use options::{LinkOptions, ParseQueueError, QueueSize};
pub use relay::{Relay, RelayError};
pub use tun::TunError;
pub use wan::{Address, Host, Side, Wan, WanError, WanSpec};

/// The model's TCP: how it finds its window; and what a constant flow is like.
pub use haul_sim::{CbrConfig, TcpConfig};
