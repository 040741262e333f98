//! Charts: one description, as SVG and as PNG.
//!
//! A [`Figure`] is a title and one or several [`Chart`]s, plain data: whoever measures fills it in, and [`Figure::svg`] and [`Figure::png`]
//! draw it, from the same list of shapes. Colours are told apart by people who do not see all of them
//! (Okabe and Ito), and no two lines differ by colour alone: each has a marker or a dash of its own.
//!
//! | module | idea |
//! |---|---|
//! | `chart` | the description |
//! | `check` | what cannot be drawn is said by name, before drawing |
//! | `scale` | from values to places, and where ticks are |
//! | `style` | colours, markers, sizes |
//! | `text` | fonts that travel with the program, and how wide a text is |
//! | `draw`, `lines`, `bars` | layout, axes, and what lies between them |
//! | `timeline` | who did what when: a picture of its own |
//! | `drawing` | the shapes that this makes |
//! | `svg`, `raster` | the shapes written, and as pixels |

mod area;
mod bars;
mod chart;
mod check;
mod draw;
mod drawing;
mod lines;
mod looks;
mod raster;
mod scale;
mod style;
mod svg;
mod text;
mod timeline;

#[cfg(test)]
mod tests;

pub use chart::{Axis, BarSeries, Bars, Chart, Data, Figure, Limit, Line, Point, Scale, Span, Value};
pub use check::PlotError;
pub use timeline::{Row, Stretch, Timeline};
