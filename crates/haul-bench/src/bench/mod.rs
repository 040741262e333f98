//! haul beside other tools, over the emulated WAN.
//!
//! A [`Grid`] is rows: a path, some work, and the tools that do it. [`run`] makes a WAN of its own for each single measurement, so that
//! nothing of one is left for the next, and lets the tools of a row take turns, several times: what drifts on the machine drifts for all.
//!
//! ```text
//!   Grid { rows } ----> run ----> Row, repeat, Tool: Cell ----> WAN up, tool's server on b, tool's client on a ----> Measurement
//!                        |                                                                                             |
//!                    Observer (progress)                                              Results (JSON, CSV, table, charts)
//! ```
//!
//! What counts is what arrives: figures of work in memory are the receiver's own, each 0.1 s or as fine as it tells them; files count as copied
//! when the program has ended and their hash at the other end is right.
//!
//! | module | idea |
//! |---|---|
//! | `plan` | what is measured: paths, work, rows, grids |
//! | `tool` | the tools, and how they are called |
//! | `series` | bytes over time, and the figures made of them |
//! | `measurement` | what came out, of one tool and of all |
//! | `duel`, `process` | a server and a client, what they print and what they use |
//! | `tools`, `programs`, `ssh_setup` | how each tool is set up and read, what is missing, and what sshd is told |
//! | `files` | what is copied, and whether it arrived |
//! | `goals`, `verdict` | what haul is to reach, and whether it did |
//! | `report`, `figures`, `machine` | tables, CSV, charts, and the machine they are of |
//! | `memory` | memory that the machine has at hand |
//! | `groups` | processor time of all that is started for one host |
//! | `keeping` | the directory and the files of results |
//! | `site`, `emulated` | where programs run: two hosts of an emulator's process that ends with this one |

mod duel;
mod emulated;
pub mod figures;
pub mod files;
mod goals;
mod groups;
mod keeping;
mod machine;
mod measurement;
mod memory;
mod plan;
mod process;
mod programs;
pub(crate) mod quantities;
pub mod report;
mod run;
mod series;
mod site;
mod ssh_setup;
mod tool;
mod tools;
mod verdict;

pub(crate) use duel::{Listens, MeasureError, wait_until_listening};
pub use emulated::Emulators;
pub use goals::{Effort, GoalSet, goals};
pub(crate) use groups::{Group, Groups};
pub use keeping::{KeepError, directory};
pub use machine::{date, facts, load, processor_ticks, tcp_hint};
pub use measurement::{Measurement, Outcome, Results, RowResults, Usage};
pub(crate) use memory::AtHand;
pub use plan::{Bar, Candidate, Cell, FileSet, Grid, Path, Row, Work};
pub(crate) use process::Running;
pub use programs::Programs;
pub use run::run;
pub use series::{Interval, Series};
pub use site::{Observer, Site, Sites};
pub(crate) use ssh_setup::SshSetup;
pub use tool::{Kind, ParseToolError, Tool};
pub(crate) use tools::parse_intervals;
pub use verdict::Verdict;
