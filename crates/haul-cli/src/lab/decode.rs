//! `haul lab decode`: what is in captured packets, opened with the keys that `HAUL_KEYLOG` has logged.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use haul_inspect::{Capture, Inspector, describe, segments};

use super::print::print;
use crate::exit::{Exit, Failure};

/// Print what is in captured packets of one's own connections
///
/// A line for each packet: when, from whom to whom, path, key epoch and number, then its frames, or the stream, offset and length of its data. What the keys do not open is shown as far as it is clear.
#[derive(Debug, Args)]
pub struct DecodeArgs {
    /// Capture of whole packets, as `tcpdump -w` writes it
    #[arg(value_name = "PCAP")]
    pub capture: PathBuf,
    /// File that HAUL_KEYLOG named on one of the two hosts
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
}

/// Prints them.
pub fn run(args: &DecodeArgs) -> Result<Exit, Failure> {
    let failed = |path: &PathBuf, error: &dyn std::fmt::Display| Failure::new(format!("cannot read {}: {error}", path.display()));
    let file = fs::read(&args.capture).map_err(|error| failed(&args.capture, &error))?;
    let capture = Capture::new(&file).map_err(|error| {
        failed(&args.capture, &error)
            .hint("a file of Wireshark's own: `tshark -F pcap -r FILE -w OTHER` writes it in the classic format")
    })?;
    let mut inspectors = Vec::new();
    if let Some(path) = &args.keys {
        let text = fs::read_to_string(path).map_err(|error| failed(path, &error))?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let secrets = line.parse().map_err(|error| failed(path, &format!("line {}: {error}", number + 1)))?;
            inspectors.push(Inspector::new(secrets));
        }
    }
    let mut begin = None;
    for datagram in capture {
        let at = datagram.at.saturating_sub(*begin.get_or_insert(datagram.at)).as_secs_f64();
        for packet in segments(datagram.payload) {
            print(&format!("{at:12.6} {} > {} {}\n", datagram.from, datagram.to, describe(packet, &inspectors)))?;
        }
    }
    Ok(Exit::Done)
}
