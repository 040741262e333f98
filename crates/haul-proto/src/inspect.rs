//! Reading captured packets of one's own connections.
//!
//! A connection tells its [`TrafficSecrets`]; with them an [`Inspector`] opens packets that were captured on the way, in any order and as often as one likes, and says what
//! is inside. It keeps no state, so it also opens what a receiver refuses: duplicates, packets of past keys.
//!
//! Who has the secrets reads everything of that connection from their epoch on, and can forge its packets: they are for looking for a fault, never for keeping.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use crate::crypto::{CipherSuite, PacketKey, Role, Secret, TAG_LEN};
use crate::wire::{Frame, Header, PacketKind};
use crate::{Connection, ConnectionId, Side};

/// What opens the data-phase packets of a connection: for each direction the secret of an epoch, from which all later ones follow.
///
/// As text it is one line, which [`FromStr`] reads again:
///
/// ```text
/// haul1 <client's id> <server's id> <suite> <epoch> <secret of packets to the server> <epoch> <secret of packets to the client>
/// ```
/// Ids are 8 hexadecimal digits, secrets 64; suites are `aes128gcm`, `aes256gcm` and `chacha20poly1305`.
#[derive(Clone, PartialEq, Eq)]
pub struct TrafficSecrets {
    /// The client's number of the connection: packets to the client carry it.
    pub client: ConnectionId,
    /// The server's number of the connection.
    pub server: ConnectionId,
    suite: CipherSuite,
    to_server: (u8, Zeroizing<[u8; 32]>),
    to_client: (u8, Zeroizing<[u8; 32]>),
}

/// A line that is no [`TrafficSecrets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a line of traffic secrets of this version")]
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
    secrets: TrafficSecrets,
}

impl TrafficSecrets {
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let keys = connection.keys.as_ref()?;
        let ours = (keys.sealer.epoch(), Zeroizing::new(*keys.sealer.secret().bytes()));
        let theirs = (keys.opener.epoch(), Zeroizing::new(*keys.opener.secret().bytes()));
        let (local, remote, suite) = (connection.local, connection.remote, keys.sealer.suite());
        Some(match connection.side {
            Side::Client => Self { client: local, server: remote, suite, to_server: ours, to_client: theirs },
            Side::Server => Self { client: remote, server: local, suite, to_server: theirs, to_client: ours },
        })
    }
}

impl Inspector {
    /// For the connection that has these secrets.
    pub fn new(secrets: TrafficSecrets) -> Self {
        Self { secrets }
    }

    /// Opens a packet; `None` for one of another connection, of keys before those that are known, and for one that is not authentic.
    pub fn open(&self, packet: &[u8]) -> Option<Opened> {
        let header = Header::parse(packet)?;
        let roles = [
            (self.secrets.server, Role::Client, &self.secrets.to_server),
            (self.secrets.client, Role::Server, &self.secrets.to_client),
        ];
        // Both ends may have given the connection the same number.
        let mut directions = roles.into_iter().filter(|(destination, ..)| *destination == header.destination);
        directions.find_map(|(_, from, secret)| self.open_from(packet, header, from, secret))
    }

    fn open_from(
        &self,
        packet: &[u8],
        header: Header,
        from: Role,
        (epoch, secret): &(u8, Zeroizing<[u8; 32]>),
    ) -> Option<Opened> {
        let (aad, sealed) = packet.split_at_checked(header.bytes())?;
        let mut secret = Secret::new(**secret);
        // The epoch in the header wraps: what looks like the past is 256 changes of keys ahead, and never comes.
        for _ in 0..header.epoch.wrapping_sub(*epoch) {
            secret = secret.child(b"haul next");
        }
        let mut plain = vec![0; sealed.len().checked_sub(TAG_LEN)?];
        let key = PacketKey::derive(self.secrets.suite, &secret);
        key.open_into(header.path, header.number, aad, sealed, &mut plain).ok()?;
        let content = match header.kind {
            PacketKind::Data { .. } => Content::Data(plain),
            PacketKind::Control => Content::Frames(Frame::decode_all(&plain).map_while(Result::ok).collect()),
        };
        Some(Opened { header, from, content })
    }
}

impl fmt::Display for TrafficSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suite = SUITES.iter().find(|(suite, _)| *suite == self.suite).map_or("unknown", |(_, name)| *name);
        write!(f, "{VERSION} {:08x} {:08x} {suite}", self.client.0, self.server.0)?;
        for (epoch, secret) in [&self.to_server, &self.to_client] {
            write!(f, " {epoch} ")?;
            secret.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

/// Without the secrets: what is printed by accident opens nothing.
impl fmt::Debug for TrafficSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (client, server) = (self.client, self.server);
        f.debug_struct("TrafficSecrets").field("client", &client).field("server", &server).finish_non_exhaustive()
    }
}

impl FromStr for TrafficSecrets {
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
        let mut direction = || Ok((next()?.parse().map_err(|_| ParseSecretsError)?, secret(next()?).ok_or(ParseSecretsError)?));
        let (to_server, to_client) = (direction()?, direction()?);
        if words.next().is_some() {
            return Err(ParseSecretsError);
        }
        Ok(Self { client, server, suite, to_server, to_client })
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
    use super::*;
    use crate::crypto::DataKeys;
    use crate::streams::StreamId;

    const SECRET: [u8; 32] = [7; 32];

    fn secrets(keys: &DataKeys) -> TrafficSecrets {
        let ours = (keys.sealer.epoch(), Zeroizing::new(*keys.sealer.secret().bytes()));
        let theirs = (keys.opener.epoch(), Zeroizing::new(*keys.opener.secret().bytes()));
        let suite = keys.sealer.suite();
        TrafficSecrets { client: ConnectionId(0xc1), server: ConnectionId(0x5e), suite, to_server: ours, to_client: theirs }
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
            assert_eq!(wrong.parse::<TrafficSecrets>(), Err(ParseSecretsError), "{wrong}");
        }
        assert!(!format!("{secrets:?}").contains(words[5]));
    }
}
