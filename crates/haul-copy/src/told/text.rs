//! How a copy goes, in one line and its parts.

use std::time::Duration;

use haul_peer::is_stalled;
use haul_units::{Ratio, milliseconds};

use super::look::Look;
use crate::telemetry::PathView;

/// All that a log needs.
pub fn line(look: &Look) -> String {
    let counts = &look.counts;
    let more = if counts.complete { "" } else { "+" };
    let mut parts = Vec::new();
    parts.extend(stalled(&look.path));
    if counts.complete {
        parts.push(Ratio::new(counts.present().as_u64() as f64 / counts.found.as_u64().max(1) as f64).to_string());
    }
    if let Some(waiting) = waiting(look) {
        parts.push(waiting.to_owned());
        parts.extend(path_parts(&look.path));
        return parts.join("  ");
    }
    parts.push(format!("{} of {}{more}", counts.present(), counts.found));
    parts.push(look.rate.to_string());
    parts.push(format!("files {}/{}{more}", counts.present_files(), counts.found_files));
    parts.extend(time_left(look));
    parts.extend(path_parts(&look.path));
    parts.join("  ")
}

/// What is waited for before there is anything to count.
pub fn waiting(look: &Look) -> Option<&'static str> {
    let nothing = !look.counts.complete && look.counts.found_files == 0 && look.counts.found.as_u64() == 0;
    nothing.then_some(if look.path.rtt_us == 0 { "waiting for the other side's answer" } else { "finding out what to copy" })
}

/// How long nothing has come, and how long that may still be, where it has lasted.
pub fn stalled(path: &PathView) -> Option<String> {
    let rtt = Duration::from_micros(path.rtt_us);
    let left = path.timeout.saturating_sub(path.silence);
    is_stalled(path.silence, rtt)
        .then(|| format!("stalled for {}, waiting for {} more", short_duration(path.silence), short_duration(left)))
}

/// Time left, if that can be said.
pub fn time_left(look: &Look) -> Option<String> {
    look.left().map(|left| format!("{} left", short_duration(left)))
}

/// Round-trip time and loss, as far as they are known.
pub fn path_parts(path: &PathView) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend((path.rtt_us > 0).then(|| format!("RTT {}", milliseconds(path.rtt_us))));
    parts.extend(path.sender.and_then(|sender| sender.told_loss()).map(|loss| format!("loss {loss}")));
    parts
}

/// A time to wait: `8 s`, `3:05`, `2:10:00`.
pub fn short_duration(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m}:{s:02}"),
        (h, m, s) => format!("{h}:{m:02}:{s:02}"),
    }
}

#[cfg(test)]
mod tests {
    use haul_units::{BitRate, Bytes};

    use super::*;
    use crate::{Counts, PathReport};

    #[test]
    fn a_line_has_all_a_log_needs() {
        let counts = Counts {
            found_files: 12,
            found: Bytes::gib(4),
            complete: true,
            arrived_files: 3,
            arrived: Bytes::gib(1),
            ..Counts::default()
        };
        let sender = PathReport { rtt_us: 150_200, loss: 0.001, ..PathReport::default() };
        let path = PathView { rtt_us: 150_200, sender: Some(sender), ..PathView::default() };
        let mut look = Look { counts, path, rate: BitRate::gbps(1), elapsed: Duration::from_secs(9), active: None };
        assert_eq!(line(&look), "25.0 %  1.00 GiB of 4.00 GiB  1.00 Gbit/s  files 3/12  26 s left  RTT 150 ms  loss 0.10 %");
        look.counts.complete = false;
        look.path.sender = None;
        assert_eq!(line(&look), "1.00 GiB of 4.00 GiB+  1.00 Gbit/s  files 3/12+  RTT 150 ms");
        look.path = PathView { silence: Duration::from_secs(30), timeout: Duration::from_secs(90), ..look.path };
        assert_eq!(
            line(&look),
            "stalled for 30 s, waiting for 1:00 more  1.00 GiB of 4.00 GiB+  1.00 Gbit/s  files 3/12+  RTT 150 ms"
        );
    }

    #[test]
    fn before_the_first_answer_nothing_is_made_up() {
        // What a transport reports that has sent packets and heard nothing.
        let sender = PathReport { loss: 1.0, sent_pkts: 10, lost_pkts: 10, ..PathReport::default() };
        let path = PathView { sender: Some(sender), ..PathView::default() };
        let mut look =
            Look { counts: Counts::default(), path, rate: BitRate::ZERO, elapsed: Duration::from_secs(5), active: None };
        assert_eq!(line(&look), "waiting for the other side's answer");
        look.path.rtt_us = 1000;
        look.path.sender = None;
        assert_eq!(line(&look), "finding out what to copy  RTT 1.00 ms");
    }

    #[test]
    fn durations_and_times() {
        assert_eq!(short_duration(Duration::from_millis(7_100)), "8 s");
        assert_eq!(short_duration(Duration::from_secs(185)), "3:05");
        assert_eq!(short_duration(Duration::from_secs(7800)), "2:10:00");
    }
}
