//! What an emulator tells of itself: counts of each direction, and rates between two looks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::control::DirectionStats;
use crate::wan::{Address, Host, Side, Wan};

/// A WAN at a point in time. The names of its fields are those of `haul lab wan status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WanStatus {
    /// Name of the WAN.
    pub name: String,
    /// All hosts, side a first.
    pub hosts: Vec<HostStatus>,
    /// Round-trip time without queues, in seconds.
    pub rtt_s: f64,
    /// Part of the packets lost in each direction.
    pub loss: f64,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// Of each link: from a to b, from b to a.
    pub directions: Vec<DirectionStatus>,
    /// Packets that never entered a link.
    pub device_drops: DeviceDrops,
}

/// A host and its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// As commands name it.
    pub name: String,
    /// On each link.
    pub addresses: Vec<Address>,
}

/// Packets that the kernel could not hand to the emulator, because too many were waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDrops {
    /// Sent by hosts of side a.
    pub a: u64,
    /// Sent by hosts of side b.
    pub b: u64,
}

/// What a direction of a link has done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Number of the link.
    pub link: usize,
    /// Side that sends.
    pub from: Side,
    /// Side that receives.
    pub to: Side,
    /// Rate of the link, in bit/s.
    pub rate_bps: u64,
    /// Room in its queue.
    pub queue_bytes: u64,
    /// Round-trip time of the link without queues, in seconds.
    pub rtt_s: f64,
    /// When these were counted, by the emulator's clock, in seconds.
    pub at_s: f64,
    /// Packets offered to the link.
    pub sent_pkts: u64,
    /// IP bytes offered to it.
    pub sent_bytes: u64,
    /// Packets that came through.
    pub delivered_pkts: u64,
    /// IP bytes that came through.
    pub delivered_bytes: u64,
    /// Packets that found the queue full.
    pub queue_drops_pkts: u64,
    /// Packets lost on the way, as was asked for.
    pub lost_pkts: u64,
    /// Packets that arrived twice.
    pub duplicated_pkts: u64,
    /// Packets marked (ECN).
    pub marked_pkts: u64,
    /// In the queue.
    pub queued_bytes: u64,
    /// The most that was in it so far.
    pub max_queued_bytes: u64,
    /// Packets in the queue and on the way.
    pub inside_pkts: u64,
    /// Reads of devices: a super-packet is one.
    pub reads: u64,
    /// Writes to devices.
    pub writes: u64,
    /// Packets for nobody.
    pub unroutable_pkts: u64,
    /// Writes that the system refused.
    pub failed_writes: u64,
    /// How late packets came out beyond what the link asked for: mean, in microseconds.
    pub added_delay_mean_us: f64,
    /// The same: the worst.
    pub added_delay_max_us: f64,
    /// Processor time of the thread, in seconds.
    pub cpu_s: f64,
    /// Memory for packets.
    pub memory_bytes: u64,
    /// What changed between two looks, where there were two.
    #[serde(flatten)]
    pub rates: Option<Rates>,
}

/// What changed between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// IP bytes offered, in bit/s.
    pub sending_bps: u64,
    /// IP bytes that came through, in bit/s.
    pub delivering_bps: u64,
    /// Processor time, as a part of one processor.
    pub cpu_of_one: f64,
}

impl WanStatus {
    pub(super) fn of(name: &str, wan: &mut Wan) -> Self {
        let link = wan.spec().link.clone();
        let mut directions = Vec::new();
        for (number, stats) in wan.stats().iter().enumerate() {
            let of_this = wan.spec().options_of(number);
            for ((stats, config), (from, to)) in stats.iter().zip(of_this.links()).zip([(Side::A, Side::B), (Side::B, Side::A)]) {
                directions.push(DirectionStatus {
                    link: number,
                    from,
                    to,
                    rate_bps: config.rate.as_bps(),
                    queue_bytes: config.queue.as_u64(),
                    rtt_s: of_this.rtt.as_secs_f64(),
                    ..DirectionStatus::of(stats)
                });
            }
        }
        Self {
            name: name.to_owned(),
            hosts: HostStatus::all(wan),
            rtt_s: link.rtt.as_secs_f64(),
            loss: link.loss.as_f64(),
            mtu: wan.spec().mtu,
            directions,
            device_drops: DeviceDrops { a: wan.device_drops(Side::A), b: wan.device_drops(Side::B) },
        }
    }

    /// The same with rates since an earlier look.
    pub(super) fn since(mut self, before: &Self) -> Self {
        for (direction, before) in self.directions.iter_mut().zip(&before.directions) {
            direction.rates = Some(direction.rates_since(before));
        }
        self
    }
}

impl HostStatus {
    pub(super) fn all(wan: &Wan) -> Vec<Self> {
        let of = |host: &Host| Self { name: host.name.clone(), addresses: host.addresses.clone() };
        wan.hosts().iter().map(of).collect()
    }
}

impl DirectionStatus {
    fn of(stats: &DirectionStats) -> Self {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Self {
            link: 0,
            from: Side::A,
            to: Side::B,
            rate_bps: 0,
            queue_bytes: 0,
            rtt_s: 0.0,
            at_s: stats.at.as_secs_f64(),
            sent_pkts: stats.link.sent_pkts,
            sent_bytes: stats.offered.as_u64(),
            delivered_pkts: stats.link.delivered_pkts,
            delivered_bytes: stats.delivered.as_u64(),
            queue_drops_pkts: stats.link.dropped_pkts,
            lost_pkts: stats.link.lost_pkts,
            duplicated_pkts: stats.link.duplicated_pkts,
            marked_pkts: stats.link.marked_pkts,
            queued_bytes: stats.queued.as_u64(),
            max_queued_bytes: stats.link.max_queued.as_u64(),
            inside_pkts: stats.inside_pkts,
            reads: stats.reads,
            writes: stats.writes,
            unroutable_pkts: stats.unroutable_pkts,
            failed_writes: stats.failed_writes,
            added_delay_mean_us: micros(stats.late) / (stats.writes.max(1) as f64),
            added_delay_max_us: micros(stats.latest),
            cpu_s: stats.cpu.as_secs_f64(),
            memory_bytes: stats.memory.as_u64(),
            rates: None,
        }
    }

    fn rates_since(&self, before: &Self) -> Rates {
        // Two looks at the same instant have no rate; they must not have an endless one.
        let seconds = (self.at_s - before.at_s).max(1e-9);
        let rate = |before: u64, after: u64| (after.saturating_sub(before) as f64 * 8.0 / seconds) as u64;
        Rates {
            sending_bps: rate(before.sent_bytes, self.sent_bytes),
            delivering_bps: rate(before.delivered_bytes, self.delivered_bytes),
            cpu_of_one: (self.cpu_s - before.cpu_s) / seconds,
        }
    }
}

/// What a command finds in its environment of the WAN that it runs over.
pub fn environment(name: &str, hosts: &[HostStatus]) -> Vec<(String, String)> {
    let mut variables = vec![("HAUL_LAB_NAME".to_owned(), name.to_owned())];
    for host in hosts {
        let Some(address) = host.addresses.first() else { continue };
        let variable = format!("HAUL_LAB_{}", host.name.to_uppercase());
        variables.push((format!("{variable}_ADDRESS"), address.v4.to_string()));
        variables.push((format!("{variable}_ADDRESS6"), address.v6.to_string()));
        variables.push((variable, host.name.clone()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let before =
            DirectionStatus { at_s: 1.0, cpu_s: 0.5, sent_bytes: 1000, ..DirectionStatus::of(&DirectionStats::default()) };
        let after = DirectionStatus { at_s: 1.5, cpu_s: 0.75, sent_bytes: 2000, delivered_bytes: 500, ..before.clone() };
        assert_eq!(after.rates_since(&before), Rates { sending_bps: 16_000, delivering_bps: 8000, cpu_of_one: 0.5 });
        assert_eq!(after.rates_since(&after), Rates { sending_bps: 0, delivering_bps: 0, cpu_of_one: 0.0 });
    }

    #[test]
    fn rates_are_fields_beside_the_others() {
        let counts = DirectionStatus::of(&DirectionStats::default());
        let without = serde_json::to_value(&counts).expect("plain numbers");
        assert_eq!((&without["from"], without.get("cpu_of_one")), (&"a".into(), None));
        let rates = Some(Rates { sending_bps: 8, delivering_bps: 9, cpu_of_one: 0.25 });
        let with = serde_json::to_value(DirectionStatus { rates, ..counts.clone() }).expect("plain numbers");
        assert_eq!((&with["sending_bps"], &with["cpu_of_one"]), (&8.into(), &0.25.into()));
        let (read, read_without) = (serde_json::from_value::<DirectionStatus>(with), serde_json::from_value(without));
        assert_eq!((read.ok(), read_without.ok()), (Some(DirectionStatus { rates, ..counts.clone() }), Some(counts)));
    }
}
