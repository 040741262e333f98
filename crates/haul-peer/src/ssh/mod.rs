//! Reaching the far side through ssh.
//!
//! ssh logs in (host keys, agents, passwords, jumps: all its own) and starts `haul remote` there. Over its standard streams the two sides
//! exchange what they need to find and to trust each other over UDP: fingerprints of keys made for this one copy, a port, a token, TLS' first two flights. The near side's
//! part stands on the command line too, where it arrives a round trip earlier; nothing secret is in it. ssh stays up until the copy ends; when either side of it dies, the other side notices.

mod command;
mod error;
mod forward;
mod hello;
mod keeper;
mod nodelay;
mod options;
mod resolve;
mod script;
mod session;

pub use command::{SshCommand, quoted_word};
pub use error::{SshEnded, SshError};
pub use forward::Forward;
pub use hello::{BOOTSTRAP, ClientHello, Family, MAX_LINE, RemoteAnswer, RemoteHello, find_answer, greeting_in};
pub use keeper::{spawn, spawn_apart};
pub use options::SshOptions;
pub use resolve::{candidates, resolve, ssh_names};
pub use session::SshSession;
