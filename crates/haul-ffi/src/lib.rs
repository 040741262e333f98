//! libhaul: the transport and copies of files for programs in C and C++.
//!
//! `include/haul.h` is the interface, its documentation and the source of its manual pages; it is written by hand, because it is what its users read, and
//! `tests/abi` holds it against what this crate exports. Here is what is behind it:
//!
//! ```text
//!   C ──> calls/           one function of haul.h each: pointers in, numbers out
//!           │              border.rs: nothing panics across it; failure.rs: the thread's last failure
//!         table.rs         numbers <-> entries: a handle that is wrong is an answer
//!           │
//!         things/          endpoint, connection, stream, blocks, file, job: what handles name
//!           │
//!         waiting.rs       a thread that waits for what polls; closing ends its wait
//!         watch.rs         the same for a descriptor
//! ```
//!
//! Invariants: no lock is held while a thread waits; what a pointer of C points to is used inside the call only, but for callbacks and their context.

#![allow(clippy::missing_safety_doc, reason = "include/haul.h says what callers hold to")]

mod address;
mod border;
mod calls;
mod failure;
mod fork;
mod pointers;
mod signals;
mod started;
mod table;
mod things;
mod waiting;
mod watch;

pub use calls::{
    HaulBlock, HaulCopyRequest, HaulFleetJob, HaulFleetMember, HaulFleetRequest, HaulPerfInterval, HaulPerfRequest,
    HaulPerfResult, HaulPollfd, HaulStatistics,
};
pub use things::{HaulCopyProgress, HaulCopyResult, HaulFleetServer};
