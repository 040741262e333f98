//! What is asked of a command, and what it answers.

use std::io::{self, BufRead as _, BufReader, Read, Write};

use haul_units::PeerText;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest line of either side in bytes: the words of a command are cut to fit.
const MAX_LINE: u64 = 64 << 10;

/// What a command is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// How does it do?
    Status,
    /// Go no faster than this, in bits per second; none: as fast as it goes.
    Limit {
        /// The rate.
        bps: Option<u64>,
    },
    /// Send in another mode; who does not send, or does not know it, answers with the one that stays.
    Mode {
        /// Its name.
        name: PeerText,
    },
    /// Wait.
    Pause,
    /// Go on.
    Resume,
    /// End, in a way that can be gone on from.
    Stop,
}

/// How a command does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// What it was called with.
    pub what: PeerText,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// Files that are in place.
    pub files: u64,
    /// Bytes that have arrived.
    pub bytes: u64,
    /// Bytes that there are, as far as is known.
    pub total: u64,
    /// What it sends at most, in bits per second.
    pub limit_bps: Option<u64>,
    /// The mode in which it sends; none where the other side sends.
    #[serde(default)]
    pub mode: Option<PeerText>,
    /// It waits.
    pub paused: bool,
}

/// One line.
pub(crate) fn say(mut to: impl Write, words: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(words)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// One line, if it is what is expected.
pub(crate) fn hear<W: DeserializeOwned>(from: impl Read) -> io::Result<W> {
    let mut line = Vec::new();
    BufReader::new(from.take(MAX_LINE)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_order_is_none() {
        for line in ["", "\n", "{}", "{\"order\":\"erase\"}\n", "[1]\n", "{\"order\":\"limit\",\"bps\":-1}\n"] {
            assert!(hear::<Order>(line.as_bytes()).is_err(), "{line:?}");
        }
        assert!(hear::<Order>(io::repeat(b' ')).is_err(), "it ends");
        for order in [
            Order::Status,
            Order::Limit { bps: Some(5) },
            Order::Limit { bps: None },
            Order::Mode { name: "modest".into() },
            Order::Pause,
            Order::Resume,
            Order::Stop,
        ] {
            let mut line = Vec::new();
            say(&mut line, &order).expect("written");
            assert_eq!(hear::<Order>(&line[..]).expect("an order"), order);
        }
    }
}
