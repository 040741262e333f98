//! A drawing as pixels: shapes by tiny-skia, letters as the outlines of the program's own fonts.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke as Pen, StrokeDash, Transform,
};

use super::check::PlotError;
use super::drawing::{Drawing, Place, Shape, Stroke, TextStyle};
use super::text;

/// A PNG with two pixels for each of the drawing.
pub(super) fn png(drawing: &Drawing, size: Place, paper: &str) -> Result<Vec<u8>, PlotError> {
    let failed = |why: &str| PlotError::Raster(why.to_owned());
    let (width, height) = ((size.0 * SCALE).ceil(), (size.1 * SCALE).ceil());
    if !(1.0..=LARGEST).contains(&width) || !(1.0..=LARGEST).contains(&height) {
        return Err(failed("it is too large"));
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(|| failed("it is too large"))?;
    pixels.fill(colour(paper));
    fill_shapes(&mut pixels, &drawing.shapes, None);
    pixels.encode_png().map_err(|error| failed(&error.to_string()))
}

fn fill_shapes(pixels: &mut Pixmap, shapes: &[Shape], mask: Option<&Mask>) {
    for shape in shapes {
        match shape {
            Shape::Line { points, stroke } => draw_stroke(pixels, path(points, false), stroke, mask),
            Shape::Polygon { points, fill } => draw_fill(pixels, path(points, true), fill, mask),
            Shape::Rect { at, size, fill, .. } => draw_fill(pixels, rect(*at, *size).map(PathBuilder::from_rect), fill, mask),
            Shape::Circle { at, radius, fill, stroke } => {
                let circle = PathBuilder::from_circle(at.0 as f32, at.1 as f32, *radius as f32);
                draw_fill(pixels, circle.clone(), fill, mask);
                draw_stroke(pixels, circle, stroke, mask);
            }
            Shape::Text { at, text, style } => draw_text(pixels, *at, text, *style, mask),
            Shape::Clipped { at, size, shapes } => {
                let mut area = Mask::new(pixels.width(), pixels.height());
                if let (Some(area), Some(rect)) = (&mut area, rect(*at, *size)) {
                    area.fill_path(&PathBuilder::from_rect(rect), FillRule::Winding, true, scaled());
                }
                fill_shapes(pixels, shapes, area.as_ref());
            }
        }
    }
}

fn draw_stroke(pixels: &mut Pixmap, path: Option<Path>, stroke: &Stroke, mask: Option<&Mask>) {
    let Some(path) = path else { return };
    let pen = Pen {
        width: stroke.width as f32,
        line_cap: LineCap::Butt,
        line_join: LineJoin::Round,
        dash: StrokeDash::new(stroke.dash.to_vec(), 0.0),
        ..Pen::default()
    };
    pixels.stroke_path(&path, &paint(stroke.colour), &pen, scaled(), mask);
}

fn draw_fill(pixels: &mut Pixmap, path: Option<Path>, fill: &str, mask: Option<&Mask>) {
    if let Some(path) = path {
        pixels.fill_path(&path, &paint(fill), FillRule::Winding, scaled(), mask);
    }
}

fn draw_text(pixels: &mut Pixmap, at: Place, text: &str, style: TextStyle, mask: Option<&Mask>) {
    let turn = if style.upright { Transform::from_rotate_at(-90.0, at.0 as f32, at.1 as f32) } else { Transform::identity() };
    if let Some(path) = text::outline(at, text, style) {
        let transform = scaled().pre_concat(turn);
        pixels.fill_path(&path, &paint(style.colour), FillRule::Winding, transform, mask);
    }
}

fn path(points: &[Place], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (number, (x, y)) in points.iter().enumerate() {
        if number == 0 {
            builder.move_to(*x as f32, *y as f32);
        } else {
            builder.line_to(*x as f32, *y as f32);
        }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

fn rect(at: Place, size: Place) -> Option<Rect> {
    Rect::from_xywh(at.0 as f32, at.1 as f32, size.0 as f32, size.1 as f32)
}

fn paint(hex: &str) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(colour(hex));
    paint
}

/// `#rrggbb`; black if it is something else.
fn colour(hex: &str) -> Color {
    let value = u32::from_str_radix(hex.trim_start_matches('#'), 16).unwrap_or(0);
    let [_, red, green, blue] = value.to_be_bytes();
    Color::from_rgba8(red, green, blue, 255)
}

fn scaled() -> Transform {
    Transform::from_scale(SCALE as f32, SCALE as f32)
}

const SCALE: f64 = 2.0;
/// 256 MPixel take 1 GB.
const LARGEST: f64 = 16_384.0;
