//! What a cell of the study is: data, and the network that follows from it.

use std::time::Duration;

use haul_sim::{Path, Queue, Topology, Ways};
use haul_units::{BitRate, Bytes};

use crate::Kind;

/// What a flow is made of, and over how many of the tree's paths it runs.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// As in tables.
    pub title: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// Its paths.
    pub ways: Ways,
}

/// What hosts send that do not send without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Flows of one size to random hosts, at random times: so long after each other on average, on each host.
    Short(Bytes, Duration),
    /// Messages of 50 KB to 1 MB to random hosts, each 500 ms on average.
    Messages,
    /// Each 200 ms on average a host asks eight random others, which all answer at once with 2 to 20 KB. It is over with the last answer.
    Queries,
}

impl Load {
    /// The flows of 70 KB of the study's own reproduction, as often as its messages.
    pub const REPRODUCTION: Self = Self::Short(Bytes(70_000), Duration::from_millis(500));
}

/// Whose network it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tree {
    /// The study's: 100 Mbit/s at the hosts, 200 and 400 above, 0.5 ms between pods, queues of 100 KB.
    Study,
    /// MMPTCP's: four hosts for each port upwards, 100 Mbit/s and 20 us everywhere, queues of 100 packets.
    Crowded,
}

/// One cell of the study.
#[derive(Debug, Clone, Copy)]
pub struct Study {
    /// Rates, delays, queues.
    pub tree: Tree,
    /// Ports of a switch: k^3/4 hosts, or four times as many.
    pub k: usize,
    /// Who sends the short flows.
    pub foreground: Contender,
    /// Who sends without end, if anybody does.
    pub background: Option<Contender>,
    /// Which part of the hosts do that.
    pub crowd: f64,
    /// What the others send.
    pub load: Load,
    /// How long short flows begin; there are [`SETTLING`] before and [`DRAINING`] after.
    pub length: Duration,
    /// Decides who sends what to whom when, and all chance.
    pub seed: u64,
    /// Queues mark what finds more than so many bytes before it, if that is asked for; who heeds marks is up to the contenders.
    pub mark_above: Option<Bytes>,
}

/// Long flows have this time to find their rate.
pub const SETTLING: Duration = Duration::from_secs(1);
/// The last short flows have this time to end.
pub const DRAINING: Duration = Duration::from_secs(5);

impl Study {
    /// The tree.
    pub(super) fn topology(&self) -> Topology {
        // Six links from a host to one in another pod.
        let (crowding, rates, rtt, queue) = match self.tree {
            Tree::Study => (1, [100, 200, 400], Duration::from_micros(500) / 6, Bytes(100_000)),
            Tree::Crowded => (4, [100; 3], Duration::from_micros(20) * 2, Bytes(1500) * 100),
        };
        let [host, aggregation, core] = rates.map(|mbps| {
            let path = Path::new(BitRate::mbps(mbps), rtt).queue(Queue::Bytes(queue));
            let mark_bdp = self.mark_above.map(|bytes| bytes.as_u64() as f64 / path.bdp().as_u64() as f64);
            Path { mark_bdp, ..path }
        });
        Topology::FatTree { k: self.k, crowding, host, aggregation, core }
    }
}
