//! Fonts that travel with the program: how wide a text is, and its outline.
//!
//! A bare machine has no fonts, so those that the pictures need are part of the program: the Latin letters and signs of DejaVu Sans, whose
//! licence lies beside them. An SVG shown elsewhere may get another font; DejaVu is wide, so others fit where it does.

use std::sync::LazyLock;

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::drawing::{Anchor, Place, TextStyle};

/// What an SVG asks for.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

static REGULAR: LazyLock<Face<'static>> = LazyLock::new(|| face(include_bytes!("fonts/DejaVuSans.ttf")));
static BOLD: LazyLock<Face<'static>> = LazyLock::new(|| face(include_bytes!("fonts/DejaVuSans-Bold.ttf")));

fn face(bytes: &'static [u8]) -> Face<'static> {
    Face::parse(bytes, 0).expect("the program's own font, which a test reads")
}

fn font(bold: bool) -> &'static Face<'static> {
    if bold { &BOLD } else { &REGULAR }
}

/// Glyphs and how far each moves on, in pixels. What the font does not have is shown as its sign for that.
fn glyphs(text: &str, px: f64, bold: bool) -> impl Iterator<Item = (GlyphId, f64)> {
    let font = font(bold);
    let scale = px / f64::from(font.units_per_em());
    text.chars().map(move |letter| {
        let glyph = font.glyph_index(letter).unwrap_or_default();
        (glyph, f64::from(font.glyph_hor_advance(glyph).unwrap_or_default()) * scale)
    })
}

/// How wide a text is, in pixels.
pub(super) fn width(text: &str, px: f64, bold: bool) -> f64 {
    glyphs(text, px, bold).map(|(_, advance)| advance).sum()
}

/// What to fill to write a text; nothing of one without ink.
pub(super) fn outline(at: Place, text: &str, style: TextStyle) -> Option<Path> {
    let whole = width(text, style.px, style.bold);
    let mut x = at.0
        - match style.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => whole / 2.0,
            Anchor::End => whole,
        };
    let font = font(style.bold);
    let mut outline =
        Outline { path: PathBuilder::new(), x: 0.0, y: at.1 as f32, scale: (style.px / f64::from(font.units_per_em())) as f32 };
    for (glyph, advance) in glyphs(text, style.px, style.bold) {
        outline.x = x as f32;
        font.outline_glyph(glyph, &mut outline);
        x += advance;
    }
    outline.path.finish()
}

/// Collects glyphs at their places; fonts count upwards, pictures downwards.
struct Outline {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Outline {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// A text in lines that are no wider than this; a word that is wider stands alone.
pub(super) fn wrap(text: &str, px: f64, widest: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), px, false) <= widest => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_letters() {
        let (narrow, wide) = (width("iiii", 12.0, false), width("WWWW", 12.0, false));
        assert!(narrow > 8.0 && narrow * 2.0 < wide, "{narrow} {wide}");
        assert!(width("Mbit/s", 12.0, true) > width("Mbit/s", 12.0, false));
        assert!((width("Mbit/s", 24.0, false) / width("Mbit/s", 12.0, false) - 2.0).abs() < 0.01);
    }

    #[test]
    fn every_sign_that_charts_use_is_in_the_fonts() {
        for bold in [false, true] {
            for letter in
                "Aaz09 %.,:;/()[]<>=+-*'\"\u{2212}\u{b7}\u{d7}\u{b5}\u{2013}\u{2026}\u{2264}\u{2265}\u{e4}\u{f6}\u{fc}\u{e9}"
                    .chars()
            {
                assert!(font(bold).glyph_index(letter).is_some(), "{letter}");
            }
        }
    }

    #[test]
    fn an_outline_is_where_its_text_stands() {
        let style = TextStyle { px: 12.0, bold: false, colour: "#000000", anchor: Anchor::End, upright: false };
        let bounds = outline((100.0, 50.0), "Mbit/s", style).expect("it has ink").bounds();
        assert!(bounds.right() <= 100.0 && bounds.right() > 97.0, "{bounds:?}");
        assert!(bounds.bottom() < 53.0 && bounds.top() > 38.0, "{bounds:?}");
        assert!(outline((0.0, 0.0), "  ", style).is_none());
    }

    #[test]
    fn long_texts_are_wrapped() {
        let lines = wrap("one two three four", 12.0, width("one two three", 12.0, false));
        assert_eq!(lines, ["one two three", "four"]);
        assert!(wrap("", 12.0, 10.0).is_empty());
    }
}
