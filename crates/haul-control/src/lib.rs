//! Commands that run, of one user: found, asked how they do, and told to go slower, wait or stop.
//!
//! ```text
//!   haul cp, ..   ControlSocket     /run/user/UID/haul/PID.sock  <-- {"order":"limit","bps":100000000} --   haul ctl
//!                                                     --- {"pid":PID,"what":"..",..} -------->
//! ```
//!
//! A command that runs has a [`ControlSocket`]: a socket in a directory that is its user's alone ([`ControlDir`]). Who connects says one [`Order`] as a line of JSON and is answered with the [`Status`] after it, another line.
//! The directory has mode 0700 and this user for its owner, or is not used; and the kernel says whose the process at the other end is: one of another user, root but for itself, hears nothing. A socket whose command has died is
//! removed by the next who looks.
//!
//! On Windows there are no such sockets: nobody is found.

#[cfg(unix)]
mod dir;
#[cfg(unix)]
mod line;
mod message;
#[cfg(unix)]
mod socket;

#[cfg(unix)]
pub use dir::{ControlDir, ControlError};
pub use message::{Controlled, Order, Status};
#[cfg(unix)]
pub use socket::ControlSocket;
