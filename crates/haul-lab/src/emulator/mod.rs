//! The emulator as a process of its own, and how others reach it.
//!
//! A WAN in this process is a [`Wan`](crate::Wan). One that others can use, and of which nothing is left however it ends, is a process:
//!
//! ```text
//!   Emulator::start ----> the emulator: first process of a process namespace, holds the hosts' network namespaces
//!   NamedWan: enter, set, status, down ----> [abstract socket] ----> the emulator
//! ```
//!
//! The process is the program that starts it, called once more ([`Commands`]): it must then call [`run`], before it does anything else.
//!
//! | module | idea |
//! |---|---|
//! | `start` | making the process |
//! | `cradle` | what it must find before it does anything |
//! | `process` | what it does until it ends |
//! | `talk` | requests, answers, and the socket between |
//! | `named` | asking a WAN by its name |
//! | `status` | what it tells of itself |
//! | `enter` | a command among its processes, on one of its hosts |
//! | `passing` | one that gets the signals of the process that runs it |

mod cradle;
mod enter;
mod named;
mod passing;
mod process;
mod start;
mod status;
mod table;
mod talk;

use serde::{Deserialize, Serialize};

pub use cradle::{CradleError, Order};
pub use enter::{EnterError, command};
pub use named::NamedWan;
pub use passing::{PassError, run_to_end, was_interrupted};
pub use process::{EmulateError, run};
pub use start::{Emulator, StartError};
pub use status::{DeviceDrops, DirectionStatus, HostStatus, Rates, WanStatus, environment};
pub use talk::{AskError, Namespaces, NotUp, Obstacle, Refusal};

/// How long an emulator lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// Until it is told to end.
    OnItsOwn,
    /// As long as the process that starts it.
    WithThisProcess,
}

/// How this program is called to take part.
#[derive(Debug, Clone, Copy)]
pub struct Commands {
    /// The words after which it calls [`run`]. `--name NAME` follows, for whoever looks at the list of processes.
    pub emulate: &'static [&'static str],
    /// The words of a command that runs another one on a host ([`command()`]). `--name NAME HOST -- COMMAND..` follows.
    pub exec: &'static [&'static str],
}
