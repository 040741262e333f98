//! Blocks of a connection packed where that gains: what the judge of haul-squeeze is told of the connection, and its word carried out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haul::Connection;
use haul_files::Left;
use haul_squeeze::{Judge, Look, Packer};

use crate::clock;

/// Packs the blocks that leave by one connection.
pub(crate) struct Squeeze {
    connection: Connection,
    /// Whether the peer takes what is packed.
    willing: Arc<AtomicBool>,
    begun: Instant,
    judge: Mutex<Judge>,
    packer: Packer,
}

impl Squeeze {
    pub(crate) fn new(connection: Connection, willing: Arc<AtomicBool>) -> Self {
        Self { connection, willing, begun: clock::now(), judge: Mutex::default(), packer: Packer::default() }
    }

    /// The block as it is to leave; `left` is how far the transport is, and `buffer` an empty buffer of its own.
    pub(crate) fn squeezed(
        &self,
        block: Vec<u8>,
        left: impl FnOnce() -> Option<Left>,
        buffer: impl FnOnce() -> Vec<u8>,
    ) -> Vec<u8> {
        let Some(left) = self.willing.load(Ordering::Relaxed).then(left).flatten() else { return block };
        let packs = {
            let mut judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
            let at = clock::now() - self.begun;
            if judge.is_due(at) {
                let waits = self.connection.stats().waits;
                judge.look(Look { at, waited: waits.window + waits.pacing + waits.limit, left: left.left });
            }
            judge.packs(block.len(), left.taken - left.left)
        };
        if !packs {
            return block;
        }
        let (begun, mut packed) = (clock::now(), buffer());
        let gained = self.packer.pack(&block, &mut packed);
        let time = clock::now() - begun;
        self.judge.lock().unwrap_or_else(PoisonError::into_inner).took(block.len(), time);
        if gained { packed } else { block }
    }
}
