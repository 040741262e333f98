//! The relay of a daemon: a UDP port of its own, on which the ends of pairs meet, and the clients that have asked for a pair.
//!
//! Which pairs there are, who is which end of them and what goes where is for haul-relay to decide; here are its socket, its thread and its clock. A pair ends with the connection on which it was asked for, which ends with the right to it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use haul::udp::{Batch, Options, Outgoing, Received, Socket};
use haul::{Bytes, Connection, Fingerprint, RecvStream, SendStream};
use haul_peer::{Grant, Refusal, RelayAsk, RelayReply, from_line, to_line};
use haul_relay::{Allocation, KEY_BYTES, Limits, MARK, PairId, RANDOM_BYTES, Relay};
use haul_units::{BitRate, Cancel, Time};

use crate::clock;

/// Trains taken from the kernel at once.
const BATCH_TRAINS: usize = 8;
/// A pair ends when nothing has come from either end for so long.
const IDLE: Duration = Duration::from_secs(60);
/// How often pairs are looked through, and a client's pair for whether it is still there.
const LOOK: Duration = Duration::from_secs(1);
/// Of the pairs, one key and one address may have a quarter.
const PART: usize = 4;
/// A client that asks for a pair says a line.
const MEMORY: Bytes = Bytes::mib(1);

/// Whom a relay serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Those whose keys are authorised for it.
    Keys,
    /// Whoever comes.
    Anybody,
}

/// What a relay is to be.
#[derive(Debug, Clone, Copy)]
pub struct RelaySettings {
    /// Whom it serves.
    pub whom: Whom,
    /// Its UDP port; the one after the daemon's where none is named.
    pub port: Option<u16>,
    /// Pairs at once.
    pub pairs: usize,
    /// What it forwards of one pair, both ways together. No limit by default.
    pub rate: Option<BitRate>,
}

/// A relay with its port open.
pub struct Relaying {
    settings: RelaySettings,
    port: u16,
    core: Mutex<Relay>,
    began: Instant,
    /// When its pairs were last looked through.
    tidied: Mutex<Time>,
    /// Who has which pair.
    holders: Mutex<HashMap<PairId, Holder>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Holder {
    key: Option<Fingerprint>,
    /// Its address, or the network that it has to itself.
    address: IpAddr,
}

/// A pair that a client has, until it is dropped.
struct Held<'a> {
    relay: &'a Relaying,
    /// None once it has been given back.
    pair: Option<PairId>,
}

impl Relaying {
    /// Opens the port beside that of the daemon, and forwards until it is over.
    pub fn open(settings: RelaySettings, daemon: SocketAddr, over: &Cancel) -> io::Result<Arc<Self>> {
        let port = settings.port.unwrap_or_else(|| daemon.port().checked_add(1).unwrap_or(0));
        let socket = Arc::new(Socket::bind(SocketAddr::new(daemon.ip(), port), Options::default())?);
        let port = socket.local_addr().port();
        let limits = Limits { pairs: settings.pairs, idle: IDLE, rate: settings.rate };
        let core = Mutex::new(Relay::new(limits, random::<KEY_BYTES>()?));
        let relaying =
            Arc::new(Self { settings, port, core, began: clock::now(), tidied: Mutex::default(), holders: Mutex::default() });
        let (forwarding, stopped) = (Arc::clone(&relaying), Arc::clone(&socket));
        let over = over.clone();
        thread::Builder::new().name("haul-relay".to_owned()).spawn(move || {
            let _hook = over.on_cancel(move || stopped.stop());
            forwarding.run(&socket);
        })?;
        Ok(relaying)
    }

    /// Its UDP port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whom it serves.
    pub const fn whom(&self) -> Whom {
        self.settings.whom
    }

    /// Gives a client a pair, and keeps it as long as the client stays; how many bytes were forwarded.
    pub fn serve(&self, connection: &Connection, cancel: &Cancel, granted: impl FnOnce(&RelayAsk)) -> Result<u64, Refusal> {
        let broken = |error: io::Error| Refusal { error: format!("it asked for no pair: {error}").into(), hint: None };
        let (mut send, ask, _receive) = asked(connection).map_err(broken)?;
        let (held, made) = match self.take(connection) {
            Ok(taken) => taken,
            Err(refusal) => {
                say(&mut send, &RelayReply::Refused(refusal.clone()), connection);
                return Err(refusal);
            }
        };
        connection.admit(Some(MEMORY));
        granted(&ask);
        send.write_all(&to_line(&RelayReply::Granted(Grant::of(&made, self.port)))).map_err(broken)?;
        let mut forwarded_bytes = 0;
        while connection.end().is_none() && !cancel.is_cancelled() {
            thread::park_timeout(LOOK);
            let mut core = self.core();
            let now = self.now();
            if is_due(&mut self.tidied.lock().unwrap_or_else(PoisonError::into_inner), now) {
                core.tidy(now);
            }
            let Some(bytes) = held.pair.and_then(|pair| core.forwarded(pair)) else { break };
            forwarded_bytes = bytes;
        }
        Ok(held.release().unwrap_or(forwarded_bytes))
    }

    fn take(&self, connection: &Connection) -> Result<(Held<'_>, Allocation), Refusal> {
        let refuse = |error: &str| Refusal { error: error.into(), hint: Some("try again later".into()) };
        let address = counted_as(connection.remote_addr().ip());
        let holder = Holder { key: connection.peer_key().map(|key| key.fingerprint()), address };
        let most = (self.settings.pairs / PART).max(1);
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |same: &dyn Fn(&Holder) -> bool| holders.values().filter(|other| same(other)).count();
        if holder.key.is_some() && count(&|other| other.key == holder.key) >= most {
            return Err(refuse(&format!("this relay has no more than {most} pairs for one key")));
        }
        if count(&|other| other.address == address) >= most {
            return Err(refuse(&format!("this relay has no more than {most} pairs for one address or network")));
        }
        let random = random::<RANDOM_BYTES>().map_err(|_| refuse("this relay has no randomness"))?;
        let made = self.core().allocate(self.now(), &random).map_err(|full| refuse(&full.to_string()))?;
        let pair = made.asking.pair;
        holders.insert(pair, holder);
        Ok((Held { relay: self, pair: Some(pair) }, made))
    }

    fn run(&self, socket: &Socket) {
        let mut batch = Batch::new(BATCH_TRAINS);
        loop {
            match socket.receive(&mut batch) {
                Ok(0) => return,
                Ok(_) => {
                    for received in batch.trains() {
                        self.pass_on(socket, received);
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the relay can no longer receive");
                    return;
                }
            }
        }
    }

    /// A message may be the last of a train, for it is shorter than most packets: the system makes trains of whatever one sender has sent.
    fn pass_on(&self, socket: &Socket, received: Received<'_>) {
        let Received { from, to, ecn, train, segment_bytes, .. } = received;
        let answer_from = socket.answer_from(to);
        let now = self.now();
        let messages = messages_in(train, segment_bytes);
        let (train, said) = train.split_at(train.len() - messages);
        for message in said.chunks(segment_bytes) {
            let answer = self.core().handle(now, from, message);
            if let Some(answer) = answer {
                send(socket, &Outgoing { to: from, from: answer_from, ecn: 0, train: &answer, segment_bytes: answer.len() });
            }
        }
        if train.is_empty() {
            return;
        }
        let on = self.core().forward(now, from, train);
        if let Some(to) = on {
            send(socket, &Outgoing { to, from: answer_from, ecn, train, segment_bytes });
        }
    }

    fn core(&self) -> MutexGuard<'_, Relay> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::ZERO + self.began.elapsed()
    }
}

impl Held<'_> {
    /// Gives it back, and says how many bytes of it were forwarded, unless it has ended.
    fn release(mut self) -> Option<u64> {
        self.give_back()
    }

    fn give_back(&mut self) -> Option<u64> {
        let pair = self.pair.take()?;
        let forwarded_bytes = self.relay.core().release(pair);
        self.relay.holders.lock().unwrap_or_else(PoisonError::into_inner).remove(&pair);
        forwarded_bytes
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Whether pairs are to be looked through again, and that they are: each client's thread asks, and once is enough for all.
fn is_due(tidied: &mut Time, now: Time) -> bool {
    let is_due = now.since(*tidied) >= LOOK;
    if is_due {
        *tidied = now;
    }
    is_due
}

/// Tells a client that there is no pair for it.
pub fn refuse(connection: &Connection, refusal: &Refusal) {
    if let Ok((mut send, _ask, _receive)) = asked(connection) {
        say(&mut send, &RelayReply::Refused(refusal.clone()), connection);
    }
}

/// How long a client may take to take what it is told.
const FAREWELL: Duration = Duration::from_secs(2);

fn asked(connection: &Connection) -> io::Result<(SendStream, RelayAsk, RecvStream)> {
    let (send, mut receive) = connection.accept_bi()?;
    let ask = from_line(&mut receive)?;
    Ok((send, ask, receive))
}

/// Says a last word, and waits for the client to go.
fn say(send: &mut SendStream, reply: &RelayReply, connection: &Connection) {
    if send.write_all(&to_line(reply)).and_then(|()| send.finish().map_err(io::Error::from)).is_err() {
        return;
    }
    let said = clock::now();
    while connection.end().is_none() && said.elapsed() < FAREWELL {
        thread::park_timeout(FAREWELL / 40);
    }
}

/// What a train has of messages at its end, in bytes; all of it, where the first is one.
fn messages_in(train: &[u8], segment_bytes: usize) -> usize {
    if train.starts_with(&MARK) {
        return train.len();
    }
    let last = train.chunks(segment_bytes).next_back().unwrap_or_default();
    if last.starts_with(&MARK) { last.len() } else { 0 }
}

/// Nobody is waited for: what finds no room is lost, as on a network.
fn send(socket: &Socket, outgoing: &Outgoing<'_>) {
    if let Err(error) = socket.try_send(outgoing) {
        tracing::debug!(%error, to = %outgoing.to, "not sent");
    }
}

fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).map_err(|_| io::Error::other("the system has no randomness"))?;
    Ok(bytes)
}

/// Whoever has a network of IPv6, 56 bits as a rule, has as many addresses as it likes: they count as one.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 72 << 72)),
        ip @ IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_count_as_one() {
        let same = |a: &str, b: &str| counted_as(a.parse().expect("an address")) == counted_as(b.parse().expect("an address"));
        assert!(same("2001:db8:0:100::1", "2001:db8:0:1ff:9::2") && !same("2001:db8:0:100::1", "2001:db8:0:200::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    }

    #[test]
    fn many_clients_have_pairs_looked_through_no_more_often_than_one() {
        let mut tidied = Time::ZERO;
        // Two hundred of them, each once a second for ten seconds.
        let asked = (0..=10_000).step_by(5).map(|ms| Time::ZERO + Duration::from_millis(ms));
        assert_eq!(asked.filter(|&now| is_due(&mut tidied, now)).count(), 10);
    }

    #[test]
    fn messages_are_found_at_the_end_of_a_train() {
        let message = [&MARK[..], &[0; 56]].concat();
        let train = |parts: &[&[u8]]| parts.concat();
        assert_eq!(messages_in(&train(&[&[1; 1200], &[1; 1200], &message]), 1200), 64);
        assert_eq!(messages_in(&train(&[&[1; 1200], &[1; 1200]]), 1200), 0);
        assert_eq!(messages_in(&train(&[&message, &message]), 64), 128);
        assert_eq!(messages_in(&train(&[&[1; 64], &message]), 64), 64);
        assert_eq!(messages_in(&[], 1), 0);
    }
}
