//! What listens for clients and is looked after by somebody: the daemon that exports directories, and what any listener needs besides.
//!
//! ```text
//!   Settings -> serve ── a thread a client ── admitted by its key (haul-peer) ── a copy (haul-copy), or a measurement (haul-perf)
//!                 │              │                                                   │
//!               Open         Open, for its roots                              Audit: a line an event
//!        (Landlock: the whole process, or each client's thread)
//! ```
//!
//! - [`serve`] is the daemon of `haul serve`: [`Settings`] in, and it stays until it is cancelled.
//! - [`Audit`] writes who came, with which key, for what, and how it ended: a line of JSON each, or systemd's journal. Other listeners use it through [`Visitors`]
//!   (haul-tunnel) and [`Measurements`] (haul-perf).
//! - [`Confined`] is what a far side may serve that ssh has started (`haul remote --only .. --root ..`).
//! - [`Open`] locks a thread, and those that it starts, in to what it has to open.
//!
//! # The smallest program
//!
//! ```no_run
//! use haul_peer::{GuestMemory, Guests, Limits};
//! use haul_serve::{Settings, parse_root, serve};
//! use haul_units::Cancel;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guests = Guests::new(Limits { clients: 64, of_key: 8, of_address: 16 }, GuestMemory::part_of_machine(2));
//! let settings = Settings { roots: vec![parse_root("pub=/srv/pub")?], ..Settings::new(guests) };
//! let (stop, never) = (Cancel::new(), || false);
//! serve(settings, &stop, &never)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Errors and stopping
//!
//! [`ServeError`] says why the daemon did not start, or what ended it; what goes wrong with one client is in the log (`tracing`) and in the audit log. [`serve`] returns when its
//! [`Cancel`](haul_units::Cancel) is cancelled: copies under way are stopped in a state that can be resumed, and have ten seconds for that.

mod audit;
mod clients;
mod clock;
mod confined;
mod daemon;
mod lock_in;
mod relay;
mod roots;
mod settings;
mod systemd;
mod user;

pub use audit::{Audit, AuditError, AuditTo, Measurements, Running, Visitors};
pub use confined::{Bounds, Confined, ConfinedError, Errand};
pub use daemon::{ServeError, serve};
pub use lock_in::{Locked, Open};
pub use relay::{RelaySettings, Whom};
pub use roots::{RootError, RootsError, parse_root};
pub use settings::Settings;
pub use user::UserError;
