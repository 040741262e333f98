//! The relay: pairs, which address is which end of which, and what goes where.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use haul_units::{BitRate, Time};
use thiserror::Error;

use crate::message::{Content, Key, MESSAGE_BYTES, PairId, claimed, cookie, decode, encode, is_message};
use crate::rate::Bucket;
use crate::{End, Ticket};

/// Random bytes that a pair is made of.
pub const RANDOM_BYTES: usize = 72;

/// What a relay may be used for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Pairs at once.
    pub pairs: usize,
    /// A pair ends when nothing has come from either end for so long.
    pub idle: Duration,
    /// What is forwarded of one pair, both ways together; no limit where there is none.
    pub rate: Option<BitRate>,
}

/// There are as many pairs as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the relay has as many pairs as it takes")]
pub struct Full;

/// A new pair.
#[derive(Debug)]
pub struct Allocation {
    /// For who has asked.
    pub asking: Ticket,
    /// For the other end.
    pub other: Ticket,
}

/// Pairs of ends, and the addresses that have proved to be theirs.
pub struct Relay {
    limits: Limits,
    secret: Key,
    pairs: HashMap<PairId, Pair>,
    by_address: HashMap<SocketAddr, (PairId, End)>,
}

struct Pair {
    ends: [Member; 2],
    heard: Time,
    bucket: Option<Bucket>,
    forwarded_bytes: u64,
}

struct Member {
    ticket: Ticket,
    at: Option<SocketAddr>,
    /// Of the newest that it has said: nothing older is heard, so that nobody can say again what it has said.
    count: u64,
}

impl Relay {
    /// Without pairs. `secret` is random, and nobody else knows it.
    pub fn new(limits: Limits, secret: Key) -> Self {
        Self { limits, secret, pairs: HashMap::new(), by_address: HashMap::new() }
    }

    /// Pairs at present.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Makes a pair of random bytes that nobody else knows. It ends like one from which nothing comes, if its ends do not come.
    ///
    /// # Errors
    ///
    /// Where there is no room for one more.
    pub fn allocate(&mut self, now: Time, random: &[u8; RANDOM_BYTES]) -> Result<Allocation, Full> {
        self.tidy(now);
        let (id, keys) = random.split_first_chunk::<8>().map(|(id, keys)| (u64::from_be_bytes(*id), keys)).ok_or(Full)?;
        let (one, rest) = keys.split_first_chunk::<32>().ok_or(Full)?;
        let two = rest.first_chunk::<32>().ok_or(Full)?;
        // A number that is taken, by chance: as unlikely as any one number.
        if self.pairs.len() >= self.limits.pairs || self.pairs.contains_key(&id) {
            return Err(Full);
        }
        let ticket = |end, key: &Key| Ticket { pair: id, end, key: *key };
        let (asking, other) = (ticket(End::Asking, one), ticket(End::Other, two));
        let member = |ticket: &Ticket| Member { ticket: ticket.clone(), at: None, count: 0 };
        let ends = [member(&asking), member(&other)];
        let bucket = self.limits.rate.map(|rate| Bucket::new(now, rate));
        self.pairs.insert(id, Pair { ends, heard: now, bucket, forwarded_bytes: 0 });
        Ok(Allocation { asking, other })
    }

    /// Ends a pair, and says how many bytes of it were forwarded.
    pub fn release(&mut self, pair: PairId) -> Option<u64> {
        let gone = self.pairs.remove(&pair)?;
        for at in gone.ends.iter().filter_map(|end| end.at) {
            self.by_address.remove(&at);
        }
        Some(gone.forwarded_bytes)
    }

    /// Bytes of a pair that were forwarded; none where it has ended.
    pub fn forwarded(&self, pair: PairId) -> Option<u64> {
        Some(self.pairs.get(&pair)?.forwarded_bytes)
    }

    /// Ends the pairs from which nothing has come for too long.
    pub fn tidy(&mut self, now: Time) {
        let idle = self.limits.idle;
        let silent: Vec<_> = self.pairs.iter().filter(|(_, pair)| now.since(pair.heard) > idle).map(|(id, _)| *id).collect();
        for pair in silent {
            self.release(pair);
        }
    }

    /// What to answer to a datagram: for messages only, and as long as the message is.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<[u8; MESSAGE_BYTES]> {
        let (id, end) = claimed(datagram)?;
        let pair = self.pairs.get_mut(&id)?;
        let member = &mut pair.ends[end.index()];
        let ticket = &member.ticket;
        let content = decode(datagram, id, end, &ticket.key)?;
        let expected = cookie(&self.secret, ticket, from);
        let (count, is_proved) = match content {
            Content::Ask { count } => (count, false),
            Content::Prove { count, cookie } => (count, verify_slices_are_equal(&cookie, &expected).is_ok()),
            Content::Cookie { .. } | Content::Place { .. } | Content::Punch => return None,
        };
        if count <= member.count {
            return None;
        }
        if !is_proved {
            return Some(encode(Content::Cookie { cookie: expected }, id, end, &ticket.key));
        }
        let answer = encode(Content::Place { at: from }, id, end, &ticket.key);
        member.count = count;
        let before = member.at.replace(from);
        pair.heard = now;
        self.settle(from, (id, end), before);
        Some(answer)
    }

    /// Where a train of datagrams goes on to that is no message; nowhere, if it is not of an end whose other end is known too.
    pub fn forward(&mut self, now: Time, from: SocketAddr, train: &[u8]) -> Option<SocketAddr> {
        if is_message(train) {
            return None;
        }
        let (id, end) = *self.by_address.get(&from)?;
        let pair = self.pairs.get_mut(&id)?;
        let to = pair.ends[end.opposite().index()].at?;
        pair.heard = now;
        if pair.bucket.as_mut().is_some_and(|bucket| !bucket.take(now, train.len())) {
            return None;
        }
        pair.forwarded_bytes += train.len() as u64;
        Some(to)
    }

    /// An address is this end's from now on, and nobody else's.
    fn settle(&mut self, at: SocketAddr, owner: (PairId, End), before: Option<SocketAddr>) {
        if let Some(before) = before.filter(|before| *before != at) {
            self.by_address.remove(&before);
        }
        let displaced = self.by_address.insert(at, owner).filter(|displaced| *displaced != owner);
        if let Some((id, end)) = displaced
            && let Some(pair) = self.pairs.get_mut(&id)
        {
            pair.ends[end.index()].at = None;
        }
    }
}

#[cfg(test)]
mod tests;
