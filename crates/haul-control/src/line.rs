//! Messages as lines of JSON.

use std::io::{self, BufRead as _, BufReader, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest line of either side in bytes: the words of a command are cut to fit.
const MAX_LINE: u64 = 64 << 10;

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
