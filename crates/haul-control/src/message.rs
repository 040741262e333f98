//! What is asked of a command, and what it answers.

use haul_units::PeerText;
use serde::{Deserialize, Serialize};

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
    /// Which command of haul's it is: `cp`, `pipe`, `rsh`, `proxy`, `perf`, `fleet get`, `fleet put`.
    #[serde(default = "copy")]
    pub command: PeerText,
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
    /// Why the order was not followed; none: it was.
    #[serde(default)]
    pub refused: Option<PeerText>,
}

/// Who says nothing of it is of a time when there was nothing else.
fn copy() -> PeerText {
    "cp".into()
}

/// Something that takes orders.
pub trait Controlled: Send + Sync {
    /// Does what is asked, at once, and says how it then does.
    fn handle(&self, order: Order) -> Status;
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io;

    /// A copy of an earlier version says less.
    #[test]
    fn a_status_without_its_command_is_a_copy_s() {
        let line = r#"{"pid":1,"what":"a b","began":2,"files":3,"bytes":4,"total":5,"limit_bps":null,"paused":false}"#;
        let status: Status = hear(line.as_bytes()).expect("a status");
        assert_eq!((status.command.as_str(), status.refused, status.mode), ("cp", None, None));
    }

    use super::*;
    use crate::line::{hear, say};

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
