//! The journal: what an unfinished copy has at the destination already.
//!
//! An append-only file in the stage directory. A record is its length (u32, little endian), the first 8 bytes of the BLAKE3 of its body, and
//! the body in postcard. It is written after the data that it speaks of, with no fsync between: a killed process leaves both in
//! the page cache, and after a power failure the hashes in the journal tell which data did not reach the disk, for every
//! range is read and hashed again before it counts. The first torn or damaged record ends the journal.

use serde::{Deserialize, Serialize};

use crate::block::Hash;
use crate::stamp::Stamp;
use haul_faults::WirePath;

/// Version of the records; a journal of another version is not used.
pub const VERSION: u16 = 1;

const HEAD_BYTES: usize = 12;
const MAX_BODY: usize = 4096;

/// Names a file of the copy: a hash over the names from the top down to it.
pub type PathKey = [u8; 16];

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The first record: whose journal this is.
    Job {
        /// [`VERSION`].
        version: u16,
        /// The request's job.
        job: [u8; 32],
    },
    /// Part file `part` was made for a file.
    Part {
        /// Number of the part file in the stage.
        part: u64,
        /// The file.
        path: PathKey,
        /// The source when it was scanned.
        source: Source,
    },
    /// A range of a part file was written.
    Range {
        /// Number of the part file.
        part: u64,
        /// Where, in bytes.
        offset: u64,
        /// How much, in bytes.
        length: u32,
        /// BLAKE3 of it; zeros where the copy was not verified.
        hash: Hash,
    },
    /// A part file is complete, with its final metadata: it only needs its name, or has it already.
    Complete {
        /// Number of the part file.
        part: u64,
        /// The file.
        path: PathKey,
        /// The source when it was scanned.
        source: Source,
        /// The part file.
        made: Made,
        /// BLAKE3 of the content of a file of one piece; other files have [`Range`](Self::Range) records.
        hash: Option<Hash>,
    },
    /// One of the first names that the copy makes at the top: for people who find the stage.
    Top {
        /// The name.
        name: WirePath,
    },
}

/// Tells one state of a source file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Length in bytes.
    pub size: u64,
    /// Modification time.
    pub mtime: Stamp,
    /// As its sender announced it: differs when its content may.
    pub version: u64,
}

/// Tells a file that this copy made from another one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Inode number.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Modification time.
    pub mtime: Stamp,
}

/// Appends a record.
pub fn encode(record: &Record, journal: &mut Vec<u8>) {
    let Ok(body) = postcard::to_stdvec(record) else { return };
    journal.extend_from_slice(&(body.len() as u32).to_le_bytes());
    journal.extend_from_slice(&checksum(&body));
    journal.extend_from_slice(&body);
}

/// The records up to the first that is torn or damaged, and how many bytes they take.
pub fn decode(journal: &[u8]) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let mut rest = journal;
    while let Some((record, after)) = first_record(rest) {
        records.push(record);
        rest = after;
    }
    (records, journal.len() - rest.len())
}

fn first_record(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_BODY {
        return None;
    }
    let (body, rest) = rest.split_at_checked(length)?;
    if checksum(body) != *sum {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, rest))
}

fn checksum(body: &[u8]) -> [u8; HEAD_BYTES - 4] {
    let mut sum = [0; HEAD_BYTES - 4];
    for (to, from) in sum.iter_mut().zip(blake3::hash(body).as_bytes()) {
        *to = *from;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Record> {
        let source = Source { size: 3 << 20, mtime: Stamp { secs: -5, nanos: 999_999_999 }, version: 77 };
        vec![
            Record::Job { version: VERSION, job: [3; 32] },
            Record::Part { part: 1, path: [1; 16], source },
            Record::Range { part: 1, offset: 1 << 20, length: 1 << 20, hash: [9; 32] },
            Record::Complete {
                part: 2,
                path: [2; 16],
                source,
                made: Made { inode: 5, size: 3 << 20, mtime: source.mtime },
                hash: Some([4; 32]),
            },
        ]
    }

    #[test]
    fn torn_at_every_byte_gives_a_prefix() {
        let mut journal = Vec::new();
        let mut ends = vec![0];
        for record in sample() {
            encode(&record, &mut journal);
            ends.push(journal.len());
        }
        for cut in 0..=journal.len() {
            let (records, valid) = decode(&journal[..cut]);
            let whole = ends.iter().filter(|&&end| end > 0 && end <= cut).count();
            assert_eq!(records, sample()[..whole], "cut at {cut}");
            assert_eq!(valid, ends[whole]);
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_journal_there() {
        let mut journal = Vec::new();
        for record in sample() {
            encode(&record, &mut journal);
        }
        for at in 0..journal.len() {
            let mut damaged = journal.clone();
            damaged[at] ^= 0x10;
            let (records, _) = decode(&damaged);
            assert!(records.len() < sample().len());
            assert_eq!(records, sample()[..records.len()]);
        }
    }
}
