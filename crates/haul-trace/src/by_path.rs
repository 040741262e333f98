//! What each of several paths did over time.

use std::collections::BTreeSet;

use haul_plot::Line;

use crate::{Connection, PathSample, Sample};

impl Connection {
    /// A line for each path, of what arrives by it in Mbit/s, and of its round trip in ms; none where it has one path. `most`: points of a line.
    pub(crate) fn lines_by_path(&self, most: usize) -> [Vec<Line>; 2] {
        let paths: BTreeSet<u8> = self.samples.iter().flat_map(|sample| &sample.by_path).map(|path| path.path).collect();
        // Who receives sees what comes.
        let is_receiver = self.last().received_bytes > self.last().acknowledged_bytes;
        let bytes = |path: &PathSample| if is_receiver { path.received_bytes } else { path.acknowledged_bytes };
        let begin = self.first().t;
        let each = self.samples.len().div_ceil(most).max(1);
        let [mut rates, mut rtts] = [Vec::new(), Vec::new()];
        for number in paths {
            let seen: Vec<Seen> = self.samples.iter().filter_map(|sample| Seen::of(sample, number, &bytes)).collect();
            let ends: Vec<&Seen> = seen.iter().step_by(each).collect();
            let steps: Vec<_> = ends.windows(2).map(|pair| (pair[0], pair[1])).filter(|(before, now)| now.t > before.t).collect();
            if steps.is_empty() {
                continue;
            }
            let line = |value: fn(&Seen, &Seen) -> f64| {
                let points = steps.iter().map(|(before, now)| (now.t - begin, value(before, now)));
                Line::through(format!("path {number}"), points).plain()
            };
            rates.push(line(|before, now| now.bytes.saturating_sub(before.bytes) as f64 * 8e-6 / (now.t - before.t)));
            rtts.push(line(|_, now| now.rtt_ms));
        }
        [rates, rtts]
    }
}

/// A path in one sample.
struct Seen {
    t: f64,
    bytes: u64,
    rtt_ms: f64,
}

impl Seen {
    fn of(sample: &Sample, number: u8, bytes: &dyn Fn(&PathSample) -> u64) -> Option<Self> {
        let path = sample.by_path.iter().find(|path| path.path == number)?;
        Some(Self { t: sample.t, bytes: bytes(path), rtt_ms: path.rtt_s * 1e3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample each 20 ms: 80 Mbit/s at 20 ms by the first path, and from the second second on 20 Mbit/s at 200 ms by another.
    fn connection() -> Connection {
        let path = |path, bytes, rtt_s| PathSample { path, acknowledged_bytes: bytes, rtt_s, ..PathSample::default() };
        let sample = |n: u64| Sample {
            t: 3.0 + n as f64 * 0.02,
            id: "2a".into(),
            acknowledged_bytes: 1,
            by_path: if n < 50 { Vec::new() } else { vec![path(0, n * 200_000, 0.02), path(1, (n - 50) * 50_000, 0.2)] },
            ..Sample::default()
        };
        Connection { id: "2a".into(), samples: (0..200).map(sample).collect() }
    }

    #[test]
    fn each_path_has_its_own_rate_and_round_trip() {
        let [rates, rtts] = connection().lines_by_path(1000);
        assert_eq!(rates.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["path 0", "path 1"]);
        assert!(rates[0].points.iter().all(|point| (point.value.mean - 80.0).abs() < 0.01), "{:?}", rates[0].points);
        assert!(rates[1].points.iter().all(|point| (point.value.mean - 20.0).abs() < 0.01));
        assert!(rates[1].points[0].x >= 1.0, "it joined after a second");
        assert!(rtts[0].points.iter().all(|point| (point.value.mean - 20.0).abs() < 1e-6));
        assert!(rtts[1].points.iter().all(|point| (point.value.mean - 200.0).abs() < 1e-6));
    }

    #[test]
    fn one_path_has_no_lines_of_its_own() {
        let mut one = connection();
        one.samples.iter_mut().for_each(|sample| sample.by_path.clear());
        assert!(one.lines_by_path(1000).iter().all(Vec::is_empty));
        let svg = one.figure().svg().expect("sound data");
        assert!(!svg.contains("by path"));
        assert!(connection().figure().svg().expect("sound data").contains("rate by path"));
    }
}
