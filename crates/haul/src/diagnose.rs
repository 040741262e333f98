//! For who looks for a fault: a trace of all connections of this process, and the keys of their packets.
//!
//! Both are off unless the program asks for them, once, before it makes an endpoint. haul does so for `HAUL_TRACE` and `HAUL_KEYLOG`.
//!
//! A trace is lines of JSON. Each has `t`, seconds since the first reading of the clock, `id`, the number of the connection here in 8 hexadecimal digits, as the
//! peer's packets carry it, and `event`: `connected`, `sample` (every 20 ms) or `closed`. A sample has what [`Stats`] says, in bytes, bit/s, packets and seconds, and, where there are several
//! paths, what [`PathStats`] says of each.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use haul_inspect::Secrets;
use haul_proto::{Connection, PathStats, Stats};
use haul_units::Time;

use crate::clock;

type Sink = OnceLock<Mutex<Box<dyn Write + Send>>>;

static KEYS: Sink = OnceLock::new();
static TRACE: Sink = OnceLock::new();

/// Between two samples of a connection: several in the shortest round trip that a WAN has, and little beside what the transport itself does.
pub(crate) const EVERY: Duration = Duration::from_millis(20);

/// From now on a line with the [secrets](haul_inspect::Secrets) of each connection of this process goes to `to`, when its handshake is complete; false if that was asked for
/// before.
///
/// **Who has them reads and forges everything on these connections.** Errors of `to` are not told: a connection does not fail for want of a log.
pub fn log_keys(to: Box<dyn Write + Send>) -> bool {
    KEYS.set(Mutex::new(to)).is_ok()
}

/// From now on endpoints that are made trace their connections to `to`; false if that was asked for before.
pub fn trace(to: Box<dyn Write + Send>) -> bool {
    TRACE.set(Mutex::new(to)).is_ok()
}

/// A handshake is complete.
pub(crate) fn on_connected(connection: &Connection) {
    if KEYS.get().is_some()
        && let Some(secrets) = Secrets::of(connection)
    {
        line(&KEYS, &format!("{secrets}\n"));
    }
    event(connection, "connected");
}

/// A connection is over.
pub(crate) fn on_closed(connection: &Connection) {
    event(connection, "closed");
}

/// Whether connections are to be sampled every so often.
pub(crate) fn is_tracing() -> bool {
    TRACE.get().is_some()
}

/// What a connection is like at this point.
pub(crate) fn sample(connection: &Connection) {
    event(connection, "sample");
}

fn event(connection: &Connection, name: &str) {
    if !is_tracing() {
        return;
    }
    let now = clock::now();
    if let Some(stats) = connection.stats(now) {
        line(&TRACE, &entry(now, connection.id().0, name, &stats, &by_path(connection)));
    }
}

/// Whole lines only: other processes may append to the same file.
fn line(sink: &Sink, text: &str) {
    if let Some(sink) = sink.get() {
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
    }
}

/// What is different from path to path; nothing where there is one.
fn by_path(connection: &Connection) -> Vec<PathStats> {
    let paths: Vec<PathStats> = connection.paths().collect();
    if paths.len() > 1 { paths } else { Vec::new() }
}

/// A line of the trace. All texts in it are names of this program's own, so that nothing needs to be escaped.
fn entry(now: Time, id: u32, event: &str, stats: &Stats, by_path: &[PathStats]) -> String {
    let mut text = format!("{{\"t\":{:.6},\"id\":\"{id:08x}\",\"event\":\"{event}\"", now.as_secs_f64());
    let controller = &stats.controller;
    let _ = write!(text, ",\"algorithm\":\"{}\",\"phase\":\"{}\"", controller.algorithm, controller.phase);
    let mut number = |name: &str, value: u64| {
        let _ = write!(text, ",\"{name}\":{value}");
    };
    number("window_bytes", stats.window.as_u64());
    number("in_flight_bytes", stats.in_flight.as_u64());
    number("pacing_bps", stats.pacing_rate.as_bps());
    number("delivery_bps", stats.delivery_rate.as_bps());
    number("packet_bytes", stats.packet_size.as_u64());
    number("sent_pkts", stats.sent_pkts);
    number("lost_pkts", stats.lost_pkts);
    number("spurious_pkts", stats.spurious_pkts);
    number("marked_pkts", stats.ecn_marked_pkts);
    number("received_pkts", stats.received_pkts);
    number("duplicate_pkts", stats.duplicate_pkts);
    number("sent_bytes", stats.sent.as_u64());
    number("acknowledged_bytes", stats.acknowledged.as_u64());
    number("retransmitted_bytes", stats.retransmitted.as_u64());
    number("received_bytes", stats.received.as_u64());
    number("buffered_bytes", stats.buffered.as_u64());
    number("held_bytes", stats.held.as_u64());
    number("streams", stats.streams as u64);
    number("paths", stats.paths as u64);
    if let Some(bandwidth) = controller.bandwidth {
        number("bandwidth_bps", bandwidth.as_bps());
    }
    if let Some(ssthresh) = controller.ssthresh {
        number("ssthresh_bytes", ssthresh.as_u64());
    }
    let mut seconds = |name: &str, value: Duration| {
        let _ = write!(text, ",\"{name}\":{:.6}", value.as_secs_f64());
    };
    seconds("rtt_s", stats.rtt);
    seconds("min_rtt_s", stats.min_rtt);
    seconds("queue_delay_s", stats.queue_delay);
    seconds("silence_s", stats.silence);
    seconds("waited_application_s", stats.waits.application);
    seconds("waited_window_s", stats.waits.window);
    seconds("waited_credit_s", stats.waits.credit);
    seconds("waited_pacing_s", stats.waits.pacing);
    seconds("waited_limit_s", stats.waits.limit);
    for (n, path) in by_path.iter().enumerate() {
        let _ = write!(
            text,
            "{}{{\"path\":{},\"usable\":{},\"rtt_s\":{:.6},\"pacing_bps\":{},\"window_bytes\":{},\"in_flight_bytes\":{},\"acknowledged_bytes\":{},\"received_bytes\":{},\"lost_pkts\":{}}}",
            if n == 0 { ",\"by_path\":[" } else { "," },
            path.id,
            path.usable,
            path.rtt.as_secs_f64(),
            path.pacing_rate.as_bps(),
            path.window.as_u64(),
            path.in_flight.as_u64(),
            path.acknowledged.as_u64(),
            path.received.as_u64(),
            path.lost_pkts,
        );
    }
    text.push_str(if by_path.is_empty() { "}\n" } else { "]}\n" });
    text
}
