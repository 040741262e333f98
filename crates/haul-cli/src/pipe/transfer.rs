//! Bytes both ways between this program's standard streams and the other side, and how it went.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use haul::{BitRate, Bytes, Connection, RecvStream, SendStream};
use serde_json::json;

use super::standard::{Input, Output};
use crate::args::PipeArgs;
use crate::tunnel::{self, Ends, Stop};
use crate::{clock, interrupt, output};

/// What was moved.
#[derive(Debug)]
pub struct Outcome {
    ends: Ends,
    elapsed: Duration,
    rtt: Duration,
    loss: f64,
}

/// Moves bytes until both directions have ended. `stop` ends our own; so does the peer's end, where our input is a terminal.
pub fn run(
    connection: &Connection,
    streams: (SendStream, RecvStream),
    reads: bool,
    stop: &Arc<AtomicBool>,
) -> io::Result<Outcome> {
    let started = clock::now();
    let input = Input::standard(reads, Arc::clone(stop))?;
    let output = Output::standard()?;
    tunnel::enlarge_pipe(io::stdin());
    tunnel::enlarge_pipe(&output);
    let give_up = if io::stdin().is_terminal() { Stop::WithPeer(stop) } else { Stop::AtEnd };
    let ends = tunnel::exchange(input, output, streams, give_up, interrupt::requested)?;
    let stats = connection.stats();
    Ok(Outcome { ends, elapsed: clock::now() - started, rtt: stats.rtt, loss: stats.loss.as_f64() })
}

/// Says how it went, as much as was asked for.
pub fn tell(args: &PipeArgs, outcome: &Outcome) {
    let Outcome { ends, elapsed, rtt, loss } = outcome;
    let rate = BitRate::of(Bytes(ends.sent.max(ends.received)), *elapsed);
    if args.json {
        let line = json!({
            "sent_bytes": ends.sent, "received_bytes": ends.received, "elapsed_s": elapsed.as_secs_f64(), "rate_bps": rate.as_bps(),
            "rtt_us": rtt.as_micros() as u64, "loss": loss, "reader_gone": ends.reader_gone,
        });
        output::print_line(&line.to_string());
    } else if args.verbose > 0 {
        output::print_line(&format!(
            "sent {}, received {} in {:.1} s ({rate}); round-trip time {:.1} ms, loss {:.2} %",
            Bytes(ends.sent),
            Bytes(ends.received),
            elapsed.as_secs_f64(),
            rtt.as_secs_f64() * 1e3,
            loss * 100.0
        ));
    }
}
