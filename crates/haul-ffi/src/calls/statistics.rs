//! What a connection measures, as C has it.

use std::ffi::c_int;
use std::time::Duration;

use haul::Stats;

use super::connection;
use crate::{border, pointers};

macro_rules! statistics {
    ($($field:ident: $value:expr;)*) => {
        /// `struct haul_statistics`, where each field is explained.
        #[derive(Debug, Clone, Copy, Default)]
        #[repr(C)]
        #[allow(missing_docs, reason = "haul.h has the explanations")]
        pub struct HaulStatistics {
            pub size: u64,
            $(pub $field: u64,)*
        }

        impl From<&Stats> for HaulStatistics {
            fn from(stats: &Stats) -> Self {
                $(let $field = { let of: fn(&Stats) -> u64 = $value; of(stats) };)*
                Self { size: size_of::<Self>() as u64, $($field),* }
            }
        }
    };
}

statistics! {
    rtt_us: |stats| micros(stats.rtt);
    min_rtt_us: |stats| micros(stats.min_rtt);
    queue_delay_us: |stats| micros(stats.queue_delay);
    delivery_rate_bps: |stats| stats.delivery_rate.as_bps();
    pacing_rate_bps: |stats| stats.pacing_rate.as_bps();
    window_bytes: |stats| stats.window.as_u64();
    in_flight_bytes: |stats| stats.in_flight.as_u64();
    packet_bytes: |stats| stats.packet_size.as_u64();
    sent_pkts: |stats| stats.sent_pkts;
    received_pkts: |stats| stats.received_pkts;
    duplicate_pkts: |stats| stats.duplicate_pkts;
    lost_pkts: |stats| stats.lost_pkts;
    spurious_pkts: |stats| stats.spurious_pkts;
    ecn_marked_pkts: |stats| stats.ecn_marked_pkts;
    retransmitted_bytes: |stats| stats.retransmitted.as_u64();
    sent_bytes: |stats| stats.sent.as_u64();
    acknowledged_bytes: |stats| stats.acknowledged.as_u64();
    received_bytes: |stats| stats.received.as_u64();
    received_stream_bytes: |stats| stats.received_stream.as_u64();
    loss_ppm: |stats| (stats.loss.as_f64() * 1e6).round() as u64;
    buffered_bytes: |stats| stats.buffered.as_u64();
    held_bytes: |stats| stats.held.as_u64();
    streams: |stats| stats.streams as u64;
    paths: |stats| stats.paths as u64;
    silence_us: |stats| micros(stats.silence);
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_stats(connection: i64, statistics: *mut HaulStatistics) -> c_int {
    border::done(|| {
        let stats = connection::with(connection, |_, connection| Ok(connection.made()?.stats()))?;
        // SAFETY: C's promise: null, or a structure that begins with its size.
        unsafe { pointers::write_sized(&HaulStatistics::from(&stats), statistics) }
    })
}
