//! Which name looks how, in all charts of a figure.

use super::chart::{Data, Figure};
use super::style::{Look, look};

/// Which name looks how.
pub(super) struct Looks<'a> {
    pub(super) by_name: Vec<(&'a str, Look)>,
    pub(super) key: Key,
}

/// What stands before a name in the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Box,
    Line,
    LineAndMarker,
}

impl<'a> Looks<'a> {
    /// Those who ask for a look get it; the others get what is free, in order.
    pub(super) fn of(figure: &'a Figure) -> Self {
        let mut names: Vec<(&str, Option<usize>)> = Vec::new();
        for (name, wanted) in figure.charts.iter().flat_map(|chart| chart.data.names()) {
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, wanted));
            }
        }
        let taken: Vec<usize> = names.iter().filter_map(|(_, wanted)| *wanted).collect();
        let mut free = (0..).filter(|number| !taken.contains(number));
        let by_name = names.iter().map(|(name, wanted)| (*name, look(wanted.or_else(|| free.next()).unwrap_or(0)))).collect();
        let markers = |data: &Data| matches!(data, Data::Lines(lines) if lines.iter().any(|line| line.markers));
        let key = match figure.charts.iter().map(|chart| &chart.data).collect::<Vec<_>>().as_slice() {
            all if all.iter().all(|data| matches!(data, Data::Bars(_))) => Key::Box,
            all if all.iter().any(|data| markers(data)) => Key::LineAndMarker,
            _ => Key::Line,
        };
        Self { by_name, key }
    }

    pub(super) fn get(&self, name: &str) -> Look {
        self.by_name.iter().find(|(known, _)| *known == name).map_or_else(|| look(0), |(_, look)| *look)
    }
}
