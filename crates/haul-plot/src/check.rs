//! What cannot be drawn is said by name.

use super::chart::{Axis, Chart, Data, Figure, Scale};

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlotError {
    /// Nothing to draw.
    #[error("the chart `{chart}` has no data: nothing was measured")]
    NoData {
        /// Which chart.
        chart: String,
    },
    /// Not a number, or one without end.
    #[error("the chart `{chart}` cannot show {value} of `{series}`: only finite numbers have a place")]
    NotFinite {
        /// Which chart.
        chart: String,
        /// Of which series.
        series: String,
        /// What it was.
        value: f64,
    },
    /// Zero or less, where there are powers of ten only.
    #[error("the chart `{chart}` cannot show {value} of `{series}` on the logarithmic axis `{axis}`: use a linear one")]
    NotPositive {
        /// Which chart.
        chart: String,
        /// Of which series.
        series: String,
        /// On which axis.
        axis: String,
        /// What it was.
        value: f64,
    },
    /// An axis that ends where it begins, or before.
    #[error("the axis `{axis}` of the chart `{chart}` goes from {from} to {to}: the end must lie above the beginning")]
    EmptyAxis {
        /// Which chart.
        chart: String,
        /// Which axis.
        axis: String,
        /// Its beginning.
        from: f64,
        /// Its end.
        to: f64,
    },
    /// The picture could not be made of its SVG.
    #[error("the picture cannot be made: {0}")]
    Raster(String),
}

/// Whether all charts can be drawn.
pub(super) fn check(figure: &Figure) -> Result<(), PlotError> {
    if figure.charts.is_empty() {
        return Err(PlotError::NoData { chart: figure.title.clone() });
    }
    figure.charts.iter().try_for_each(|chart| check_chart(&name(figure, chart), chart))
}

/// What a person calls a chart.
fn name(figure: &Figure, chart: &Chart) -> String {
    if chart.title.is_empty() { figure.title.clone() } else { format!("{}: {}", figure.title, chart.title) }
}

fn check_chart(name: &str, chart: &Chart) -> Result<(), PlotError> {
    let values = chart.data.values();
    if values.is_empty() {
        return Err(PlotError::NoData { chart: name.to_owned() });
    }
    let limits = chart.limits.iter().map(|limit| (limit.name.as_str(), limit.at));
    check_axis(name, &chart.y, values.into_iter().chain(limits))?;
    if matches!(chart.data, Data::Lines(_)) {
        let spans = chart.spans.iter().flat_map(|span| [(span.name.as_str(), span.from), (span.name.as_str(), span.to)]);
        check_axis(name, &chart.x, chart.data.places().into_iter().chain(spans))?;
    }
    Ok(())
}

fn check_axis<'a>(chart: &str, axis: &Axis, values: impl Iterator<Item = (&'a str, f64)>) -> Result<(), PlotError> {
    let ends = [("its beginning", axis.from), ("its end", axis.to)];
    let ends = ends.into_iter().filter_map(|(name, end)| Some((name, end?)));
    let mut with_ends = values.chain(ends);
    let wrong = with_ends.find_map(|(series, value)| {
        let (chart, series) = (chart.to_owned(), series.to_owned());
        let least = match axis.scale {
            Scale::Linear => f64::NEG_INFINITY,
            Scale::Log => f64::MIN_POSITIVE,
            Scale::LogAndZero => 0.0,
        };
        if !value.is_finite() {
            return Some(PlotError::NotFinite { chart, series, value });
        }
        (value < least).then(|| PlotError::NotPositive { chart, series, axis: axis.label.clone(), value })
    });
    match (wrong, axis.from, axis.to) {
        (Some(error), ..) => Err(error),
        (None, Some(from), Some(to)) if from >= to => {
            Err(PlotError::EmptyAxis { chart: chart.to_owned(), axis: axis.label.clone(), from, to })
        }
        _ => Ok(()),
    }
}
