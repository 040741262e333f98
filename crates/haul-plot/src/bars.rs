//! Groups of bars, with their values and error bars.

use super::area::Area;
use super::chart::{Bars, Value};
use super::drawing::{Anchor, Drawing, TextStyle};
use super::lines::draw_spread;
use super::looks::Looks;
use super::scale::{Ruler, number};
use super::style::{self, INK, Look};
use super::text;

/// Draws them on the horizontal axis.
pub(super) fn draw(drawing: &mut Drawing, area: &Area, bars: &Bars, y: &Ruler, looks: &Looks<'_>) {
    let group_width = area.width / bars.groups.len().max(1) as f64;
    let bar_width = (group_width * GROUP_FILLED / bars.series.len().max(1) as f64).min(WIDEST_BAR);
    let base = area.y(y.base());
    for (group, name) in bars.groups.iter().enumerate() {
        let middle = area.left + (group as f64 + 0.5) * group_width;
        let left = middle - bar_width * bars.series.len() as f64 / 2.0;
        draw_group_name(drawing, (middle, area.y(0.0)), name, group_width);
        for (number, series) in bars.series.iter().enumerate() {
            let Some(Some(value)) = series.values.get(group) else { continue };
            let x = left + number as f64 * bar_width;
            let end = area.y(y.place(value.mean).clamp(0.0, 1.0));
            let (top, height) = (base.min(end), (base - end).abs());
            let look = looks.get(&series.name);
            draw_box(drawing, (x + bar_width * 0.06, top), (bar_width * 0.88, height), look);
            draw_value(drawing, (x + bar_width / 2.0, end), value, (area, y), bar_width);
        }
    }
}

/// Filled, or hollow where a line would be dashed: no two bars differ by colour alone.
pub(super) fn draw_box(drawing: &mut Drawing, at: (f64, f64), size: (f64, f64), look: Look) {
    drawing.rect(at, size, look.colour);
    if !look.dash.is_empty() && size.0 > 2.0 * HOLLOW_EDGE && size.1 > 2.0 * HOLLOW_EDGE {
        let inner = (size.0 - 2.0 * HOLLOW_EDGE, size.1 - 2.0 * HOLLOW_EDGE);
        drawing.rect((at.0 + HOLLOW_EDGE, at.1 + HOLLOW_EDGE), inner, style::PAPER);
    }
}

/// Height of the names of the groups below an axis of this width.
pub(super) fn names_height(bars: &Bars, width: f64) -> f64 {
    let group_width = width / bars.groups.len().max(1) as f64;
    bars.groups.iter().map(|name| name_lines(name, group_width).len()).max().unwrap_or(0) as f64 * NAME_LINE
}

fn name_lines(name: &str, width: f64) -> Vec<String> {
    text::wrap(name, style::TICK_PX, width - 16.0)
}

fn draw_group_name(drawing: &mut Drawing, at: (f64, f64), name: &str, width: f64) {
    for (line, words) in name_lines(name, width).iter().enumerate() {
        let style = TextStyle { px: style::TICK_PX, bold: false, colour: INK, anchor: Anchor::Middle, upright: false };
        drawing.text((at.0, at.1 + (line as f64 + 1.0) * NAME_LINE + 3.0), words, style);
    }
}

/// The error bar, and above both the number, where there is room for it.
fn draw_value(drawing: &mut Drawing, at: (f64, f64), value: &Value, (area, y): (&Area, &Ruler), bar_width: f64) {
    let mut top = at.1;
    if let Some((low, high)) = value.spread {
        let place = |value: f64| (at.0, area.y(y.place(value).clamp(0.0, 1.0)));
        draw_spread(drawing, place(low), place(high), INK);
        top = top.min(place(high).1);
    }
    let label = number(value.mean, decimals(value.mean));
    let px = style::TICK_PX - 1.0;
    if text::width(&label, px, false) <= bar_width * 1.05 {
        drawing.text(
            (at.0, top - 4.0),
            &label,
            TextStyle { px, bold: false, colour: INK, anchor: Anchor::Middle, upright: false },
        );
    }
}

/// Three digits that mean something.
fn decimals(value: f64) -> usize {
    if value == 0.0 { 0 } else { (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize }
}

/// Part of a group's place that has bars.
const GROUP_FILLED: f64 = 0.8;
const WIDEST_BAR: f64 = 70.0;
const NAME_LINE: f64 = style::TICK_PX + 2.0;
const HOLLOW_EDGE: f64 = 2.5;
