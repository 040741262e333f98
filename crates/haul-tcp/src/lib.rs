//! Congestion control for the kernel's own TCP, for programs that know nothing of haul.
//!
//! Laws are eBPF programs (`bpf/`, GPL-2.0-only as the kernel requires of them) that the kernel runs as congestion control of its TCP. [`Tcp`] loads them, and says which
//! connections get which: those of a network namespace, to a network, of a cgroup, of one program, or those that are open.
//!
//! Everything that is changed is in a journal before it is changed, and [`Tcp::off`] puts back what was there. docs/use/tcp.md has what each law is.

mod class;
mod clock;
mod connection;
mod departure;
mod discipline;
mod error;
mod journal;
mod kernel;
mod knobs;
mod law;
mod laws;
mod memory;
mod needs;
mod network;
mod pace;
mod queue;
pub mod status;
mod tcp;
pub mod unit;

pub use class::PaceClass;
pub use connection::{Connection, Path, Phase};
pub use discipline::Discipline;
pub use error::{LoadError, TcpError};
pub use kernel::cgroup::own as own_cgroup;
pub use kernel::netns::Namespace;
pub use knobs::{KNOBS, Knob};
pub use law::{Choice, Law, NoControl};
pub use laws::obstacle;
pub use needs::{Lack, Limit, limits, round_trip};
pub use pace::{Pace, PaceRun, PaceState};
pub use queue::{QueuePlace, QueueSpec, QueueState};
pub use tcp::{Place, Rule, Run, Scope, Tcp, Totals, Way, default_of};
