//! What connections did, from a trace of the driver (`HAUL_TRACE`, docs/use/debugging.md): a table, a picture, a qlog.
//!
//! ```text
//! lines of JSON --Trace::read--> connections, each with its samples --+--> Connection::summary   one line for people
//!                                                                     +--> Connection::figure    rate, delay, bytes, loss, phases over time; figure_of_copy: the parts of a copy too
//!                                                                     +--> Trace::qlog           for tools that read QUIC's logs
//! ```
//! It reads no clock and no file: lines come from whoever has them.
//!
//! ```
//! let lines = r#"{"t":0.10,"id":"2a","event":"connected","algorithm":"fair","phase":"startup"}
//! {"t":0.12,"id":"2a","event":"sample","phase":"startup","acknowledged_bytes":25000,"sent_pkts":40}
//! {"t":0.14,"id":"2a","event":"closed","phase":"cruise","acknowledged_bytes":75000,"sent_pkts":60}"#;
//! let trace = haul_trace::Trace::read(lines.as_bytes())?;
//! assert_eq!(trace.connections[0].phases()[0].2, "startup");
//! # Ok::<(), haul_trace::TraceError>(())
//! ```

mod by_path;
mod figure;
mod of_copy;
mod qlog;
mod read;
mod summary;

pub use haul_plot::{Figure, PlotError};
pub use of_copy::Part;
pub use read::{Connection, Event, PathSample, Sample, Trace, TraceError};
pub use summary::Summary;
