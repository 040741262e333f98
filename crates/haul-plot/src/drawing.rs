//! What a picture consists of: a list of shapes, which is written as SVG and filled into pixels alike.

/// Shapes, the first at the bottom.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub shapes: Vec<Shape>,
}

/// A point, in pixels from the upper left corner; and a size.
pub(super) type Place = (f64, f64);

/// Something to draw.
#[derive(Debug)]
pub(super) enum Shape {
    /// Through points, not closed.
    Line {
        points: Vec<Place>,
        stroke: Stroke,
    },
    /// Closed and filled.
    Polygon {
        points: Vec<Place>,
        fill: &'static str,
    },
    Rect {
        at: Place,
        size: Place,
        fill: &'static str,
        /// What it is, for who points at it; empty: nothing that needs saying.
        title: String,
    },
    /// With an edge.
    Circle {
        at: Place,
        radius: f64,
        fill: &'static str,
        stroke: Stroke,
    },
    Text {
        at: Place,
        text: String,
        style: TextStyle,
    },
    /// Seen within a rectangle only.
    Clipped {
        at: Place,
        size: Place,
        shapes: Vec<Shape>,
    },
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub colour: &'static str,
    pub width: f64,
    /// Lengths of dashes and gaps in turn; empty: none.
    pub dash: &'static [f32],
}

/// How a text stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextStyle {
    pub px: f64,
    pub bold: bool,
    pub colour: &'static str,
    pub anchor: Anchor,
    /// Upwards, around its place.
    pub upright: bool,
}

/// Which part of a text is at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Stroke {
    pub const fn plain(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dash: &[] }
    }
}

impl Drawing {
    pub fn line(&mut self, from: Place, to: Place, stroke: Stroke) {
        self.shapes.push(Shape::Line { points: vec![from, to], stroke });
    }

    pub fn polyline(&mut self, points: Vec<Place>, stroke: Stroke) {
        self.shapes.push(Shape::Line { points, stroke });
    }

    pub fn polygon(&mut self, points: &[Place], fill: &'static str) {
        self.shapes.push(Shape::Polygon { points: points.to_vec(), fill });
    }

    pub fn rect(&mut self, at: Place, size: Place, fill: &'static str) {
        self.titled_rect(at, size, fill, "");
    }

    pub fn titled_rect(&mut self, at: Place, size: Place, fill: &'static str, title: &str) {
        self.shapes.push(Shape::Rect { at, size, fill, title: title.to_owned() });
    }

    pub fn circle(&mut self, at: Place, radius: f64, fill: &'static str, edge: &'static str) {
        self.shapes.push(Shape::Circle { at, radius, fill, stroke: Stroke::plain(edge, 1.5) });
    }

    pub fn text(&mut self, at: Place, text: &str, style: TextStyle) {
        self.shapes.push(Shape::Text { at, text: text.to_owned(), style });
    }

    /// What `draw` adds is seen within this rectangle only.
    pub fn clipped(&mut self, at: Place, size: Place, draw: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        draw(&mut inner);
        self.shapes.push(Shape::Clipped { at, size, shapes: inner.shapes });
    }
}
