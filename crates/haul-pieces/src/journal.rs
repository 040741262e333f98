//! The journal: what an unfinished copy has at the destination already.
//!
//! An append-only file in the stage directory. A record is its length (u32, little endian), the first 8 bytes of the BLAKE3 of its body, and
//! the body in postcard. It is written after the data that it speaks of, with no fsync between: a killed process leaves both in
//! the page cache, and after a power failure the hashes in the journal tell which data did not reach the disk, for every
//! range is read and hashed again before it counts; one that was not hashed counts while the machine runs that has written it. The first torn or damaged
//! record ends the journal.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::block::{Hash, Sent};
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
        /// BLAKE3 of it. Where the copy was not verified, what tells this run of the machine, or zeros where that cannot be told.
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
        /// As in a range, of the content of a file of one piece; other files have [`Range`](Self::Range) records.
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

/// What an earlier run left of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Number of its part file.
    pub part: u64,
    /// The source when it was scanned.
    pub source: Source,
    /// What was written.
    pub ranges: Vec<Sent>,
    /// Set where the part file is complete, perhaps renamed already: what it is, and the hash of a file of one piece.
    pub complete: Option<(Made, Option<Hash>)>,
}

/// What the records of earlier runs come to, for each file.
pub fn earlier(records: &[Record]) -> HashMap<PathKey, Earlier> {
    let mut parts: HashMap<u64, PathKey> = HashMap::new();
    let mut files: HashMap<PathKey, Earlier> = HashMap::new();
    for record in records {
        match *record {
            Record::Job { .. } | Record::Top { .. } => {}
            Record::Part { part, path, source } => {
                parts.insert(part, path);
                files.insert(path, Earlier { part, source, ranges: Vec::new(), complete: None });
            }
            Record::Range { part, offset, length, hash } => {
                let file = parts.get(&part).and_then(|path| files.get_mut(path)).filter(|file| file.part == part);
                if let Some(file) = file {
                    file.ranges.push((offset, length, hash));
                }
            }
            Record::Complete { part, path, source, made, hash } => {
                let file = files.entry(path).or_insert(Earlier { part, source, ranges: Vec::new(), complete: None });
                if file.part != part {
                    file.ranges.clear();
                }
                (file.part, file.source, file.complete) = (part, source, Some((made, hash)));
            }
        }
    }
    files
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

    #[test]
    fn the_last_part_of_a_file_counts_and_what_was_written_to_it() {
        let mut records = sample();
        let files = earlier(&records);
        assert_eq!(files[&[1; 16]].ranges, [(1 << 20, 1 << 20, [9; 32])]);
        assert_eq!((files[&[1; 16]].part, &files[&[1; 16]].complete), (1, &None));
        assert_eq!(files[&[2; 16]].complete.as_ref().unwrap().1, Some([4; 32]));
        let source = files[&[1; 16]].source;
        records.push(Record::Part { part: 3, path: [1; 16], source });
        // Late, and of the part that is gone.
        records.push(Record::Range { part: 1, offset: 0, length: 1 << 20, hash: [9; 32] });
        let files = earlier(&records);
        assert_eq!((files[&[1; 16]].part, files[&[1; 16]].ranges.len(), files.len()), (3, 0, 2));
    }

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
