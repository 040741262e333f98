//! Who did what when: a row for each, a box for each thing that was done. Where a row is empty, its owner waited.

use super::check::PlotError;
use super::drawing::{Anchor, Drawing, Place, TextStyle};
use super::{raster, style, svg, text};

/// Rows of boxes over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What it shows, in a few words.
    pub title: String,
    /// Seconds from its beginning to its end.
    pub seconds: f64,
    /// From top to bottom.
    pub rows: Vec<Row>,
}

/// One who did something.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Who.
    pub name: String,
    /// Until when it could do something, and what happened then; none: to the end.
    pub until: Option<(f64, String)>,
    /// What it did, by the time at which it began.
    pub stretches: Vec<Stretch>,
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// When it began, in seconds.
    pub from: f64,
    /// When it was over.
    pub to: f64,
    /// What, for who points at it in a browser.
    pub what: String,
}

impl Timeline {
    /// The picture as SVG; what a box is stands in it as a title.
    pub fn svg(&self) -> Result<String, PlotError> {
        let (drawing, size) = self.draw()?;
        Ok(svg::write(&drawing, size, &self.title, style::PAPER))
    }

    /// The picture as PNG, with two pixels for each of the SVG.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (drawing, size) = self.draw()?;
        raster::png(&drawing, size, style::PAPER)
    }

    fn check(&self) -> Result<(), PlotError> {
        let bad = |series: &str, times: &[f64]| {
            let value = times.iter().copied().find(|time| !time.is_finite())?;
            Some(PlotError::NotFinite { chart: self.title.clone(), series: series.to_owned(), value })
        };
        let of_row = |row: &Row| {
            let until = row.until.iter().map(|(until, _)| *until);
            let times: Vec<f64> = row.stretches.iter().flat_map(|stretch| [stretch.from, stretch.to]).chain(until).collect();
            bad(&row.name, &times)
        };
        bad("time", &[self.seconds]).or_else(|| self.rows.iter().find_map(of_row)).map_or(Ok(()), Err)
    }

    fn draw(&self) -> Result<(Drawing, Place), PlotError> {
        self.check()?;
        let seconds = self.seconds.max(SHORTEST);
        let at = |time: f64| LEFT + (time / seconds).clamp(0.0, 1.0) * WIDTH;
        let mut drawing = Drawing::default();
        for (number, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * number as f64;
            let name = TextStyle { anchor: Anchor::End, ..TEXT };
            drawing.text((LEFT - 8.0, y + BASE), &shortened(&row.name), name);
            let until = row.until.as_ref().map_or(seconds, |(until, _)| *until);
            drawing.rect((LEFT, y), (at(until) - LEFT, BOX), style::GRID);
            for (turn, stretch) in row.stretches.iter().enumerate() {
                let (from, to) = (at(stretch.from), at(stretch.to));
                let colour = COLOURS[turn % COLOURS.len()];
                drawing.titled_rect((from, y), ((to - from).max(THINNEST), BOX), colour, &stretch.what);
            }
            if let Some((_, why)) = &row.until {
                drawing.text((at(until) + 4.0, y + BASE), why, TextStyle { colour: BAD, ..TEXT });
            }
        }
        let y = TOP + ROW * self.rows.len() as f64;
        for quarter in 0..=4 {
            let time = seconds * f64::from(quarter) / 4.0;
            let middle = TextStyle { anchor: Anchor::Middle, ..TEXT };
            drawing.text((at(time), y + BASE), &format!("{time:.1} s"), middle);
        }
        Ok((drawing, (LEFT + WIDTH + 30.0, y + 30.0)))
    }
}

/// A name that fits before its row.
fn shortened(name: &str) -> String {
    if text::width(name, TEXT.px, false) <= LEFT - 12.0 {
        return name.to_owned();
    }
    let mut short = String::new();
    for letter in name.chars() {
        if text::width(&short, TEXT.px, false) + 2.0 * TEXT.px > LEFT - 12.0 {
            break;
        }
        short.push(letter);
    }
    short + ".."
}

const TEXT: TextStyle = TextStyle { px: style::TICK_PX, bold: false, colour: style::INK, anchor: Anchor::Start, upright: false };
/// Two blues of Okabe and Ito in turn, so that boxes beside each other can be told apart.
const COLOURS: [&str; 2] = ["#0072b2", "#56b4e9"];
/// Their vermilion.
const BAD: &str = "#d55e00";
const WIDTH: f64 = 900.0;
const LEFT: f64 = 170.0;
const TOP: f64 = 20.0;
const ROW: f64 = 22.0;
const BOX: f64 = ROW - 4.0;
/// From the top of a row to the line that its words stand on.
const BASE: f64 = 14.0;
/// A box that can still be seen.
const THINNEST: f64 = 0.5;
const SHORTEST: f64 = 0.001;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn timeline(to: f64) -> Timeline {
        let stretch = |from, to| Stretch { from, to, what: format!("<{from}>") };
        let row = |name: &str, until, stretches| Row { name: name.into(), until, stretches };
        let gone = Some((2.0, "gone".into()));
        let rows = vec![row("a", None, vec![stretch(0.0, 1.0), stretch(1.0, to)]), row(&"b".repeat(80), gone, vec![])];
        Timeline { title: "who & when".into(), seconds: 4.0, rows }
    }

    #[test]
    fn a_row_has_its_boxes_and_what_they_are() {
        let svg = timeline(3.0).svg().unwrap();
        for part in ["who &amp; when", "<title>&lt;0&gt;</title>", "<title>&lt;1&gt;</title>", ">gone<", ">bb", "..<", ">4.0 s<"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(timeline(3.0).png().unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn a_time_that_is_none_is_an_error() {
        assert!(timeline(f64::NAN).svg().is_err());
    }
}
