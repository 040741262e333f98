//! Sockets on Linux: UDP_SEGMENT out, UDP_GRO and `recvmmsg` in.

mod address;
mod control;
mod interfaces;
mod options;
mod receive;
mod send;

pub use interfaces::{InterfaceWatch, interfaces};
pub(crate) use options::set_option;
pub use receive::Batch;
