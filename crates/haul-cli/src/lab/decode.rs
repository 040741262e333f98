//! `haul lab decode`: what is in captured packets, opened with the keys that `HAUL_KEYLOG` has logged.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use haul_inspect::{Capture, Content, Datagram, Inspector, Opened, segments};
use haul_proto::wire::{Header, PacketKind};

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
            print(&line(at, &datagram, packet, &inspectors))?;
        }
    }
    Ok(Exit::Done)
}

fn line(at: f64, datagram: &Datagram<'_>, packet: &[u8], inspectors: &[Inspector]) -> String {
    let mut text = format!("{at:12.6} {} > {} ", datagram.from, datagram.to);
    let opened = inspectors.iter().find_map(|inspector| inspector.open(packet));
    let is_handshake = packet.first().is_some_and(|first| first & 0x80 != 0);
    if let Some(header) = Header::parse(packet) {
        shown(&mut text, &header, packet.len(), opened.as_ref());
    } else {
        let what = if is_handshake { "handshake" } else { "something else" };
        let _ = write!(text, "{what}, {} bytes", packet.len());
    }
    text.push('\n');
    text
}

fn shown(text: &mut String, header: &Header, len: usize, opened: Option<&Opened>) {
    let _ = write!(text, "to {:08x} path {} epoch {} number {} ", header.destination.0, header.path, header.epoch, header.number);
    if let PacketKind::Data { stream, offset, fin, end } = header.kind {
        let _ = write!(text, "stream {} offset {offset} ", stream.0);
        text.push_str(if fin { "fin " } else { "" });
        text.push_str(if end { "end " } else { "" });
    }
    let _ = match opened.map(|opened| &opened.content) {
        Some(Content::Data(bytes)) => write!(text, "{} bytes", bytes.len()),
        Some(Content::Frames(frames)) => write!(text, "{frames:?}"),
        None => write!(text, "sealed, {len} bytes with the header"),
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_proto::{ConnectionId, StreamId};

    use super::*;

    #[test]
    fn what_no_key_opens_is_shown_as_far_as_it_is_clear() {
        let kind = PacketKind::Data { stream: StreamId(4), offset: 99, fin: true, end: false };
        let mut packet = [0; 50];
        Header { destination: ConnectionId(0xab), path: 1, epoch: 2, number: 3, kind }.encode(&mut packet);
        let place = "10.0.0.1:9".parse().expect("an address");
        let shown =
            |packet: &[u8]| line(1.5, &Datagram { at: Duration::ZERO, from: place, to: place, payload: packet }, packet, &[]);
        let sealed = "to 000000ab path 1 epoch 2 number 3 stream 4 offset 99 fin sealed, 50 bytes with the header\n";
        assert_eq!(shown(&packet), format!("    1.500000 10.0.0.1:9 > 10.0.0.1:9 {sealed}"));
        assert!(shown(&[0x80; 30]).ends_with("handshake, 30 bytes\n"));
        assert!(shown(&[0x3f; 3]).ends_with("something else, 3 bytes\n"));
    }
}
