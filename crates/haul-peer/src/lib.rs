//! From the name of a host to a connection with it, and, at the other end, whom to let in.
//!
//! - [`Connector`] gives *a connection with that host*, by whatever way its name asks for ([`Host`]): through ssh, which does the login, or to a daemon whose key is known.
//! - [`Operand`], [`SshHost`] and [`DaemonHost`] are what users write for hosts and paths.
//! - [`keys`] are the files of a user or a daemon: the own key, hosts that are trusted, keys that are authorised and what for ([`keys::Rights`]).
//! - [`Guests`] admits the clients of a listener, shares its memory among them, and turns away who is too much.
//! - [`FarSide`] is what ssh starts at the other end.
//! - [`Refusal`], [`Reply`] and [`to_line`] are the first lines of every service.
//!
//! # The smallest program
//!
//! `haul remote` at the other end serves copies, measurements, pipes and proxies, told apart by the name of an application protocol. The crates that speak these
//! (haul-copy, haul-perf, haul-tunnel) have examples that do something, and `examples/greet.rs` here is a service of one's own; this one only connects:
//!
//! ```no_run
//! use haul_peer::{Connector, Host, SshHost};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::Ssh(SshHost::parse("user@host".as_ref())?);
//! let connected = Connector::new(b"haul-cp/1").connect(&host)?;
//! println!("{} answers", connected.connection.remote_addr());
//! connected.end();
//! # Ok(())
//! # }
//! ```
//!
//! A listener completes the handshakes of authorised keys only, and asks for each what it may do:
//!
//! ```
//! use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};
//! use haul_peer::keys::{self, AuthorizedKeys, Service};
//! use haul_peer::StateDir;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let state = StateDir::find(Some(dir.path()))?;
//! let (identity, _) = keys::load_or_make(&state)?;
//! let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
//! let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, keys::may_handshake(Some(&state))))?;
//!
//! let alice = Identity::generate();
//! let mut authorized = AuthorizedKeys::load(state.authorized_keys())?;
//! authorized.authorize(alice.public_key().fingerprint(), Some("alice"), Some("perf,from=127.0.0.0/8".parse()?))?;
//!
//! let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
//! let config = ClientConfig { identity: Some(alice), ..ClientConfig::new(trust) };
//! let _connection = endpoint.connect(server.local_addr(), config)?;
//! let admitted = keys::admit(&state, &server.accept()?)?;
//! assert_eq!(admitted.name, "alice");
//! assert!(admitted.refuses(Service::Perf).is_none() && admitted.refuses(Service::Copy).is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # Through ssh
//!
//! ```text
//!   near (Connector)                                 far (FarSide, in `haul remote`)
//!   ssh, which logs in  ---- greeting ------------->  listens on a UDP port
//!                       <--- port, key, token, the answer to the handshake
//!   === haul's own connection, over UDP ============
//!   === or over TCP, or in ssh's own channel =======     where UDP does not pass: [`Carriage`]
//! ```
//!
//! A far side without haul, or with one of another version, gets a program of this side's ([`SshOptions::bootstrap`]), over the same ssh.
//!
//! Whether UDP comes through is known only once the connection is in use: it was made through ssh. If what is asked of it fails, [`Connected::cause`] says whether that was why. Where ssh ends later, the connection goes on
//! as long as the peer is heard ([`Connected::lifeline`]).
//!
//! # What is told meanwhile
//!
//! Nothing is printed, and nobody is asked. [`Tell`] hears what ssh says, hears of outages, and decides on the key of a daemon that is met for the first time; [`Nobody`], the default, trusts none. What a listener's operator
//! should know is logged by `tracing`. Words of the other side are [`PeerText`](haul_units::PeerText), fit to be shown; what ssh says is not cleaned.
//!
//! # Errors
//!
//! An enum for each operation: [`ReachError`] for connecting, with [`SshError`], [`keys::KeysError`] and [`StateError`] for its parts, [`FarSideError`] for the far side, [`OperandError`] and the like for what users write. They are
//! sorted by who is at fault, keep what they are about in fields, and give no advice: that depends on the program. A [`Refusal`] is what a listener tells a client, with its advice.
//!
//! # Cancellation
//!
//! [`Connector::cancel`] ends whatever it waits for within 50 ms, ssh included, and shortens the wait for ssh's end. A program that starts ssh by [`spawn`] may be killed: the kernel ends what it has started.

mod again;
mod allocator;
mod asking;
mod bootstrap;
mod cache;
mod carriage;
mod carried_clients;
mod carried_far;
mod chain;
mod clock;
mod control;
mod far;
mod greeting;
mod guests;
mod hours;
pub mod keys;
mod limit;
mod memory;
mod moment;
mod operand;
mod outage;
mod parting;
mod ports;
mod programs;
mod reach;
mod relay;
mod returning;
mod rule;
pub mod secret;
mod ssh;
mod state;
mod system;
mod target;
mod tcp_info;
mod tell;
mod unwinding;

pub use again::Again;
pub use asking::{Answer, answer, question, sending_words};
pub use bootstrap::{Bootstrap, Obstacle, ObstacleKind, Sending, Stay};
pub use carriage::{Carriage, CarriageError, Carrying, GoesOver, NoUdp, Relayed};
pub use carried_clients::carry_clients;
pub use carried_far::CarrierPort;
pub use chain::{chain, without_numbers};
pub use control::{ControlOut, Farewell};
pub use far::{FarSide, FarSideError};
pub use greeting::{Refusal, RepliedStream, Reply, from_bounded_line, from_line, to_line};
pub use guests::{Guests, Limits, Memory as GuestMemory, Place};
pub use haul_units::{Network, NetworkError};
pub use hours::{HoursError, LimitByHours, minute_of_day};
pub use limit::{Limit, LimitError};
pub use memory::{Memory, SavedPath, Way};
pub use moment::{Moment, MomentError};
pub use operand::{DAEMON_PORT, DaemonHost, Operand, OperandError, STORES, SshHost};
pub use outage::{OutageWatch, Silence, is_gone, is_stalled};
pub use parting::wait_for;
pub use ports::{PortRange, PortRangeError};
pub use programs::Program;
pub use reach::{
    Connected, Connector, Host, KEEP_ALIVE, Lifeline, Listener, Login, Lost, ReachError, Unanswered, is_heard, own_address, race,
};
pub use relay::{Grant, PROTOCOL as RELAY_PROTOCOL, RelayAsk, RelayReply};
pub use rule::Rule;
pub use ssh::{
    BOOTSTRAP, ClientHello, Family, MAX_LINE, RemoteAnswer, RemoteHello, SshCommand, SshEnded, SshError, SshOptions, candidates,
    find_answer, greeting_in, quoted_word, resolve, spawn, spawn_apart, ssh_names,
};
pub use state::{StateDir, StateError};
pub use system::os_str;
pub use target::{MAX_NAME, Target, TargetError, TargetHost, fields, parse_port};
pub use tcp_info::TcpInfo;
pub use tell::{Nobody, Outage, Tell};
pub use unwinding::serve_apart;
