//! Where a chart's data stand.

/// The place between the axes.
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    /// Across from the left, as a part of the width.
    pub fn x(&self, part: f64) -> f64 {
        self.left + part * self.width
    }

    /// Up from the bottom, as a part of the height.
    pub fn y(&self, part: f64) -> f64 {
        self.top + (1.0 - part) * self.height
    }
}
