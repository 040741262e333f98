//! Starts behind a token bucket: the first bytes pass at the speed of the wire behind it, and tell nothing of the rate that is sold.

use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::TokenBucket;
use haul_units::{BitRate, Bytes};

use crate::flow::{FlowPlan, PACKET};
use crate::grid::compare;
use crate::scenario::Scenario;

/// What becomes of a packet for which there is no token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Waits,
    IsDropped,
}

#[test]
fn a_start_behind_a_token_bucket_is_not_taken_in_by_it() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for (without, name) in [(Without::Waits, "waits"), (Without::IsDropped, "dropped")] {
        for rate in [50, 500].map(BitRate::mbps) {
            for rtt in [200, 1_000, 10_000, 50_000, 200_000].map(Duration::from_micros) {
                write!(table, "{name:>7} {:>11} {:>5.1} ms |", rate.to_string(), rtt.as_secs_f64() * 1e3)
                    .expect("a string takes anything");
                for kib in [64, 256, 1024, 8192] {
                    let seen = Seen::of(without, TokenBucket { rate, bucket: Bytes::kib(kib) }, rtt);
                    write!(table, " {:>6.1} {:>7.2} {:>5.1} |", seen.used * 100.0, seen.dropped, seen.queue * 1e3)
                        .expect("a string takes anything");
                    let least_used = if rtt < SHORT { LEAST_USED_SHORT } else { LEAST_USED };
                    if seen.used < least_used || without == Without::Waits && seen.dropped > MOST_DROPPED {
                        missed.push(format!("{name} {rate} {rtt:?} bucket of {kib} KiB: {:.3}, {:.2}", seen.used, seen.dropped));
                    }
                }
                table.push('\n');
            }
        }
    }
    println!("{table}");
    compare("start-buckets.txt", &table);
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

struct Seen {
    /// In the second half, of the bucket's rate.
    used: f64,
    /// Of what the bucket and its rate let pass in the first half.
    dropped: f64,
    /// Not exceeded in 95 % of the second half, seconds.
    queue: f64,
}

impl Seen {
    fn of(without: Without, bucket: TokenBucket, rtt: Duration) -> Self {
        let flows = vec![FlowPlan::bulk(ControllerChoice::Fair)];
        let (shaper, policer) = if without == Without::Waits { (Some(bucket), None) } else { (None, Some(bucket)) };
        let length = Duration::from_secs(8) + rtt * 40;
        let half = length / 2;
        let queue = bucket.rate.bytes_in(rtt).max(LEAST_QUEUE);
        let queue_bdp = queue.0 as f64 / WIRE.bytes_in(rtt).0 as f64;
        let outcome = Scenario { queue_bdp, shaper, policer, flows, length, ..Scenario::new(WIRE, rtt) }.run();
        let passed = bucket.bucket + bucket.rate.bytes_in(half);
        let dropped = PACKET * outcome.dropped_between(Duration::ZERO, half);
        Self {
            used: outcome.rate(0, half, length).ratio_to(bucket.rate).as_f64(),
            dropped: dropped.0 as f64 / passed.0 as f64,
            queue: outcome.queue_p95(half).as_secs_f64(),
        }
    }
}

/// Behind the bucket.
const WIRE: BitRate = BitRate::gbps(10);
/// As the token bucket filter of Linux is often given.
const LEAST_QUEUE: Bytes = Bytes(256 << 10);
const LEAST_USED: f64 = 0.85;
/// A product of bandwidth and delay is eight packets at 500 Mbit/s and such a round trip: what a policer without a queue drops of them is half, with any start.
const LEAST_USED_SHORT: f64 = 0.45;
const SHORT: Duration = Duration::from_millis(1);
/// What startup, which knows nothing of buckets either, drops in the worst of these rows.
const MOST_DROPPED: f64 = 2.75;

const HEADER: &str = "\
# A fair flow on a wire of 10 Gbit/s behind a token bucket, 8 s and 40 round trips. Without a token a packet waits, in a queue of a round
# trip or of 256 KiB, or is dropped. Used: in the second half, of the bucket's rate, in per cent. Dropped: in the first half, of what the
# bucket and its rate let pass. Queue: 95th percentile of the second half, ms.
# bucket of                                    64 KiB |               256 KiB |                 1 MiB |                 8 MiB |
# without        rate       rtt |   used dropped queue |   used dropped queue |   used dropped queue |   used dropped queue |
";
