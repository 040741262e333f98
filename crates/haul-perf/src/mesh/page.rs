//! The matrix as one HTML page that needs nothing else: a heat map, and below it the rate of each pair over time.

use std::fmt::Write as _;

use haul_units::BitRate;

use super::matrix::{Cell, Matrix, Pair, Run};

/// Width and height of a plot, and of it what the curves have; the rest is for the words above and below.
const PLOT: (f64, f64) = (230.0, 112.0);
const CURVES: std::ops::Range<f64> = 18.0..96.0;

impl Matrix {
    /// As one HTML page that needs nothing else: a heat map, and below it the rate of each pair over time.
    pub fn page(&self) -> String {
        let name = self.measured.to_string();
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>haul perf mesh</title>\n<style>{STYLE}</style></head><body>\n\
             <h1>{} over TCP, {} sites</h1>\n<p>Ratio of {} to TCP ({}), and Mbit/s of each; rows send, columns receive.</p>\n",
            escaped(&name),
            self.names.len(),
            escaped(&name),
            escaped(&self.congestion)
        );
        heat_map(self, &mut html);
        html.push_str(LEGEND);
        failures(self, &mut html);
        html.push_str(
            "<h2>Rate over time</h2>\n<p><span class=\"haul\">haul</span> and <span class=\"tcp\">TCP</span> at the receiver; \
             each plot has a scale of its own, from 0 to the rate at its top line.</p>\n",
        );
        for (from, row) in self.cells.iter().enumerate() {
            plots(self, from, row, &mut html);
        }
        html.push_str("</body></html>\n");
        html
    }
}

/// The plots of what a site sent, in a row.
fn plots(matrix: &Matrix, from: usize, row: &[Cell], html: &mut String) {
    let measured: Vec<_> =
        row.iter().zip(&matrix.names).filter_map(|(cell, to)| Some((to, cell.as_ref()?.as_ref().ok()?))).collect();
    if measured.is_empty() {
        return;
    }
    let _ = writeln!(html, "<h3>From {}</h3>\n<div class=\"plots\">", escaped(&matrix.names[from]));
    for (to, pair) in measured {
        plot(&format!("to {to}"), pair, html);
    }
    html.push_str("</div>\n");
}

fn heat_map(matrix: &Matrix, html: &mut String) {
    html.push_str("<table><tr><th>from \\ to</th>");
    for name in &matrix.names {
        let _ = write!(html, "<th>{}</th>", escaped(name));
    }
    html.push_str("</tr>\n");
    for (name, row) in matrix.names.iter().zip(&matrix.cells) {
        let _ = write!(html, "<tr><th>{}</th>", escaped(name));
        for cell in row {
            let _ = match cell {
                None => write!(html, "<td class=\"none\">&ndash;</td>"),
                Some(Err(why)) => write!(html, "<td class=\"x\" title=\"{}\">x</td>", escaped(&why.to_string())),
                Some(Ok(pair)) => write!(
                    html,
                    "<td style=\"background:{}\" title=\"{}\"><b>{:.2}</b><br>{} / {}</td>",
                    colour(pair.ratio()),
                    escaped(&details(pair)),
                    pair.ratio(),
                    megabits(pair.haul.rate),
                    megabits(pair.tcp.rate)
                ),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}

fn details(pair: &Pair) -> String {
    let ms =
        |ping: Option<std::time::Duration>| ping.map_or("?".to_owned(), |ping| format!("{:.1}", ping.as_secs_f64() * 1000.0));
    format!(
        "RTT {} ms idle, {} ms under haul, {} ms under TCP; lost: haul {} of {} packets, TCP {} of {}",
        ms(pair.haul.pings[0]),
        ms(pair.haul.pings[1]),
        ms(pair.tcp.pings[1]),
        pair.haul.lost_pkts,
        pair.haul.sent_pkts,
        pair.tcp.lost_pkts,
        pair.tcp.sent_pkts
    )
}

/// Whole Mbit/s, with a decimal where they are few.
pub fn megabits(rate: BitRate) -> String {
    let value = rate.as_bps() as f64 / 1e6;
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Blue where haul is faster, orange where TCP is, white at 1; full at a factor of 16. Who does not see red and green apart sees these two apart.
fn colour(ratio: f64) -> String {
    let strength = (ratio.max(1e-6).log2() / 4.0).clamp(-1.0, 1.0);
    let fade = |full: f64| (255.0 - (255.0 - full) * strength.abs()).round() as u8;
    let [red, green, blue] = if strength >= 0.0 { [92.0, 160.0, 214.0] } else { [240.0, 150.0, 60.0] };
    format!("#{:02x}{:02x}{:02x}", fade(red), fade(green), fade(blue))
}

fn failures(matrix: &Matrix, html: &mut String) {
    let failed: Vec<String> = matrix
        .pairs()
        .into_iter()
        .filter_map(|(from, to, cell)| match cell {
            Some(Err(why)) => Some(format!(
                "<li>{} to {}: {}</li>",
                escaped(&matrix.names[from]),
                escaped(&matrix.names[to]),
                escaped(&why.to_string())
            )),
            _ => None,
        })
        .collect();
    if !failed.is_empty() {
        let _ = writeln!(html, "<h2>Not measured</h2>\n<ul>{}</ul>", failed.concat());
    }
}

fn plot(title: &str, pair: &Pair, html: &mut String) {
    let (width, height) = PLOT;
    let most = pair.haul.series.iter().chain(&pair.tcp.series).copied().max().unwrap_or(BitRate::ZERO).max(BitRate::from_bps(1));
    let elapsed = pair.haul.elapsed.max(pair.tcp.elapsed);
    let _ = write!(
        html,
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
         <rect y=\"{top}\" width=\"{width}\" height=\"{room}\" class=\"frame\"/><text x=\"0\" y=\"13\">{most}</text>\
         <text x=\"0\" y=\"{height}\">0</text><text x=\"{width}\" y=\"{height}\" text-anchor=\"end\">{:.0} s</text>",
        escaped(title),
        elapsed.as_secs_f64(),
        top = CURVES.start,
        room = CURVES.end - CURVES.start,
    );
    curve("tcp", &pair.tcp, most, html);
    curve("haul", &pair.haul, most, html);
    html.push_str("</svg></figure>\n");
}

fn curve(class: &str, run: &Run, most: BitRate, html: &mut String) {
    let step = PLOT.0 / run.series.len().saturating_sub(1).max(1) as f64;
    let at = |(index, rate): (usize, &BitRate)| {
        let part = rate.as_bps() as f64 / most.as_bps() as f64;
        format!("{:.1},{:.1}", index as f64 * step, CURVES.end - part * (CURVES.end - CURVES.start))
    };
    let points: Vec<String> = run.series.iter().enumerate().map(at).collect();
    let _ = write!(html, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:15px/1.4 sans-serif;margin:2em;color:#222;background:#fff}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.5em .8em;text-align:center;border:1px solid #ccc;white-space:nowrap}td b{font-size:17px}th{background:#f0f0f0}td.none{background:#f0f0f0;color:#777}\
td.x{color:#a00;font-weight:bold}h3{margin:1.2em 0 .3em}.plots{display:flex;flex-wrap:wrap;gap:1em 1.6em}figure{margin:0}figcaption{font-size:14px;font-weight:bold}\
svg .frame{fill:#fafafa;stroke:#ccc}svg text{font-size:12px;fill:#444}polyline{fill:none;stroke-width:1.8}polyline.haul{stroke:#1f6fb2}polyline.tcp{stroke:#c05a00}\
.haul{color:#1f6fb2;font-weight:bold}.tcp{color:#c05a00;font-weight:bold}.legend span{display:inline-block;padding:.2em .7em;border:1px solid #ccc}";

const LEGEND: &str = "<p class=\"legend\">TCP faster <span style=\"background:#f0963c\">1/16</span><span style=\"background:#f8cb9e\">1/4</span><span>1</span>\
<span style=\"background:#aed0eb\">4</span><span style=\"background:#5ca0d6\">16 and more</span> haul faster</p>\n";

#[cfg(test)]
mod tests {
    use super::super::matrix::tests::example;
    use super::*;

    #[test]
    fn the_page_has_every_cell_and_needs_nothing_else() {
        let html = example().page();
        assert!(html.contains("<b>10.21</b><br>786 / 77") && html.contains("<b>0.29</b><br>2747 / 9431"), "{html}");
        assert_eq!(html.matches("<polyline").count(), 4);
        assert_eq!(html.matches("<h3>From ").count(), 2, "a row of plots for each site that has sent");
        assert!(html.contains("to kyushu") && html.contains(">9.43 Gbit/s<") && html.contains(">3 s<"), "{html}");
        assert!(html.contains("far &lt;away&gt;") && !html.contains("<away>"));
        for outside in ["http", "src=", "@import", "<script", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn colours_tell_who_is_faster() {
        assert_eq!(
            [colour(1.0), colour(16.0), colour(1000.0), colour(1.0 / 16.0), colour(0.0)],
            ["#ffffff", "#5ca0d6", "#5ca0d6", "#f0963c", "#f0963c"]
        );
        assert_eq!((colour(4.0), colour(0.25)), ("#aed0eb".to_owned(), "#f8cb9e".to_owned()));
    }
}
