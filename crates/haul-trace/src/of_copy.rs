//! A connection that carried a copy: what arrived, with the parts of the copy behind it.

use haul_plot::{Axis, Chart, Figure, Line, Span};

use crate::{Connection, Sample};

/// A part of a copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// What is done in it.
    pub name: &'static str,
    /// Where it begins, in seconds since the command was given.
    pub from: f64,
    /// Where it ends.
    pub until: f64,
}

impl Connection {
    /// The picture of a copy: what arrived, with its parts, from the command on; then what this side sent ([`figure`](Self::figure)). `begun`: when the command was given, on the clock of the trace.
    pub fn figure_of_copy(&self, begun: f64, parts: &[Part]) -> Figure {
        let mut figure = self.figure();
        let spans = parts.iter().map(|part| Span { name: part.name.into(), from: part.from, to: part.until });
        let end = parts.iter().map(|part| part.until).fold(self.last().t - begun, f64::max);
        let line = Line::through("arrives", self.arrivals(begun)).plain();
        let time = Axis::linear("time since the command", "s").range(0.0, end);
        figure.charts.insert(0, Chart::lines(time, Axis::linear("rate of the copy", "Mbit/s"), vec![line]).spans(spans));
        figure
    }

    /// Seconds since then, and the rate at which bytes of this connection arrived, either way.
    fn arrivals(&self, begun: f64) -> Vec<(f64, f64)> {
        let is_receiver = self.last().received_bytes > self.last().acknowledged_bytes;
        let bytes = |sample: &Sample| if is_receiver { sample.received_bytes } else { sample.acknowledged_bytes };
        let ends: Vec<&Sample> = self.samples.iter().step_by(self.samples.len().div_ceil(MOST_POINTS).max(1)).collect();
        let steps = ends.windows(2).filter(|pair| pair[1].t > pair[0].t);
        let rate = |pair: &[&Sample]| bytes(pair[1]).saturating_sub(bytes(pair[0])) as f64 * 8e-6 / (pair[1].t - pair[0].t);
        let rates = steps.map(|pair| ((pair[1].t - begun).max(0.0), rate(pair)));
        // Something to draw of what was over at once.
        [(0.0, 0.0)].into_iter().chain(rates).collect()
    }
}

/// Two for each pixel of a chart, at most.
const MOST_POINTS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample each 20 ms of a connection that is there 1 s after the command and receives 100 Mbit/s.
    fn connection() -> Connection {
        let sample =
            |n: u64| Sample { t: 6.0 + n as f64 * 0.02, id: "2a".into(), received_bytes: n * 250_000, ..Sample::default() };
        Connection { id: "2a".into(), samples: (0..200).map(sample).collect() }
    }

    #[test]
    fn what_arrived_stands_at_its_time_since_the_command() {
        let arrivals = connection().arrivals(5.0);
        assert!(arrivals[0] == (0.0, 0.0) && (arrivals[1].0 - 1.02).abs() < 1e-9, "{:?}", &arrivals[..2]);
        assert!(arrivals[1..].iter().all(|(_, mbps)| (mbps - 100.0).abs() < 0.01), "{arrivals:?}");
    }

    #[test]
    fn the_parts_are_written_behind_it() {
        let parts = [Part { name: "login", from: 0.0, until: 1.0 }, Part { name: "bulk", from: 1.0, until: 4.98 }];
        let svg = connection().figure_of_copy(5.0, &parts).svg().expect("sound data");
        for word in ["login", "bulk", "time since the command [s]", "rate of the copy [Mbit/s]", "Connection 2a"] {
            assert!(svg.contains(word), "{word}");
        }
        let short = Connection { id: "2a".into(), samples: vec![Sample::default()] };
        assert!(short.figure_of_copy(0.0, &parts).svg().is_ok(), "one sample alone");
    }
}
