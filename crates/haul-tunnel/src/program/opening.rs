//! The first line on the control stream, and its answer.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};

use data_encoding::BASE64;
use haul::{Connection, RecvStream, SendStream};
use haul_peer::{Reply, to_line};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

/// Longest opening, in bytes: a command line may hold many names.
const MAX_OPENING: u64 = 2 << 20;

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// A shell's command is run; the data stream is its standard input and output.
    Command(#[serde(with = "base64")] Vec<u8>),
    /// A subsystem of the far side's sshd, by its name, is run: `sftp`.
    Subsystem(PeerText),
    /// The data stream is a TCP connection from there to `host:port`.
    Connect(PeerText),
    /// Nothing: the connection stays until the client ends it.
    Stay,
    /// The data stream is the other program's standard input and output.
    Pipe,
}

#[derive(Serialize, Deserialize)]
struct Opening {
    /// Version of the program, for the log.
    version: PeerText,
    ask: Ask,
}

/// A client's request under way: the answer is taken off the control stream when it is read.
pub(super) struct Asked {
    /// Answers and frames come from here.
    pub control: RecvStream,
    /// Kept open: its end would tell the server that this side is gone.
    pub control_out: SendStream,
}

/// Asks. The data stream can be opened at once; a server that does not know this client yet has it wait for the answer.
pub(super) fn ask(connection: &Connection, ask: Ask) -> io::Result<Asked> {
    let (mut control_out, control) = connection.open_bi()?;
    control_out.write_all(&to_line(&Opening { version: env!("CARGO_PKG_VERSION").into(), ask }))?;
    Ok(Asked { control, control_out })
}

/// Reads what a client asks for.
pub(super) fn read_ask(control: &mut BufReader<RecvStream>) -> io::Result<(Ask, PeerText)> {
    let mut line = Vec::new();
    control.by_ref().take(MAX_OPENING).read_until(b'\n', &mut line)?;
    let opening: Opening = serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    tracing::debug!(version = %opening.version, "asked");
    Ok((opening.ask, opening.version))
}

/// Grants what was asked for.
pub(super) fn granted() -> Vec<u8> {
    to_line(&Reply::Served { version: env!("CARGO_PKG_VERSION").into(), unpacks: false })
}

/// Bytes as text in JSON: a command line need not be UTF-8.
mod base64 {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::BASE64;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_make_a_command() {
        let opening = Opening { version: "1".into(), ask: Ask::Command(b"cat \xff\xfe".to_vec()) };
        let line = to_line(&opening);
        let read: Opening = serde_json::from_slice(&line).expect("its own words");
        assert_eq!(read.ask, opening.ask);
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        assert!(serde_json::from_str::<Opening>(r#"{"version":"9","ask":{"dance":1}}"#).is_err());
        assert!(serde_json::from_str::<Opening>(r#"{"version":"9","ask":{"command":"***"}}"#).is_err());
    }
}
