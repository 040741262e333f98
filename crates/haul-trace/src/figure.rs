//! A connection over time: rate, delay, bytes under way, loss, with its phases behind them.

use haul_plot::{Axis, Chart, Figure, Line, Span};

use crate::{Connection, Sample};

impl Connection {
    /// The picture of what it sent.
    pub fn figure(&self) -> Figure {
        let moments = self.moments();
        let chart = |y: Axis, lines: Vec<Line>| {
            let spans = self.phases().into_iter().map(|(from, to, name)| Span { name: name.into(), from, to });
            Chart::lines(Axis::linear("time", "s").range(0.0, self.seconds().max(LEAST_S)), y, lines).spans(spans)
        };
        let line = |name: &str, value: fn(&Moment) -> f64| Line::through(name, moments.iter().map(|m| (m.at, value(m)))).plain();
        let last = self.last();
        let [path_rates, path_rtts] = self.lines_by_path(MOST_POINTS);
        let several = [("rate by path", "Mbit/s", path_rates), ("delay by path", "ms", path_rtts)];
        let several = several.into_iter().filter(|(.., lines)| !lines.is_empty());
        let several = several.map(|(name, unit, lines)| chart(Axis::linear(name, unit), lines));
        Figure {
            title: format!("Connection {}", self.id),
            subtitle: format!(
                "{}; round trip at least {:.2} ms; {} packets sent, {} lost",
                last.algorithm,
                last.min_rtt_s * 1e3,
                last.sent_pkts,
                last.lost_pkts
            ),
            charts: vec![
                chart(
                    Axis::linear("rate", "Mbit/s"),
                    vec![line("arrives", |m| m.arrived_mbps), line("pacing", |m| m.pacing_mbps)],
                ),
                chart(Axis::linear("delay", "ms"), vec![line("round trip", |m| m.rtt_ms), line("queue", |m| m.queue_ms)]),
                chart(Axis::linear("bytes", "MB"), vec![line("in flight", |m| m.in_flight_mb), line("window", |m| m.window_mb)]),
                chart(Axis::linear("lost", "%"), vec![line("loss", |m| m.lost_percent)]),
            ]
            .into_iter()
            .chain(several)
            .collect(),
            columns: 1,
        }
    }

    /// Its samples as means over stretches, of which a picture shows no more.
    fn moments(&self) -> Vec<Moment> {
        let begin = self.first().t;
        let each = self.samples.len().div_ceil(MOST_POINTS).max(1);
        let mut before = self.first();
        let mut moments = Vec::new();
        for part in self.samples.get(1..).unwrap_or_default().chunks(each) {
            if let Some(moment) = Moment::of(before, part, begin) {
                moments.push(moment);
            }
            before = part.last().unwrap_or(before);
        }
        // Something to draw of a connection that was over at once.
        if moments.is_empty() {
            moments.push(Moment::default());
        }
        moments
    }
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Moment {
    at: f64,
    arrived_mbps: f64,
    pacing_mbps: f64,
    rtt_ms: f64,
    queue_ms: f64,
    in_flight_mb: f64,
    window_mb: f64,
    lost_percent: f64,
}

impl Moment {
    /// Nothing where no time has passed.
    fn of(before: &Sample, part: &[Sample], begin: f64) -> Option<Self> {
        let last = part.last()?;
        let passed = last.t - before.t;
        if passed <= 0.0 {
            return None;
        }
        let mean = |value: fn(&Sample) -> f64| part.iter().map(value).sum::<f64>() / part.len() as f64;
        let sent = last.sent_pkts.saturating_sub(before.sent_pkts);
        let lost = last.lost_pkts.saturating_sub(before.lost_pkts);
        Some(Self {
            at: last.t - begin,
            arrived_mbps: last.acknowledged_bytes.saturating_sub(before.acknowledged_bytes) as f64 * 8.0 / passed / 1e6,
            // Before anything is known it is without bound.
            pacing_mbps: mean(|s| s.pacing_bps as f64 / 1e6).min(MOST_MBPS),
            rtt_ms: mean(|s| s.rtt_s * 1e3),
            queue_ms: mean(|s| s.queue_delay_s * 1e3),
            in_flight_mb: mean(|s| s.in_flight_bytes as f64 / 1e6),
            window_mb: mean(|s| s.window_bytes as f64 / 1e6),
            // Packets of a stretch without any sent may be found lost in it.
            lost_percent: lost as f64 * 100.0 / sent.max(lost).max(1) as f64,
        })
    }
}

/// Two for each pixel of a chart, at most.
const MOST_POINTS: usize = 1_000;
/// An axis has a length.
const LEAST_S: f64 = 0.02;
/// 100 Gbit/s.
const MOST_MBPS: f64 = 100_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample each 20 ms: 100 Mbit/s, and every tenth packet lost in the second half.
    fn connection(samples: u32) -> Connection {
        let sample = |n: u32| Sample {
            t: 5.0 + f64::from(n) * 0.02,
            id: "2a".into(),
            phase: if n < samples / 2 { "startup" } else { "cruise" }.into(),
            pacing_bps: if n == 0 { u64::MAX } else { 100_000_000 },
            acknowledged_bytes: u64::from(n) * 250_000,
            sent_pkts: u64::from(n) * 200,
            lost_pkts: u64::from(n.saturating_sub(samples / 2)) * 20,
            rtt_s: 0.05,
            ..Sample::default()
        };
        Connection { id: "2a".into(), samples: (0..samples).map(sample).collect() }
    }

    #[test]
    fn rates_are_of_what_arrived_and_loss_is_of_what_was_sent() {
        let moments = connection(101).moments();
        assert_eq!(moments.len(), 100);
        assert!(moments.iter().all(|m| (m.arrived_mbps - 100.0).abs() < 0.01), "{moments:?}");
        assert!(moments[10].lost_percent == 0.0 && (moments[80].lost_percent - 10.0).abs() < 0.01);
    }

    #[test]
    fn a_long_trace_is_thinned_out_and_keeps_its_sums() {
        let moments = connection(100_001).moments();
        assert!(moments.len() <= MOST_POINTS, "{}", moments.len());
        assert!(moments.iter().all(|m| (m.arrived_mbps - 100.0).abs() < 0.01));
        assert!((moments.last().map_or(0.0, |m| m.at) - 2000.0).abs() < 0.01);
    }

    #[test]
    fn it_is_a_picture_with_its_phases() {
        let svg = connection(200).figure().svg().expect("sound data");
        for word in ["startup", "cruise", "rate [Mbit/s]", "delay [ms]", "Connection 2a"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(connection(1).figure().svg().is_ok(), "one sample alone");
    }
}
