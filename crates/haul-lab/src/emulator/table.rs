//! What an emulator tells of itself, in words.

use std::fmt::Write as _;

use haul_units::{BitRate, Bytes};

use super::status::{DirectionStatus, WanStatus};
use crate::wan::Side;

impl WanStatus {
    /// Counts and rates of each direction, for people.
    pub fn table(&self) -> String {
        let mut text = format!("WAN `{}`: {}\n", self.name, self.link());
        for direction in &self.directions {
            direction_text(&mut text, direction);
        }
        let drops = self.device_drops;
        if drops.a != 0 || drops.b != 0 {
            let _ = writeln!(text, "dropped before the emulator could read them: {} from a, {} from b", drops.a, drops.b);
        }
        text
    }

    /// The link in a few words: what was asked for, with the defaults for the rest.
    pub fn link(&self) -> String {
        let mut rates: Vec<BitRate> = Vec::new();
        for rate in self.directions.iter().map(|direction| BitRate::from_bps(direction.rate_bps)) {
            // Of several links those that are alike have the same.
            if !rates.contains(&rate) {
                rates.push(rate);
            }
        }
        let rates: Vec<String> = rates.iter().map(BitRate::to_string).collect();
        let mut round_trips = vec![self.rtt_s * 1e3];
        round_trips.extend(self.directions.iter().map(|direction| direction.rtt_s * 1e3));
        round_trips.dedup();
        let round_trips: Vec<String> = round_trips.iter().map(f64::to_string).collect();
        format!("{}, RTT {} ms, loss {} %, MTU {}", rates.join(" and "), round_trips.join(" and "), self.loss * 100.0, self.mtu)
    }
}

fn direction_text(text: &mut String, direction: &DirectionStatus) {
    let side = |side: Side| if side == Side::A { "a" } else { "b" };
    let (delivering, cpu) = direction.rates.map_or((0, 0.0), |rates| (rates.delivering_bps, rates.cpu_of_one * 100.0));
    let (delivering, rate) = (BitRate::from_bps(delivering), BitRate::from_bps(direction.rate_bps));
    let _ = writeln!(text, "link {} {} -> {}: {delivering} of {rate}", direction.link, side(direction.from), side(direction.to));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<14}{value}");
    };
    line("sent", format!("{} packets, {}", direction.sent_pkts, Bytes(direction.sent_bytes)));
    line("delivered", format!("{} packets, {}", direction.delivered_pkts, Bytes(direction.delivered_bytes)));
    let (queued, room, most) = (direction.queued_bytes, direction.queue_bytes, direction.max_queued_bytes);
    line("queue", format!("{} of {}, at most {} so far", Bytes(queued), Bytes(room), Bytes(most)));
    line("dropped", format!("{} at the queue, {} lost on the way", direction.queue_drops_pkts, direction.lost_pkts));
    if direction.duplicated_pkts + direction.marked_pkts > 0 {
        line("besides", format!("{} duplicated, {} marked", direction.duplicated_pkts, direction.marked_pkts));
    }
    if direction.unroutable_pkts + direction.failed_writes > 0 {
        line("refused", format!("{} for nobody, {} by the receiver", direction.unroutable_pkts, direction.failed_writes));
    }
    let added = (direction.added_delay_mean_us, direction.added_delay_max_us);
    line("emulator", format!("{cpu:.0} % of a processor, adds {:.0} us on average, {:.0} us at worst", added.0, added.1));
}
