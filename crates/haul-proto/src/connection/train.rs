//! Filling a train with stream data.
//!
//! A train is one hand-over to the network: packets of equal size, the last one may be shorter. It takes runs of bytes stream by stream as the schedule says,
//! each to be encrypted from where it lies straight into its packet ([`super::sealing`]). The pacer decides when a train may go and how long it may be; the window
//! bounds it; after a probe timeout a few packets go regardless.

use haul_cc::quantum;
use haul_paths::Scheduler;
use haul_units::{BitRate, Bytes, Time};

use super::acked::LostRange;
use super::echo::TAIL_PKTS;
use super::sealing::Row;
use super::stats::Wait;
use super::{Connection, Transmit};
use crate::config::Pacing;
use crate::path::{Path, SentRun};
use crate::recovery::Content;
use crate::streams::SendRun;
use crate::wire::{DATA_HEADER_BYTES, Header, PacketKind, TAG_BYTES};

/// What a data packet carries besides its bytes.
pub const DATA_OVERHEAD: usize = DATA_HEADER_BYTES + TAG_BYTES;
/// Packets of one run, and of one train, at most.
const RUN_PACKETS: usize = 64;

impl Connection {
    /// A train for the first path that may take one.
    pub(super) fn poll_data(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        for path in &mut self.paths {
            path.paced_until = Time::NEVER;
        }
        if self.streams.is_idle() {
            match self.poll_echo(now, train) {
                Some(Ok(transmit)) => return Some(transmit),
                Some(Err(wait)) => {
                    self.wait(now, wait);
                    return None;
                }
                None => {}
            }
            if self.streams.unacknowledged == 0 {
                self.roster.on_idle();
            }
            if let Some(filler) = (0..self.paths.len()).find_map(|index| self.poll_filler(now, index, train)) {
                return Some(filler);
            }
            self.paths.iter_mut().for_each(|path| {
                path.trains.on_pause();
                path.pacer.on_pause();
            });
            self.wait_for_data(now, Wait::Application);
            self.note_filler_due();
            return None;
        }
        let turns = self.turns(now);
        let mut reason = Wait::Window;
        for index in turns.iter().map(usize::from) {
            match self.poll_data_on(index, now, train) {
                Ok(transmit) => {
                    self.wait(now, Wait::Nothing);
                    return Some(transmit);
                }
                Err(Wait::Window) => {}
                Err(wait @ (Wait::Pacing | Wait::Limit)) => reason = wait,
                Err(no_data) => {
                    self.wait_for_data(now, no_data);
                    return None;
                }
            }
        }
        self.wait(now, reason);
        None
    }

    /// Nothing waits to be sent: what goes by a second path too, or what that waits for; `None` if there is nothing like that.
    fn poll_echo(&mut self, now: Time, train: &mut [u8]) -> Option<Result<Transmit, Wait>> {
        if self.streams.unacknowledged == 0 || self.echoes.as_ref().is_none_or(|echoes| echoes.is_through()) {
            return None;
        }
        let turns = self.turns(now);
        self.echo_the_tail(&turns);
        let mut waits = None;
        for index in turns.iter().map(usize::from) {
            if !self.is_to_echo(index) {
                continue;
            }
            match self.poll_echo_on(index, now, train) {
                Ok(transmit) => return Some(Ok(transmit)),
                // It has arrived meanwhile.
                Err(Wait::Application | Wait::Credit) => {}
                Err(wait) => waits = Some(Err(wait)),
            }
        }
        waits
    }

    fn poll_echo_on(&mut self, index: usize, now: Time, train: &mut [u8]) -> Result<Transmit, Wait> {
        let probes = self.paths[index].probes_due;
        if self.config.scheduler == Scheduler::Completion {
            self.paths[index].probes_due = probes.max(TAIL_PKTS);
        }
        let outcome = self.poll_data_on(index, now, train);
        self.paths[index].probes_due = probes;
        outcome
    }

    /// No path is what sending waits for.
    fn wait_for_data(&mut self, now: Time, wait: Wait) {
        for path in &mut self.paths {
            path.paced_until = Time::NEVER;
            path.sampler.on_app_limited(now);
        }
        self.wait(now, wait);
    }

    /// A train for this path, or why there is none.
    fn poll_data_on(&mut self, index: usize, now: Time, train: &mut [u8]) -> Result<Transmit, Wait> {
        let rate_limit = self.rate_limit_each();
        let Some(path) = self.paths.get_mut(index) else { return Err(Wait::Window) };
        let packet = usize::from(path.mtu.current());
        let limit = match train_limit(path, now, self.config.pacing, rate_limit) {
            Ok(limit) => limit,
            Err((wait, until)) => {
                path.trains.on_pause();
                if !matches!(wait, Wait::Pacing | Wait::Limit) {
                    path.pacer.on_pause();
                }
                path.paced_until = until;
                return Err(wait);
            }
        };
        let packets = (limit / packet).clamp(1, RUN_PACKETS).min(train.len() / packet);
        self.queue_echo(index);
        let filled = self.fill(index, train, packet, packets);
        if filled.packets == 0 {
            // The schedule had nothing that credit lets go.
            return Err(if self.streams.unsent > 0 { Wait::Credit } else { Wait::Application });
        }
        self.remember(index, now, filled).ok_or(Wait::Application)
    }

    /// Writes up to `packets` packets of `packet` bytes for a path.
    fn fill(&mut self, index: usize, train: &mut [u8], packet: usize, packets: usize) -> Filled {
        let mut filled = Filled { packets: 0, bytes: 0, packet };
        self.runs.clear();
        let payload = packet - DATA_OVERHEAD;
        let tail = self.streams.unsent == 0;
        let is_redundant = self.config.scheduler == Scheduler::Redundant;
        let (mut firsts, mut fresh_bytes) = (Vec::new(), 0);
        let Some(keys) = self.keys.as_mut() else { return filled };
        let Some(path) = self.paths.get_mut(index) else { return filled };
        let mut is_open = true;
        while is_open && filled.packets < packets {
            let Some(turn) = self.streams.next_turn() else { break };
            let id = turn.stream;
            let credit = if turn.again { 0 } else { usize::try_from(self.streams.credit.left()).unwrap_or(usize::MAX) };
            let Some(send) = self.streams.sender(id) else { continue };
            let mut fresh = 0;
            let before = filled.packets;
            while filled.packets < packets {
                let room = (packets - filled.packets) * payload;
                let Some(run) = send.next_run(room, credit - fresh, tail) else { break };
                if run.again {
                    self.retransmitted_bytes += run.bytes.len() as u64;
                } else {
                    fresh += run.bytes.len();
                    if is_redundant {
                        let len = run.bytes.len() as u64;
                        firsts.push(LostRange { stream: run.stream, offset: run.offset, len, fin: run.fin });
                    }
                }
                let SendRun { stream, offset, fin, end, .. } = run;
                let kind = PacketKind::Data { stream, offset, fin, end };
                let header = Header { destination: self.remote, path: path.id, epoch: 0, number: path.next_number, kind };
                let memory = run.memory.map(|(memory, start)| (memory.clone(), start));
                let row = Row { header, at: filled.bytes, payload, len: run.bytes.len(), memory };
                if row.memory.is_none() {
                    row.place(run.bytes, train);
                }
                row.defer(&mut keys.sealer, &mut self.unsealed);
                let count = run.bytes.len().div_ceil(payload).max(1);
                let last = DATA_OVERHEAD + run.bytes.len() - (count - 1) * payload;
                self.runs.push(run_record(&run, path.next_number, count, packet, last));
                path.next_number += count as u64;
                filled.packets += count;
                filled.bytes += (count - 1) * packet + last;
                if last < packet {
                    // Only the last packet of a train may be short.
                    is_open = false;
                    break;
                }
            }
            self.streams.credit.spend(fresh as u64);
            fresh_bytes += fresh as u64;
            self.streams.unsent = self.streams.unsent.saturating_sub(fresh as u64);
            let stuck = filled.packets == before;
            self.streams.end_turn(turn, &mut self.control);
            if stuck && !turn.again && self.streams.credit.left() == 0 {
                // Who waits for credit waits for the connection's: nobody else has more.
                break;
            }
        }
        self.roster.on_sent(fresh_bytes);
        self.note_sent(fresh_bytes);
        for range in firsts {
            self.echo_everything(index as u8, range);
        }
        filled
    }

    /// Books a filled train.
    fn remember(&mut self, index: usize, now: Time, filled: Filled) -> Option<Transmit> {
        self.feed_the_starved();
        let app_limited = self.streams.is_idle();
        let path = self.paths.get_mut(index)?;
        path.probes_due = path.probes_due.saturating_sub(filled.packets as u32);
        let bytes = filled.bytes as u64;
        path.pacer.on_sent(now, Bytes(bytes));
        path.on_sent(now, bytes, filled.packets as u64, app_limited, self.runs.drain(..));
        if app_limited {
            path.sampler.on_app_limited(now);
        }
        let segment = filled.packet.min(filled.bytes);
        Some(Transmit { path: path.id, remote: path.peer.current(), len: filled.bytes, segment, ecn: path.ecn.mark() })
    }
}

/// What [`Connection::fill`] wrote.
#[derive(Debug, Clone, Copy)]
struct Filled {
    packets: usize,
    bytes: usize,
    packet: usize,
}

/// How many bytes may leave at once, or why none and until when.
fn train_limit(path: &mut Path, now: Time, pacing: Pacing, rate_limit: Option<BitRate>) -> Result<usize, (Wait, Time)> {
    if now < path.held_until {
        return Err((Wait::Pacing, path.held_until));
    }
    let packet = u64::from(path.mtu.current());
    let allowed = path.peer.data_room().min(path.duty_room());
    if allowed < packet {
        path.sampler.on_app_limited(now);
        return Err((Wait::Window, Time::NEVER));
    }
    if !path.may_send() {
        return Err((Wait::Window, Time::NEVER));
    }
    if path.probes_due > 0 {
        return Ok((u64::from(path.probes_due) * packet).min(allowed) as usize);
    }
    let paced = match pacing {
        Pacing::On => path.controller.rate(),
        Pacing::Off => BitRate::MAX,
    };
    let rate = paced.min(rate_limit.unwrap_or(BitRate::MAX));
    let burst = path.controller.burst();
    let burst = if rate_limit.is_some() { burst.min(quantum(rate, Bytes(packet))) } else { burst };
    let (burst, grouping) = path.trains.limit(path.next_number, burst.max(Bytes(packet)), rate, Bytes(packet));
    path.pacer.set_bursts(grouping, path.rtt.min());
    let room = path.window_room().min(allowed).min(path.unheard_room_pkts().saturating_mul(packet));
    if room < packet {
        return Err((Wait::Window, Time::NEVER));
    }
    match path.pacer.budget(now, rate, burst) {
        Err(until) => Err((if rate < paced { Wait::Limit } else { Wait::Pacing }, until)),
        Ok(budget) => Ok(usize::try_from(budget.as_u64().min(room)).unwrap_or(usize::MAX)),
    }
}

fn run_record(run: &SendRun<'_>, first: u64, count: usize, packet: usize, last: usize) -> SentRun {
    let (payload, last_payload) = ((packet - DATA_OVERHEAD) as u16, (last - DATA_OVERHEAD) as u16);
    SentRun {
        first,
        count: count as u8,
        content: Content::Data { stream: run.stream, offset: run.offset, payload, last_payload, fin: run.fin },
        packet: packet as u16,
        last_packet: last as u16,
    }
}
