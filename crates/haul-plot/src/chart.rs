//! What a figure shows.

/// Charts under one title, which share their legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it shows, in a few words.
    pub title: String,
    /// Under which conditions; may be empty.
    pub subtitle: String,
    /// From left to right and from top to bottom.
    pub charts: Vec<Chart>,
    /// How many stand side by side.
    pub columns: usize,
}

/// One pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What is special about it among the charts of its figure; empty where it is the only one.
    pub title: String,
    /// The horizontal axis; of bars only its label and unit count.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What lies between them.
    pub data: Data,
    /// Values to compare with, drawn across.
    pub limits: Vec<Limit>,
    /// Stretches of the horizontal axis with a name, behind the lines.
    pub spans: Vec<Span>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows: `throughput`.
    pub label: String,
    /// In what: `Mbit/s`. Empty for a pure number.
    pub unit: String,
    /// How values become places.
    pub scale: Scale,
    /// Where it begins, if the data are not to decide.
    pub from: Option<f64>,
    /// Where it ends, if the data are not to decide.
    pub to: Option<f64>,
}

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly; begins at zero unless the axis says otherwise.
    Linear,
    /// By powers of ten; all values are positive.
    Log,
    /// By powers of ten, with a place for zero before them: losses of 0, 0.01 %, 0.1 %, ..
    LogAndZero,
}

/// What a chart shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Values over values.
    Lines(Vec<Line>),
    /// Values of things that have no order.
    Bars(Bars),
}

/// A line through points.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the legend calls it; lines of one name look alike in all charts of a figure.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
    /// Whether each point gets a marker: not where there are hundreds.
    pub markers: bool,
    /// Which look, so that a thing looks the same in several figures; none: the next free one.
    pub look: Option<usize>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its place.
    pub x: f64,
    /// Its value.
    pub value: Value,
}

/// A value and how far the repetitions of its measurement went apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The mean.
    pub mean: f64,
    /// The smallest and the largest.
    pub spread: Option<(f64, f64)>,
}

/// Groups of bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Names of the groups, from left to right.
    pub groups: Vec<String>,
    /// One bar in each group.
    pub series: Vec<BarSeries>,
}

/// A bar in each group.
#[derive(Debug, Clone, PartialEq)]
pub struct BarSeries {
    /// What the legend calls it.
    pub name: String,
    /// Group by group; none where there is nothing to show.
    pub values: Vec<Option<Value>>,
    /// Which look, as of a [`Line`].
    pub look: Option<usize>,
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// What it is.
    pub name: String,
    /// Its place on the vertical axis.
    pub at: f64,
}

/// A stretch of the horizontal axis with a name, such as a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Which; the same name has the same tint all along. Written where there is room for it.
    pub name: String,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

impl Figure {
    /// One chart.
    pub fn single(title: impl Into<String>, subtitle: impl Into<String>, chart: Chart) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), charts: vec![chart], columns: 1 }
    }
}

impl Chart {
    /// Lines.
    pub fn lines(x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self { title: String::new(), x, y, data: Data::Lines(lines), limits: Vec::new(), spans: Vec::new() }
    }

    /// Bars.
    pub fn bars(groups_label: impl Into<String>, y: Axis, bars: Bars) -> Self {
        Self {
            title: String::new(),
            x: Axis::linear(groups_label, ""),
            y,
            data: Data::Bars(bars),
            limits: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// With a title.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// With a value to compare with.
    pub fn limit(mut self, name: impl Into<String>, at: f64) -> Self {
        self.limits.push(Limit { name: name.into(), at });
        self
    }

    /// With stretches of the horizontal axis that have a name.
    pub fn spans(mut self, spans: impl IntoIterator<Item = Span>) -> Self {
        self.spans.extend(spans);
        self
    }
}

impl Axis {
    /// From zero, evenly.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear, from: None, to: None }
    }

    /// By powers of ten.
    pub fn log(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label, unit) }
    }

    /// By powers of ten, with a place for zero.
    pub fn log_and_zero(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::LogAndZero, ..Self::linear(label, unit) }
    }

    /// From here to there, whatever the data are.
    pub fn range(self, from: f64, to: f64) -> Self {
        Self { from: Some(from), to: Some(to), ..self }
    }

    /// Label and unit.
    pub(super) fn caption(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} [{}]", self.label, self.unit) }
    }
}

impl Line {
    /// Through points without spread.
    pub fn through(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let point = |(x, mean)| Point { x, value: Value { mean, spread: None } };
        Self { name: name.into(), points: points.into_iter().map(point).collect(), markers: true, look: None }
    }

    /// Without markers: for many points.
    pub fn plain(self) -> Self {
        Self { markers: false, ..self }
    }

    /// With a look of its own choice.
    pub fn look(self, look: usize) -> Self {
        Self { look: Some(look), ..self }
    }
}

impl Value {
    /// The mean of measurements and their spread; nothing of none.
    pub fn of(measured: impl IntoIterator<Item = f64>) -> Option<Self> {
        let measured: Vec<f64> = measured.into_iter().collect();
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        let low = measured.iter().copied().fold(f64::INFINITY, f64::min);
        let high = measured.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (!measured.is_empty()).then_some(Self { mean, spread: (measured.len() > 1).then_some((low, high)) })
    }

    /// Everything that must be seen of it.
    pub(super) fn extent(&self) -> impl Iterator<Item = f64> {
        [Some(self.mean), self.spread.map(|spread| spread.0), self.spread.map(|spread| spread.1)].into_iter().flatten()
    }
}

impl Data {
    /// Name and wanted look of each series.
    pub(super) fn names(&self) -> Vec<(&str, Option<usize>)> {
        match self {
            Self::Lines(lines) => lines.iter().map(|line| (line.name.as_str(), line.look)).collect(),
            Self::Bars(bars) => bars.series.iter().map(|series| (series.name.as_str(), series.look)).collect(),
        }
    }

    /// Every value on the vertical axis, with the name of its series.
    pub(super) fn values(&self) -> Vec<(&str, f64)> {
        let values: Vec<(&str, &Value)> = match self {
            Self::Lines(lines) => {
                lines.iter().flat_map(|line| line.points.iter().map(|point| (line.name.as_str(), &point.value))).collect()
            }
            Self::Bars(bars) => bars
                .series
                .iter()
                .flat_map(|series| series.values.iter().flatten().map(|value| (series.name.as_str(), value)))
                .collect(),
        };
        values.into_iter().flat_map(|(name, value)| value.extent().map(move |value| (name, value))).collect()
    }

    /// Every place on the horizontal axis, with the name of its series.
    pub(super) fn places(&self) -> Vec<(&str, f64)> {
        match self {
            Self::Lines(lines) => {
                lines.iter().flat_map(|line| line.points.iter().map(|point| (line.name.as_str(), point.x))).collect()
            }
            Self::Bars(_) => Vec::new(),
        }
    }
}
