//! Which member had which file when: a row for each, a bar for each file. Where a row is empty its member waited.

use std::fmt::Write as _;

use super::escape::escape;
use super::record::JobRecord;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 170.0;
const ROW: f64 = 22.0;
const TOP: f64 = 20.0;
/// Of each member; more bars than this are narrower than a pixel.
const MAX_BARS: usize = 900;
/// Two blues of one brightness, in turn, so that files beside each other can be told apart.
const COLOURS: [&str; 2] = ["#0072b2", "#56b4e9"];

pub(super) fn svg(job: &JobRecord) -> String {
    let seconds = job.seconds.max(0.001);
    let height = TOP + ROW * job.members.len() as f64 + 30.0;
    let at = |t: f64| LEFT + (t / seconds).clamp(0.0, 1.0) * WIDTH;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{1}: files of each member over time</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        LEFT + WIDTH + 20.0,
        escape(&job.name)
    );
    for (row, member) in job.members.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let name: String = member.name.chars().take(24).collect();
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", LEFT - 8.0, y + 14.0, escape(&name));
        let until = member.down.as_ref().map_or(job.seconds, |down| down.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"#eeeeee\"/>",
            at(until) - LEFT,
            ROW - 4.0
        );
        let step = member.spans.len().div_ceil(MAX_BARS).max(1);
        for (bar, spans) in member.spans.chunks(step).enumerate() {
            let Some(first) = spans.first() else { continue };
            let to = spans.iter().map(|span| span.to.unwrap_or(until)).fold(first.from, f64::max);
            let what = if spans.len() == 1 { first.path.clone() } else { format!("{} and {} more", first.path, spans.len() - 1) };
            let colour = COLOURS.get(bar % COLOURS.len()).copied().unwrap_or("#000000");
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\" fill-opacity=\"0.8\"><title>{}: {:.2} s to {to:.2} s</title></rect>",
                at(first.from),
                (at(to) - at(first.from)).max(0.5),
                ROW - 4.0,
                escape(&what),
                first.from
            );
        }
        if member.down.is_some() {
            let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{}\" fill=\"#d55e00\">gone</text>", at(until) + 4.0, y + 14.0);
        }
    }
    let y = TOP + ROW * job.members.len() as f64 + 14.0;
    for tick in 0..=4 {
        let t = seconds * f64::from(tick) / 4.0;
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{y}\" text-anchor=\"middle\">{t:.1} s</text>", at(t));
    }
    svg.push_str("</svg>\n");
    svg
}
