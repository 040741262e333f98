//! Layout: title, legend, and the charts with their axes.
//!
//! ```text
//!   title
//!   subtitle
//!   o-- name   []-- name   ..          one legend for all charts
//!   +---------+ +---------+
//!   | chart   | | chart   |
//!   +---------+ +---------+
//! ```

use super::area::Area;
use super::chart::{Axis, Chart, Data, Figure};
use super::check::{PlotError, check};
use super::drawing::{Anchor, Drawing, Place, Stroke, TextStyle};
use super::looks::{Key, Looks};
use super::scale::{Ruler, Tick};
use super::style;
use super::{bars, lines, raster, svg, text};

impl Figure {
    /// The picture as SVG.
    pub fn svg(&self) -> Result<String, PlotError> {
        let (drawing, size) = self.draw()?;
        Ok(svg::write(&drawing, size, &self.title, style::PAPER))
    }

    /// The picture as PNG, with two pixels for each of the SVG.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (drawing, size) = self.draw()?;
        raster::png(&drawing, size, style::PAPER)
    }

    fn draw(&self) -> Result<(Drawing, Place), PlotError> {
        check(self)?;
        let looks = Looks::of(self);
        let mut drawing = Drawing::default();
        let columns = self.columns.clamp(1, self.charts.len());
        let (width, height) = if self.charts.len() == 1 { style::SINGLE } else { style::PANEL };
        let inner = columns as f64 * width;
        let mut top = self.draw_titles(&mut drawing, inner);
        top = looks.draw_legend(&mut drawing, top, inner);
        for (number, chart) in self.charts.iter().enumerate() {
            let at = (MARGIN + (number % columns) as f64 * width, top + (number / columns) as f64 * height);
            draw_chart(&mut drawing, chart, at, (width, height), &looks);
        }
        let rows = self.charts.len().div_ceil(columns) as f64;
        Ok((drawing, (inner + 2.0 * MARGIN, top + rows * height + MARGIN / 2.0)))
    }

    /// Returns where the next thing begins.
    fn draw_titles(&self, drawing: &mut Drawing, width: f64) -> f64 {
        let mut top = MARGIN;
        for line in text::wrap(&self.title, style::TITLE_PX * BOLD_WIDER, width) {
            top += style::TITLE_PX;
            drawing.text((MARGIN, top), &line, TextStyle { px: style::TITLE_PX, bold: true, ..TEXT });
            top += 5.0;
        }
        for line in text::wrap(&self.subtitle, style::TEXT_PX, width) {
            top += style::TEXT_PX + 3.0;
            drawing.text((MARGIN, top), &line, TextStyle { colour: style::FAINT, ..TEXT });
        }
        top + 12.0
    }
}

impl Looks<'_> {
    /// Returns where the next thing begins. A single name that says nothing more than the title needs no legend.
    fn draw_legend(&self, drawing: &mut Drawing, top: f64, width: f64) -> f64 {
        if self.by_name.len() < 2 {
            return top;
        }
        let (mut x, mut y) = (MARGIN, top + style::TEXT_PX);
        for (name, look) in &self.by_name {
            let entry = KEY_WIDTH + 6.0 + text::width(name, style::TEXT_PX, false) + 22.0;
            if x > MARGIN && x + entry > MARGIN + width {
                (x, y) = (MARGIN, y + style::TEXT_PX + 8.0);
            }
            let middle = y - style::TEXT_PX * 0.35;
            if self.key == Key::Box {
                bars::draw_box(drawing, (x + 10.0, middle - 6.0), (12.0, 12.0), *look);
            } else {
                drawing.line((x, middle), (x + KEY_WIDTH, middle), Stroke { colour: look.colour, width: 2.0, dash: look.dash });
                if self.key == Key::LineAndMarker {
                    lines::draw_marker(drawing, (x + KEY_WIDTH / 2.0, middle), *look);
                }
            }
            drawing.text((x + KEY_WIDTH + 6.0, y), name, TEXT);
            x += entry;
        }
        y + 14.0
    }
}

fn draw_chart(drawing: &mut Drawing, chart: &Chart, at: (f64, f64), size: (f64, f64), looks: &Looks<'_>) {
    let limits = chart.limits.iter().map(|limit| limit.at);
    let vertical = Ruler::new(&chart.y, chart.data.values().into_iter().map(|(_, value)| value).chain(limits));
    let y_ticks = vertical.ticks((size.1 / 55.0) as usize);
    let widest = y_ticks.iter().map(|tick| text::width(&tick.label, style::TICK_PX, false)).fold(0.0, f64::max);
    let title = if chart.title.is_empty() { 8.0 } else { style::CHART_TITLE_PX + 14.0 };
    let left = style::TEXT_PX + 14.0 + widest + 8.0;
    let width = size.0 - left - 18.0;
    let names = if let Data::Bars(all) = &chart.data { bars::names_height(all, width) } else { TICKS_HEIGHT };
    let below = names.max(TICKS_HEIGHT) + CAPTION_HEIGHT;
    let area = Area { left: at.0 + left, top: at.1 + title, width, height: size.1 - title - below };
    if !chart.title.is_empty() {
        let style = TextStyle { px: style::CHART_TITLE_PX, bold: true, anchor: Anchor::Middle, ..TEXT };
        drawing.text((area.x(0.5), at.1 + style::CHART_TITLE_PX + 2.0), &chart.title, style);
    }
    if matches!(chart.data, Data::Lines(_)) {
        draw_spans(drawing, &area, chart, &Ruler::new(&chart.x, chart.data.places().into_iter().map(|(_, place)| place)));
    }
    draw_vertical(drawing, &area, &chart.y, &y_ticks, at.0 + style::TEXT_PX);
    match &chart.data {
        Data::Lines(all) => {
            let horizontal = Ruler::new(&chart.x, chart.data.places().into_iter().map(|(_, place)| place));
            draw_horizontal(drawing, &area, &horizontal.ticks((area.width / 70.0) as usize));
            draw_limits(drawing, &area, chart, &vertical);
            lines::draw(drawing, &area, all, (&horizontal, &vertical), looks);
        }
        Data::Bars(all) => {
            draw_limits(drawing, &area, chart, &vertical);
            bars::draw(drawing, &area, all, &vertical, looks);
        }
    }
    let caption = TextStyle { anchor: Anchor::Middle, ..TEXT };
    drawing.text((area.x(0.5), area.y(0.0) + below - 12.0), &chart.x.caption(), caption);
    drawing.line((area.left, area.y(0.0)), (area.x(1.0), area.y(0.0)), Stroke::plain(style::INK, 1.0));
    drawing.line((area.left, area.y(0.0)), (area.left, area.y(1.0)), Stroke::plain(style::INK, 1.0));
}

fn draw_vertical(drawing: &mut Drawing, area: &Area, axis: &Axis, ticks: &[Tick], caption_x: f64) {
    for tick in ticks {
        let y = area.y(tick.at);
        let colour = if tick.label.is_empty() { style::FINE_GRID } else { style::GRID };
        drawing.line((area.left, y), (area.x(1.0), y), Stroke::plain(colour, 1.0));
        let style = TextStyle { px: style::TICK_PX, anchor: Anchor::End, ..TEXT };
        if !tick.label.is_empty() {
            drawing.text((area.left - 8.0, y + style::TICK_PX * 0.35), &tick.label, style);
        }
    }
    let style = TextStyle { anchor: Anchor::Middle, upright: true, ..TEXT };
    drawing.text((caption_x, area.y(0.5)), &axis.caption(), style);
}

fn draw_horizontal(drawing: &mut Drawing, area: &Area, ticks: &[Tick]) {
    for tick in ticks {
        let x = area.x(tick.at);
        let colour = if tick.label.is_empty() { style::FINE_GRID } else { style::GRID };
        drawing.line((x, area.y(0.0)), (x, area.y(1.0)), Stroke::plain(colour, 1.0));
        let style = TextStyle { px: style::TICK_PX, anchor: Anchor::Middle, ..TEXT };
        if !tick.label.is_empty() {
            drawing.text((x, area.y(0.0) + style::TICK_PX + 8.0), &tick.label, style);
        }
    }
}

/// Tints by name, in the order in which the names come; a name where it has room.
fn draw_spans(drawing: &mut Drawing, area: &Area, chart: &Chart, horizontal: &Ruler) {
    let mut names: Vec<&str> = Vec::new();
    let mut written = area.left;
    for span in &chart.spans {
        let number = names.iter().position(|name| *name == span.name).unwrap_or_else(|| {
            names.push(&span.name);
            names.len() - 1
        });
        let x = |at: f64| area.x(horizontal.place(at).clamp(0.0, 1.0));
        let (from, to) = (x(span.from), x(span.to));
        drawing.rect((from, area.y(1.0)), (to - from, area.height), style::TINTS[number % style::TINTS.len()]);
        if from >= written && text::width(&span.name, style::TICK_PX, false) + 6.0 <= to - from {
            let style = TextStyle { px: style::TICK_PX, colour: style::FAINT, ..TEXT };
            drawing.text((from + 3.0, area.y(1.0) + style::TICK_PX + 2.0), &span.name, style);
            written = to;
        }
    }
}

fn draw_limits(drawing: &mut Drawing, area: &Area, chart: &Chart, vertical: &Ruler) {
    for limit in &chart.limits {
        let y = area.y(vertical.place(limit.at));
        drawing.line((area.left, y), (area.x(1.0), y), Stroke { colour: style::FAINT, width: 1.2, dash: &[6.0, 3.0] });
        let style = TextStyle { px: style::TICK_PX, anchor: Anchor::End, colour: style::FAINT, ..TEXT };
        drawing.text((area.x(1.0) - 4.0, y - 5.0), &limit.name, style);
    }
}

const TEXT: TextStyle = TextStyle { px: style::TEXT_PX, bold: false, colour: style::INK, anchor: Anchor::Start, upright: false };
/// A line and a marker in the legend.
const KEY_WIDTH: f64 = 30.0;
/// Numbers below an axis, or two lines of names.
const TICKS_HEIGHT: f64 = 28.0;
const CAPTION_HEIGHT: f64 = 30.0;
const MARGIN: f64 = 22.0;
/// Bold letters against plain ones.
const BOLD_WIDER: f64 = 1.12;
