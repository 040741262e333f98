//! Sockets on Linux: UDP_SEGMENT out, UDP_GRO and `recvmmsg` in.

mod address;
mod control;
mod options;
mod receive;
mod send;

pub(crate) use options::set_option;
pub use receive::Batch;
