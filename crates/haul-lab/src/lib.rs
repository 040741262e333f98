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
//! The smallest program, as root, has the WAN in its own process, which goes with the value:
//!
//! ```no_run
//! use haul_lab::{LinkOptions, Wan, WanSpec};
//! use haul_units::{BitRate, Ratio};
//! use std::time::Duration;
//!
//! let link = LinkOptions { rate: BitRate::gbps(1), rtt: Duration::from_millis(80), loss: Ratio::percent(0.1), ..LinkOptions::default() };
//! let wan = Wan::up(WanSpec { link, ..WanSpec::default() })?;
//! println!("{} talks to {}", wan.hosts()[0].addresses[0].v4, wan.hosts()[1].addresses[0].v4);
//! # Ok::<_, haul_lab::WanError>(())
//! ```
//!
//! One that other programs can use is a process, an [`emulator`]. Without root the same links carry UDP datagrams through a [`Relay`]; `examples/relay.rs` sends
//! through one. Errors are an enum for each operation, which say what failed; what waits for long takes a [`haul_units::Cancel`].
//!
//! A direction is a thread that owns all of this and sleeps until something is due; nothing is allocated for a packet.
//!
//! | module | idea |
//! |---|---|
//! | `options` | what a WAN is asked to be like |
//! | `packet` | headers of packets and super-packets, and those of a part of one |
//! | `store` | memory of the packets inside |
//! | `player` | a link that is offered super-packets and gives runs of their packets back |
//! | `direction` | the thread around a player |
//! | `tun`, `namespace`, `wan` | devices, hosts, all together |
//! | `line` | an Ethernet line of a known rate, and the switch behind it |
//! | `tree` | a FatTree of namespaces: hosts, and switches that route |
//! | `typed` | what people type of it |
//! | `relay` | the same between UDP sockets |
//! | `constant` | constant UDP traffic with loss and jitter |
//! | [`emulator`] | a WAN as a process of its own, and how others reach it |
//! | [`check`] | whether it tells the truth |
//! | `model` | what a model of TCP makes of the link, in virtual time |

pub mod check;
mod clock;
mod constant;
mod control;
mod direction;
pub mod emulator;
mod line;
mod model;
mod namespace;
mod options;
mod packet;
mod player;
mod relay;
mod store;
mod tree;
mod tun;
mod typed;
mod wan;

pub use clock::now;
pub use constant::{ConstantReport, receive_constant, send_constant};
pub use control::DirectionStats;
pub use haul_netdev::DeviceError;
pub use line::{Line, LineError, LineReport};
pub use model::{FlowRate, tcp_rates};
pub use namespace::{Namespace, NamespaceError, value as setting};
pub use options::{LinkChanges, LinkError, LinkOptions, ParseQueueError, QueueSize};
pub use relay::{Relay, RelayError};
pub use tree::{Tree, TreeError, TreeHost, TreeSpec};
pub use typed::{Access, Beside, Hosts, TypedError, wan_name};
pub use wan::{Address, Host, Side, Wan, WanError, WanSpec};

/// The model's TCP: how it finds its window; and what a constant flow is like.
pub use haul_sim::{CbrConfig, TcpConfig};
