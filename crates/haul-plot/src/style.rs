//! Colours, markers and sizes.

/// How a series looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    pub colour: &'static str,
    pub marker: Marker,
    /// Lengths of dashes and gaps in turn.
    pub dash: &'static [f32],
}

/// What stands at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    TriangleDown,
    Plus,
    Ring,
}

/// The look of a number; after eight the dashes change.
pub(super) fn look(number: usize) -> Look {
    let (colour, marker) = LOOKS[number % LOOKS.len()];
    Look { colour, marker, dash: DASHES[number / LOOKS.len() % DASHES.len()] }
}

/// Okabe and Ito, "Color Universal Design" (2008): told apart by people with any kind of colour vision; yellow is too pale for lines.
const LOOKS: [(&str, Marker); 8] = [
    ("#d55e00", Marker::Circle),
    ("#0072b2", Marker::Square),
    ("#009e73", Marker::Triangle),
    ("#cc79a7", Marker::Diamond),
    ("#e69f00", Marker::TriangleDown),
    ("#56b4e9", Marker::Cross),
    ("#000000", Marker::Plus),
    ("#999999", Marker::Ring),
];
const DASHES: [&[f32]; 3] = [&[], &[7.0, 4.0], &[2.0, 3.0]];

pub(super) const INK: &str = "#222222";
pub(super) const FAINT: &str = "#666666";
pub(super) const GRID: &str = "#dddddd";
pub(super) const FINE_GRID: &str = "#f0f0f0";
pub(super) const PAPER: &str = "#ffffff";
/// Behind stretches of time, in turn: so pale that lines of any colour stand out.
pub(super) const TINTS: [&str; 6] = ["#f3f6fb", "#fdf3e7", "#eef7f0", "#fbeff4", "#f5f5f5", "#eef6f8"];

/// A figure of one chart; those of several are smaller.
pub(super) const SINGLE: (f64, f64) = (860.0, 460.0);
pub(super) const PANEL: (f64, f64) = (560.0, 340.0);

pub(super) const TITLE_PX: f64 = 19.0;
pub(super) const CHART_TITLE_PX: f64 = 14.0;
pub(super) const TEXT_PX: f64 = 13.0;
pub(super) const TICK_PX: f64 = 12.0;
