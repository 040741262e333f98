//! A drawing as SVG: numbers rounded, texts escaped, nothing left open.

use std::fmt::{self, Write as _};

use super::drawing::{Anchor, Drawing, Place, Shape, Stroke};
use super::text::FAMILY;

/// The whole document.
pub(super) fn write(drawing: &Drawing, size: Place, title: &str, paper: &str) -> String {
    let (width, height) = (Px(size.0), Px(size.1));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"{FAMILY}\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{paper}\"/>\n",
        Escaped(title)
    );
    let mut clips = 0;
    write_shapes(&mut text, &drawing.shapes, &mut clips);
    text + "</svg>\n"
}

fn write_shapes(text: &mut String, shapes: &[Shape], clips: &mut u32) {
    for shape in shapes {
        match shape {
            Shape::Clipped { at, size, shapes } => {
                *clips += 1;
                let (x, y, width, height) = (Px(at.0), Px(at.1), Px(size.0), Px(size.1));
                let _ = writeln!(
                    text,
                    "<clipPath id=\"area{clips}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath>\n\
                     <g clip-path=\"url(#area{clips})\">"
                );
                write_shapes(text, shapes, clips);
                text.push_str("</g>\n");
            }
            plain => {
                let _ = writeln!(text, "{}", Element(plain));
            }
        }
    }
}

/// A shape that has none within.
struct Element<'a>(&'a Shape);

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Shape::Line { points, stroke } => {
                write!(
                    f,
                    "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\"{}/>",
                    Points(points),
                    Attributes(stroke)
                )
            }
            Shape::Polygon { points, fill } => write!(f, "<polygon points=\"{}\" fill=\"{fill}\"/>", Points(points)),
            Shape::Rect { at, size, fill, title } => {
                let (x, y, width, height) = (Px(at.0), Px(at.1), Px(size.0), Px(size.1));
                write!(f, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"")?;
                if title.is_empty() { f.write_str("/>") } else { write!(f, "><title>{}</title></rect>", Escaped(title)) }
            }
            Shape::Circle { at, radius, fill, stroke } => {
                let (x, y, radius) = (Px(at.0), Px(at.1), Px(*radius));
                write!(f, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"{}/>", Attributes(stroke))
            }
            Shape::Text { at, text, style } => {
                let (x, y, px, colour) = (Px(at.0), Px(at.1), Px(style.px), style.colour);
                let anchor = match style.anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
                let turn = if style.upright { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
                write!(
                    f,
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"{px}\"{weight} fill=\"{colour}\" text-anchor=\"{anchor}\"{turn}>{}</text>",
                    Escaped(text)
                )
            }
            Shape::Clipped { .. } => Ok(()),
        }
    }
}

struct Attributes<'a>(&'a Stroke);

impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " stroke=\"{}\" stroke-width=\"{}\"", self.0.colour, Px(self.0.width))?;
        if self.0.dash.is_empty() {
            return Ok(());
        }
        let lengths: Vec<String> = self.0.dash.iter().map(ToString::to_string).collect();
        write!(f, " stroke-dasharray=\"{}\"", lengths.join(" "))
    }
}

struct Points<'a>(&'a [Place]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (x, y)) in self.0.iter().enumerate() {
            let space = if number > 0 { " " } else { "" };
            write!(f, "{space}{},{}", Px(*x), Px(*y))?;
        }
        Ok(())
    }
}

/// A number of pixels, to a hundredth.
struct Px(f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        // No minus before zero.
        write!(f, "{}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}

/// A text without what XML would take for markup, or does not allow at all.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                control if control.is_control() => f.write_char(' ')?,
                plain => f.write_char(plain)?,
            }
        }
        Ok(())
    }
}
