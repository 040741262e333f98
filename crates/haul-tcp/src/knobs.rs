//! What can be set while connections live.

use crate::error::TcpError;

/// A number that all laws read at each acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// As it is set by.
    pub key: &'static str,
    /// What it is, with its unit.
    pub about: &'static str,
    /// Without a word.
    pub usual: u32,
    /// From, to.
    pub range: (u32, u32),
}

/// In the order of `struct knobs` in bpf/flow.h.
pub const KNOBS: [Knob; 6] = [
    // FAST TCP, INFOCOM 2004, IV.
    Knob {
        key: "fast-alpha",
        about: "FAST: own packets waiting in the queue; 0: by the rate, 8 to 2000",
        usual: 0,
        range: (0, 100_000),
    },
    // One packet of 1500 bytes at 4 Mbit/s; below, timers are seen as queues.
    Knob {
        key: "modest-queue-us",
        about: "modest: the queue that it keeps at 100 Mbit/s, in microseconds; longer the slower it is, by the square root",
        usual: 3_000,
        range: (100, 1_000_000),
    },
    // The most that a radio link in use has; beyond, a path is broken.
    Knob {
        key: "random-loss-max-ppm",
        about: "what may pass for the path's own loss, in packets of a million",
        usual: 300_000,
        range: (0, 500_000),
    },
    // RFC 9959 4.3: half of what was remembered.
    Knob {
        key: "jump-percent",
        about: "quickstart: how much of the remembered window goes out in the first round trip",
        usual: 50,
        range: (1, 100),
    },
    // Routes and neighbours change within a day.
    Knob {
        key: "memory-s",
        about: "quickstart: how long a peer's path is remembered, in seconds",
        usual: 86_400,
        range: (0, 31_536_000),
    },
    // Three times BBR's: a flow that keeps a queue does not forget the path without it between its reductions.
    Knob { key: "base-rtt-s", about: "how long the smallest round-trip time holds, in seconds", usual: 30, range: (2, 3_600) },
];

/// The values of all, in their order.
pub(crate) type Values = [u32; KNOBS.len()];

pub(crate) fn usual() -> Values {
    KNOBS.map(|knob| knob.usual)
}

/// `KEY=VALUE`: which one, and what to.
pub(crate) fn parse(text: &str) -> Result<(usize, u32), TcpError> {
    let keys = || KNOBS.map(|knob| knob.key).join(", ");
    let Some((key, value)) = text.split_once('=') else {
        return Err(TcpError::NoSuchSetting(format!("{text:?} is not KEY=VALUE; keys are {}", keys())));
    };
    let Some(index) = KNOBS.iter().position(|knob| knob.key == key) else {
        return Err(TcpError::NoSuchSetting(format!("no setting is called {key:?}; there are {}", keys())));
    };
    let (least, most) = KNOBS[index].range;
    match value.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok((index, value)),
        _ => Err(TcpError::NoSuchSetting(format!("{key} is a whole number from {least} to {most}, not {value:?}"))),
    }
}

pub(crate) fn encode(values: &Values) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

pub(crate) fn decode(bytes: &[u8; size_of::<Values>()]) -> Values {
    let mut values = usual();
    for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(4)) {
        *value = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_their_range() {
        assert_eq!(parse("jump-percent=30").expect("a setting"), (3, 30));
        for wrong in ["jump-percent", "jump-percent=", "jump-percent=0", "jump-percent=101", "jump-percent=-1", "jump=3", "=1"] {
            assert!(matches!(parse(wrong), Err(TcpError::NoSuchSetting(_))), "{wrong}");
        }
        for knob in KNOBS {
            assert!((knob.range.0..=knob.range.1).contains(&knob.usual), "{}", knob.key);
        }
    }

    #[test]
    fn values_come_back() {
        let mut values = usual();
        values[1] = 77;
        assert_eq!(decode(&encode(&values).try_into().expect("its size")), values);
    }
}
