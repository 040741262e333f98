//! Lines, their markers and their error bars.

use super::area::Area;
use super::chart::Line;
use super::drawing::{Drawing, Stroke};
use super::looks::Looks;
use super::scale::Ruler;
use super::style::{Look, Marker, PAPER};

/// Draws them between the axes; the first name lies on top.
pub(super) fn draw(drawing: &mut Drawing, area: &Area, lines: &[Line], (x, y): (&Ruler, &Ruler), looks: &Looks<'_>) {
    // Markers at the edge are whole.
    let edge = MARKER_PX + 2.0;
    drawing.clipped((area.left - edge, area.top - edge), (area.width + 2.0 * edge, area.height + 2.0 * edge), |drawing| {
        for (number, line) in lines.iter().enumerate().rev() {
            let mut look = looks.get(&line.name);
            if lines[number + 1..].iter().any(|below| below.points == line.points) {
                look.dash = SEE_THROUGH;
            }
            let place = |at: f64, value: f64| (area.x(x.place(at)), area.y(y.place(value)));
            let points: Vec<(f64, f64)> = line.points.iter().map(|point| place(point.x, point.value.mean)).collect();
            let width = if line.markers { 2.2 } else { 1.6 };
            drawing.polyline(points.clone(), Stroke { colour: look.colour, width, dash: look.dash });
            for point in &line.points {
                if let Some((low, high)) = point.value.spread {
                    draw_spread(drawing, place(point.x, low), place(point.x, high), look.colour);
                }
            }
            if line.markers || points.len() == 1 {
                for &at in &points {
                    draw_marker(drawing, at, look);
                }
            }
        }
    });
}

/// A bar from the smallest to the largest measurement, with ends.
pub(super) fn draw_spread(drawing: &mut Drawing, low: (f64, f64), high: (f64, f64), colour: &'static str) {
    let pen = Stroke::plain(colour, 1.4);
    drawing.line(low, high, pen);
    for end in [low, high] {
        drawing.line((end.0 - 4.0, end.1), (end.0 + 4.0, end.1), pen);
    }
}

/// The marker of a look.
pub(super) fn draw_marker(drawing: &mut Drawing, (x, y): (f64, f64), look: Look) {
    let (r, colour) = (MARKER_PX, look.colour);
    let pen = Stroke::plain(colour, 2.2);
    match look.marker {
        Marker::Circle => drawing.circle((x, y), r * 0.95, colour, colour),
        Marker::Ring => drawing.circle((x, y), r * 0.9, PAPER, colour),
        Marker::Square => drawing.rect((x - r * 0.85, y - r * 0.85), (r * 1.7, r * 1.7), colour),
        Marker::Triangle => drawing.polygon(&[(x, y - r * 1.2), (x + r * 1.1, y + r * 0.9), (x - r * 1.1, y + r * 0.9)], colour),
        Marker::TriangleDown => {
            drawing.polygon(&[(x, y + r * 1.2), (x + r * 1.1, y - r * 0.9), (x - r * 1.1, y - r * 0.9)], colour);
        }
        Marker::Diamond => drawing.polygon(&[(x, y - r * 1.3), (x + r * 1.1, y), (x, y + r * 1.3), (x - r * 1.1, y)], colour),
        Marker::Cross => {
            drawing.line((x - r, y - r), (x + r, y + r), pen);
            drawing.line((x - r, y + r), (x + r, y - r), pen);
        }
        Marker::Plus => {
            drawing.line((x - r * 1.2, y), (x + r * 1.2, y), pen);
            drawing.line((x, y - r * 1.2), (x, y + r * 1.2), pen);
        }
    }
}

const MARKER_PX: f64 = 4.5;
/// Of a line that lies on another one all along.
const SEE_THROUGH: &[f32] = &[7.0, 7.0];
