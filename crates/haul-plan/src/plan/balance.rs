//! How long each server would be busy, if the work were shared as evenly as the replicas allow.
//!
//! Files of one set may be sent by any server of it, so the best division is a flow: every set's bytes go to its servers so that the one that
//! ends last ends as early as possible. It is approached by a few rounds in which each set moves its bytes from servers that would be
//! busy for long to those that would not. A server then begins with what the others can help with least.

use super::server::Server;
use super::work::Work;
use crate::catalogue::{Catalogue, SetId};

/// Rounds of moving. Each round takes the shares to the inverse of the time that their servers need, so an imbalance of a factor shrinks by its square
/// root or faster; after eight a factor of 1,000 is below 3 %.
const ROUNDS: usize = 8;

/// What a balance was made with.
#[derive(Debug, Default)]
pub(super) struct Balanced {
    pub number: u64,
    pub pending: u64,
    pub rates: Vec<f64>,
    pub is_stale: bool,
}

/// Seconds until each server would be through.
pub(super) fn balance(catalogue: &Catalogue, work: &Work, servers: &[Server]) -> Vec<f64> {
    let sets: Vec<SetId> = (0..catalogue.set_count() as u32).map(SetId).filter(|set| work.pending_of(*set) > 0).collect();
    let usable = |set: SetId| catalogue.members(set).iter().map(|server| server.index()).filter(|at| servers[*at].is_usable());
    let mut shares: Vec<f64> = Vec::new();
    for set in &sets {
        let all: f64 = usable(*set).map(|at| servers[at].rate()).sum();
        shares.extend(usable(*set).map(|at| servers[at].rate() / all));
    }
    let busy = |shares: &[f64]| {
        let mut load: Vec<f64> = servers.iter().map(|server| server.outstanding as f64).collect();
        let mut shares = shares.iter();
        for set in &sets {
            let pending = work.pending_of(*set) as f64;
            usable(*set).zip(shares.by_ref()).for_each(|(at, share)| load[at] += pending * share);
        }
        load.iter().zip(servers).map(|(load, server)| load / server.rate()).collect::<Vec<f64>>()
    };
    let mut seconds = busy(&shares);
    for _ in 0..ROUNDS {
        let mut at = 0;
        for set in &sets {
            let members: Vec<usize> = usable(*set).collect();
            let mine = &mut shares[at..at + members.len()];
            at += members.len();
            for (share, member) in mine.iter_mut().zip(&members) {
                *share /= seconds[*member].max(1e-9);
            }
            let all: f64 = mine.iter().sum();
            for share in mine {
                *share /= all.max(f64::MIN_POSITIVE);
            }
        }
        seconds = busy(&shares);
    }
    seconds
}

/// The sets of one server that have work, those first whose other servers are busy for longest, or that nobody else can send.
pub(super) fn order(catalogue: &Catalogue, work: &Work, servers: &[Server], seconds: &[f64], server: usize) -> Vec<SetId> {
    let mut sets: Vec<(f64, SetId)> = Vec::new();
    for set in servers[server].sets.iter().copied().filter(|set| work.has_work(*set)) {
        let others = catalogue.members(set).iter().map(|other| other.index());
        let help = others.filter(|other| *other != server && servers[*other].is_usable()).map(|other| seconds[other]);
        sets.push((help.fold(f64::INFINITY, f64::min), set));
    }
    sets.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sets.into_iter().map(|(_, set)| set).collect()
}
