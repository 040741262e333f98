//! What is said of a verdict: one line, with the numbers that it rests on.

use haul_units::{Ratio, milliseconds};

use super::{Demand, Evidence, LOSS, Losses, Path, SATURATED, Verdict};

impl Evidence {
    /// One line; empty where too little was sent to tell.
    pub(super) fn words(&self, verdict: Verdict) -> String {
        let path = self.path.unwrap_or_default();
        let rate = self.rate();
        let [read, hash, plan] = self.source;
        let [write, check, sync] = self.target;
        let rtt = milliseconds(path.rtt_us);
        match verdict {
            Verdict::Short => String::new(),
            Verdict::Login => {
                format!(
                    "limited by the login: connecting took {:.1} s, the copy {:.1} s",
                    self.login.as_secs_f64(),
                    self.elapsed.as_secs_f64()
                )
            }
            Verdict::Limit => format!("limited by the rate limit of {}", self.limit.unwrap_or(rate)),
            Verdict::SourceProcessor => format!("limited by the source's processor: {}", busy(self.sender_demand)),
            Verdict::TargetProcessor => format!("limited by the target's processor: {}", busy(self.receiver_demand)),
            Verdict::SourceDisk => format!("limited by the source's disk {}", threads(read, "reading")),
            Verdict::SourceHash => format!("limited by the source's processor {}", threads(hash, "hashing")),
            Verdict::ManyFiles => {
                format!("limited by the number of files (finding out what to send took {} of the time)", part(plan))
            }
            Verdict::TargetDisk => format!("limited by the target's disk {}", threads(write, "writing")),
            Verdict::TargetHash => format!("limited by the target's processor {}", threads(check, "hashing")),
            Verdict::TargetSync => format!("limited by the target's disk (making files durable took {} of the time)", part(sync)),
            Verdict::Memory => {
                format!("limited by memory for data under way: the sender waited for credit {} of the time", part(path.credit))
            }
            Verdict::Idle => {
                format!(
                    "what limited the speed is not known: nothing was there to send {} of the time, and neither disks nor processors were busy",
                    part(path.application)
                )
            }
            Verdict::Path => format!(
                "limited by the path: full at {rate}, RTT {rtt}, {} of queue at the end, {}",
                milliseconds(path.queue_us),
                path.losses()
            ),
            Verdict::Policer => format!(
                "limited by the path: something on it drops what is above {rate}, without a queue; RTT {rtt}, {}",
                path.losses()
            ),
            Verdict::Start => {
                format!(
                    "limited by the start: finding the path's rate took {} of the time; RTT {rtt}, {}",
                    part(path.start),
                    path.losses()
                )
            }
            Verdict::Unknown if self.path.is_none() => "what limited the speed is not known".to_owned(),
            Verdict::Unknown => format!(
                "what limited the speed is not known: the sender sent what it took the path to bear, of which there was no sign that it was full; RTT {rtt}, {}",
                path.losses()
            ),
        }
    }
}

impl Path {
    fn losses(&self) -> String {
        let Losses { starting, queued, other } = self.loss;
        let kinds = [
            (starting, "at the start, which overfilled the queue itself"),
            (queued, "with a queue, so of congestion"),
            (other, "without a queue"),
        ];
        let told: Vec<String> =
            kinds.iter().filter(|(part, _)| *part >= LOSS).map(|(part, why)| format!("{} {why}", Ratio::new(*part))).collect();
        if told.is_empty() { "no loss".to_owned() } else { format!("loss {}", told.join(", ")) }
    }
}

/// A part of the time, at most all of it.
fn part(part: f64) -> Ratio {
    Ratio::new(part.min(1.0))
}

fn threads(share: f64, what: &str) -> String {
    format!("({what} took {} of its threads' time)", part(share))
}

/// What the busiest thread of an end did.
fn busy(demand: Demand) -> String {
    let Demand { wanted, waited, taken } = demand;
    // Who mostly waits should know that others are in the way.
    if demand.is_crowded() && wanted <= SATURATED {
        format!(
            "all its processors together were busy {} of the time, and its busiest thread waited for one {} of it",
            part(taken),
            part(waited)
        )
    } else if waited > wanted / 2.0 {
        format!(
            "its busiest thread ran {} of the time, and for {} it waited while others ran",
            part(wanted - waited),
            part(waited)
        )
    } else {
        format!("its busiest thread was busy {} of the time", part(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::super::tests::{evidence, network};
    use super::*;

    #[test]
    fn a_crowded_machine_is_told_in_parts_of_the_time() {
        let sender_demand = Demand { wanted: 0.6, waited: 0.34, taken: 0.765 };
        let evidence = Evidence { sender_demand, ..evidence(network()) };
        assert_eq!(
            evidence.words(judge(&evidence)),
            "limited by the source's processor: all its processors together were busy 76.5 % of the time, \
             and its busiest thread waited for one 34.0 % of it"
        );
    }

    #[test]
    fn losses_are_told_by_kind() {
        let loss = Losses { starting: 0.02, queued: 0.0, other: 0.001 };
        let evidence = evidence(Path { queued_rounds: 15, loss, ..network() });
        assert_eq!(
            evidence.words(judge(&evidence)),
            "limited by the path: full at 100 Mbit/s, RTT 61.0 ms, 1.00 ms of queue at the end, \
             loss 2.00 % at the start, which overfilled the queue itself, 0.10 % without a queue"
        );
    }
}
