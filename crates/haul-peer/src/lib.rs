//! From the name of a host to a connection with it, and whom to let in at the other end.

mod allocator;
mod clock;
mod control;
mod far;
mod greeting;
mod guests;
pub mod keys;
mod limit;
mod memory;
mod moment;
mod network;
mod operand;
mod outage;
mod parting;
mod ports;
mod reach;
mod rule;
mod ssh;
mod state;
mod target;
mod tcp_info;
mod tell;

pub use control::{ControlOut, Farewell};
pub use far::{FarSide, FarSideError};
pub use greeting::{Refusal, RepliedStream, Reply, from_line, to_line};
pub use guests::{Guests, Limits, Memory as GuestMemory, Place};
pub use limit::{Limit, LimitError};
pub use memory::{Memory, SavedPath, Way};
pub use moment::{Moment, MomentError};
pub use network::{Network, NetworkError};
pub use operand::{DAEMON_PORT, DaemonHost, Operand, OperandError, SshHost};
pub use outage::{Outage, OutageWatch, Silence, is_stalled};
pub use parting::wait_for;
pub use ports::{PortRange, PortRangeError};
pub use reach::{Connected, Connector, Host, KEEP_ALIVE, Lifeline, Listener, ReachError, Unanswered, is_heard};
pub use rule::Rule;
pub use ssh::{
    BOOTSTRAP, ClientHello, Family, MAX_LINE, RemoteAnswer, RemoteHello, SshCommand, SshEnded, SshError, SshOptions, quoted_word,
    spawn, ssh_names,
};
pub use state::{StateDir, StateError};
pub use target::{MAX_NAME, Target, TargetError, TargetHost, fields, parse_port};
pub use tcp_info::TcpInfo;
pub use tell::{Nobody, Tell};
