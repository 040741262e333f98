//! Captured packets of one's own connections, opened with their keys.
//!
//! A connection tells its [`Secrets`]; with them an [`Inspector`] opens packets that were captured on the way, in any order and as often as one likes, and says what is
//! inside. It keeps no state, so it also opens what a receiver refuses: duplicates, packets of past keys.
//!
//! ```
//! # fn packets() -> Vec<Vec<u8>> { Vec::new() }
//! # fn line() -> String { format!("haul1 00000001 00000002 aes128gcm 0 {0} 0 {0}", "00".repeat(32)) }
//! use haul_inspect::{Content, Inspector};
//!
//! let inspector = Inspector::new(line().parse()?);
//! for packet in packets() {
//!     match inspector.open(&packet).map(|opened| opened.content) {
//!         Some(Content::Frames(frames)) => println!("{frames:?}"),
//!         Some(Content::Data(bytes)) => println!("{} bytes", bytes.len()),
//!         None => println!("of another connection"),
//!     }
//! }
//! # Ok::<_, haul_inspect::ParseSecretsError>(())
//! ```
//!
//! Who has the secrets reads everything of that connection from their epoch on, and can forge its packets: they are for looking for a fault, never for keeping.

mod capture;
mod describe;

use std::fmt;
use std::iter;
use std::str::FromStr;

use haul_proto::crypto::{CipherSuite, Role, TrafficSecret};
use haul_proto::wire::{Frame, Header, PacketKind, TAG_BYTES};
use haul_proto::{Connection, ConnectionId, Side};
use zeroize::Zeroizing;

pub use capture::{Capture, CaptureError, Datagram};
pub use describe::describe;

/// What opens the data-phase packets of a connection: for each direction the secret of an epoch, from which all later ones follow.
///
/// As text it is one line, which [`FromStr`] reads again:
///
/// ```text
/// haul1 <client's id> <server's id> <suite> <epoch> <secret of packets to the server> <epoch> <secret of packets to the client>
/// ```
/// Ids are 8 hexadecimal digits, secrets 64; suites are `aes128gcm`, `aes256gcm` and `chacha20poly1305`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    /// The client's number of the connection: packets to the client carry it.
    pub client: ConnectionId,
    /// The server's number of the connection.
    pub server: ConnectionId,
    to_server: TrafficSecret,
    to_client: TrafficSecret,
}

/// A line that is no [`Secrets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a line of secrets of this version")]
pub struct ParseSecretsError;

/// A captured packet that could be opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// Its clear header.
    pub header: Header,
    /// Who sent it.
    pub from: Role,
    /// What it carries.
    pub content: Content,
}

/// What a packet carries.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Bytes of a stream.
    Data(Vec<u8>),
    /// Control frames, up to the first that is none.
    Frames(Vec<Frame>),
}

/// Opens captured packets of one connection.
#[derive(Debug, Clone)]
pub struct Inspector {
    secrets: Secrets,
}

impl Secrets {
    /// Those of a connection, from now on; `None` before its handshake is complete.
    pub fn of(connection: &Connection) -> Option<Self> {
        Some(Self::new(connection.side(), connection.id(), connection.peer_id(), connection.traffic_secrets()?))
    }

    fn new(side: Side, local: ConnectionId, remote: ConnectionId, [ours, theirs]: [TrafficSecret; 2]) -> Self {
        match side {
            Side::Client => Self { client: local, server: remote, to_server: ours, to_client: theirs },
            Side::Server => Self { client: remote, server: local, to_server: theirs, to_client: ours },
        }
    }
}

impl Inspector {
    /// For the connection that has these secrets.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets }
    }

    /// Opens a packet; `None` for one of another connection, of keys before those that are known, and for one that is not authentic.
    pub fn open(&self, packet: &[u8]) -> Option<Opened> {
        let header = Header::parse(packet)?;
        let Secrets { client, server, to_server, to_client } = &self.secrets;
        // Both ends may have given the connection the same number.
        let directions = [(server, Role::Client, to_server), (client, Role::Server, to_client)];
        let mut possible = directions.into_iter().filter(|(destination, ..)| **destination == header.destination);
        possible.find_map(|(_, from, secret)| open(packet, header, from, secret))
    }
}

/// The packets in a datagram as it was captured: several, all but the last of one length, where the host that captured it leaves it to the device to part them.
///
/// Told by their clear headers: behind a packet stands one for the same connection and path with one of the next numbers.
pub fn segments(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let length = segment_bytes(datagram).unwrap_or(datagram.len()).max(1);
    let mut chunks = datagram.chunks(length);
    // What is empty is shown, too.
    let empty = if datagram.is_empty() { Some(datagram) } else { None };
    iter::from_fn(move || chunks.next()).chain(empty)
}

fn segment_bytes(datagram: &[u8]) -> Option<usize> {
    let first = Header::parse(datagram)?;
    let follows = |next: &Header| {
        let ahead = next.number.wrapping_sub(first.number);
        next.destination == first.destination && next.path == first.path && (1..=NEXT).contains(&ahead)
    };
    let least = first.bytes() + TAG_BYTES;
    (least..datagram.len()).find(|at| datagram.get(*at..).and_then(Header::parse).is_some_and(|next| follows(&next)))
}

/// A sender leaves numbers out now and then, to find receivers that acknowledge what they have not got; never several in a row.
const NEXT: u64 = 3;

fn open(packet: &[u8], header: Header, from: Role, secret: &TrafficSecret) -> Option<Opened> {
    let (aad, sealed) = packet.split_at_checked(header.bytes())?;
    let plain = secret.open(header.epoch, header.path, header.number, aad, sealed)?;
    let content = match header.kind {
        PacketKind::Data { .. } => Content::Data(plain),
        PacketKind::Control => Content::Frames(Frame::decode_all(&plain).map_while(Result::ok).collect()),
    };
    Some(Opened { header, from, content })
}

impl fmt::Display for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suite = SUITES.iter().find(|(suite, _)| *suite == self.to_server.suite).map_or("unknown", |(_, name)| *name);
        write!(f, "{VERSION} {:08x} {:08x} {suite}", self.client.0, self.server.0)?;
        for direction in [&self.to_server, &self.to_client] {
            write!(f, " {} ", direction.epoch)?;
            direction.secret.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

/// Without the secrets: what is printed by accident opens nothing.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (client, server) = (self.client, self.server);
        f.debug_struct("Secrets").field("client", &client).field("server", &server).finish_non_exhaustive()
    }
}

impl FromStr for Secrets {
    type Err = ParseSecretsError;

    fn from_str(line: &str) -> Result<Self, ParseSecretsError> {
        let mut words = line.split_whitespace();
        let mut next = || words.next().ok_or(ParseSecretsError);
        if next()? != VERSION {
            return Err(ParseSecretsError);
        }
        let id = |word: &str| u32::from_str_radix(word, 16).map(ConnectionId).map_err(|_| ParseSecretsError);
        let (client, server, name) = (id(next()?)?, id(next()?)?, next()?);
        let (suite, _) = *SUITES.iter().find(|(_, known)| *known == name).ok_or(ParseSecretsError)?;
        let mut direction = || {
            let epoch = next()?.parse().map_err(|_| ParseSecretsError)?;
            Ok(TrafficSecret { suite, epoch, secret: secret(next()?).ok_or(ParseSecretsError)? })
        };
        let (to_server, to_client) = (direction()?, direction()?);
        if words.next().is_some() {
            return Err(ParseSecretsError);
        }
        Ok(Self { client, server, to_server, to_client })
    }
}

fn secret(word: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    if word.len() != 2 * bytes.len() || !word.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(word.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// What a line begins with; another form of lines gets another number.
const VERSION: &str = "haul1";

const SUITES: [(CipherSuite, &str); 3] = [
    (CipherSuite::Aes128Gcm, "aes128gcm"),
    (CipherSuite::Aes256Gcm, "aes256gcm"),
    (CipherSuite::ChaCha20Poly1305, "chacha20poly1305"),
];

#[cfg(test)]
mod tests {
    use haul_proto::StreamId;
    use haul_proto::crypto::{DataKeys, TAG_LEN};
    use haul_proto::wire::{CONTROL_HEADER_BYTES, DATA_HEADER_BYTES, RESET_BYTES};

    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn secrets(keys: &DataKeys) -> Secrets {
        Secrets::new(Side::Client, ConnectionId(0xc1), ConnectionId(0x5e), keys.secrets())
    }

    fn sealed(keys: &mut DataKeys, destination: u32, number: u64, kind: PacketKind, plain: &[u8]) -> Vec<u8> {
        let header = Header { destination: ConnectionId(destination), path: 3, epoch: keys.sealer.epoch(), number, kind };
        let mut packet = vec![0; header.bytes() + plain.len() + TAG_LEN];
        header.encode(&mut packet);
        let (aad, out) = packet.split_at_mut(header.bytes());
        keys.sealer.seal_into(3, number, aad, plain, out).expect("it fits");
        packet
    }

    #[test]
    fn packets_of_both_sides_open_whatever_their_epoch() {
        for (suite, _) in SUITES {
            let (mut client, mut server) =
                (DataKeys::new(SECRET, Role::Client, suite), DataKeys::new(SECRET, Role::Server, suite));
            let line = secrets(&client).to_string();
            let inspector = Inspector::new(line.parse().expect("as written"));
            let kind = PacketKind::Data { stream: StreamId(4), offset: 99, fin: false, end: true };
            client.sealer.rotate_every(1);
            for number in 0..5 {
                let packet = sealed(&mut client, 0x5e, number, kind, b"bytes");
                client.sealer.on_acknowledged(3, number);
                let opened = inspector.open(&packet).expect("the keys follow from the first");
                assert_eq!((opened.header.epoch, opened.header.kind), (number as u8, kind));
                assert_eq!((opened.from, opened.content), (Role::Client, Content::Data(b"bytes".to_vec())));
            }
            let mut frames = Vec::new();
            Frame::Ping.encode(&mut frames);
            Frame::MaxData(77).encode(&mut frames);
            let packet = sealed(&mut server, 0xc1, 8, PacketKind::Control, &frames);
            let content = Content::Frames(vec![Frame::Ping, Frame::MaxData(77)]);
            assert_eq!(inspector.open(&packet).map(|opened| (opened.from, opened.content)), Some((Role::Server, content)));
        }
    }

    #[test]
    fn packets_of_others_do_not_open() {
        let suite = CipherSuite::Aes128Gcm;
        let mut client = DataKeys::new(SECRET, Role::Client, suite);
        let inspector = Inspector::new(secrets(&client));
        let packet = sealed(&mut client, 0x5e, 0, PacketKind::Control, &[1]);
        assert!(inspector.open(&packet).is_some());
        for at in 0..packet.len() {
            let mut other = packet.clone();
            other[at] ^= 1;
            assert_eq!(inspector.open(&other), None, "byte {at}");
            assert_eq!(inspector.open(&packet[..at]), None, "{at} bytes");
        }
        let stranger = Inspector::new(secrets(&DataKeys::new([8; 32], Role::Client, suite)));
        assert_eq!(stranger.open(&packet), None);
    }

    #[test]
    fn lines_are_read_as_they_are_written_and_nothing_else_is() {
        let secrets = secrets(&DataKeys::new(SECRET, Role::Client, CipherSuite::ChaCha20Poly1305));
        let line = secrets.to_string();
        assert!(line.starts_with("haul1 000000c1 0000005e chacha20poly1305 0 "), "{line}");
        assert_eq!(line.parse(), Ok(secrets.clone()));
        let words: Vec<&str> = line.split(' ').collect();
        for wrong in [
            String::new(),
            line.replace("haul1", "haul2"),
            line.replace("chacha20poly1305", "rot13"),
            words[..7].join(" "),
            format!("{line} 0"),
            format!("{line}0"),
            line.replacen(words[5], "zz", 1),
            line.replacen(words[5], &"é".repeat(32), 1),
        ] {
            assert_eq!(wrong.parse::<Secrets>(), Err(ParseSecretsError), "{wrong}");
        }
        assert!(!format!("{secrets:?}").contains(words[5]));
    }

    #[test]
    fn a_train_is_parted_into_its_packets() {
        let mut keys = DataKeys::new(SECRET, Role::Client, CipherSuite::Aes128Gcm);
        let kind = PacketKind::Data { stream: StreamId(4), offset: 0, fin: false, end: false };
        let lengths = [1000, 1000, 1000, 10];
        let packets: Vec<_> = lengths
            .iter()
            .zip([7, 8, 10, 11])
            .map(|(len, number)| sealed(&mut keys, 0x5e, number, kind, &vec![0; *len]))
            .collect();
        let train = packets.concat();
        assert!(segments(&train).eq(packets.iter().map(Vec::as_slice)));
        assert!(segments(&packets[0]).eq([packets[0].as_slice()]));
        assert!(segments(&[0x80; 1200]).eq([&[0x80; 1200][..]]));
        assert!(segments(&[]).eq([&[][..]]));
    }

    /// The numbers in the Wireshark dissector are those of the packets.
    #[test]
    fn the_dissector_reads_headers_where_they_are() {
        const LUA: &str = include_str!("../../../scripts/haul.lua");
        let sizes = "local CONTROL_BYTES, DATA_BYTES, INVARIANT_BYTES, TAG_BYTES, RESET_BYTES = ";
        let [control, data, tag, reset] = [CONTROL_HEADER_BYTES, DATA_HEADER_BYTES, TAG_BYTES, RESET_BYTES];
        assert!(LUA.contains(&format!("{sizes}{control}, {data}, 18, {tag}, {reset}\n")));
        let kind = PacketKind::Data { stream: StreamId(0x0102_0304), offset: 0x1112_1314_1516_1718, fin: true, end: false };
        let header =
            Header { destination: ConnectionId(0x2122_2324), path: 0x31, epoch: 0x41, number: 0x5152_5354_5556_5758, kind };
        let mut packet = [0; DATA_HEADER_BYTES];
        header.encode(&mut packet);
        let dissected =
            LUA.split("local function data_phase").nth(1).expect("it is there").split("\nend").next().expect("it ends");
        let field = |name: &str| {
            let place = dissected.split(&format!("tree:add(f.{name}, buffer(")).nth(1)?.split("))").next()?;
            let (at, len) = place.split_once(", ")?;
            let (at, len): (usize, usize) = (at.parse().ok()?, len.parse().ok()?);
            Some(packet.get(at..at + len)?.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
        };
        for (name, value) in [
            ("path", 0x31),
            ("epoch", 0x41),
            ("destination", 0x2122_2324),
            ("number", 0x5152_5354_5556_5758),
            ("stream", 0x0102_0304),
            ("offset", 0x1112_1314_1516_1718),
        ] {
            assert_eq!(field(name), Some(value), "{name}");
        }
        let masks =
            ["haul.kind\", \"Kind\", base.DEC, KINDS, 0x03", "these bytes\", 8, nil, 0x04", "these bytes\", 8, nil, 0x08"];
        assert!(masks.iter().all(|mask| LUA.contains(mask)));
        assert_eq!(field("kind").map(|first| first & 0x0f), Some(0x04), "data, the end of a stream, not of a block");
    }
}
