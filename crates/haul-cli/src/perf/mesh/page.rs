//! The matrix as one HTML page that needs nothing else: a heat map, and below it the rate of each pair over time.

use std::fmt::Write as _;

use haul_units::BitRate;

use super::matrix::{Matrix, Pair, megabits};

/// Width and height of a plot.
const PLOT: (f64, f64) = (220.0, 90.0);

/// The page.
pub fn page(matrix: &Matrix) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>haul perf mesh</title>\n<style>{STYLE}</style></head><body>\n\
         <h1>haul over TCP, {} sites</h1>\n<p>Ratio of haul ({}) to TCP ({}), and Mbit/s of each; rows send, columns receive.</p>\n",
        matrix.names.len(),
        escaped(&matrix.mode),
        escaped(&matrix.congestion)
    );
    heat_map(matrix, &mut html);
    html.push_str(LEGEND);
    failures(matrix, &mut html);
    html.push_str("<h2>Rate over time</h2>\n<p><span class=\"haul\">haul</span> and <span class=\"tcp\">TCP</span>, Mbit/s at the receiver.</p>\n<div class=\"plots\">\n");
    for (from, to, cell) in matrix.pairs() {
        if let Some(Ok(pair)) = cell {
            plot(&format!("{} to {}", matrix.names[from], matrix.names[to]), pair, &mut html);
        }
    }
    html.push_str("</div>\n</body></html>\n");
    html
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
                None => write!(html, "<td class=\"none\"></td>"),
                Some(Err(why)) => write!(html, "<td class=\"x\" title=\"{}\">x</td>", escaped(why)),
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

/// Green where haul is faster, red where TCP is, white at 1; full at a factor of 16.
fn colour(ratio: f64) -> String {
    let strength = (ratio.max(1e-6).log2() / 4.0).clamp(-1.0, 1.0);
    let fade = |full: f64| (255.0 - (255.0 - full) * strength.abs()).round() as u8;
    let [red, green, blue] = if strength >= 0.0 { [90.0, 180.0, 100.0] } else { [214.0, 96.0, 77.0] };
    format!("#{:02x}{:02x}{:02x}", fade(red), fade(green), fade(blue))
}

fn failures(matrix: &Matrix, html: &mut String) {
    let failed: Vec<String> = matrix
        .pairs()
        .into_iter()
        .filter_map(|(from, to, cell)| match cell {
            Some(Err(why)) => {
                Some(format!("<li>{} to {}: {}</li>", escaped(&matrix.names[from]), escaped(&matrix.names[to]), escaped(why)))
            }
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
    let _ = write!(
        html,
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
         <rect width=\"{width}\" height=\"{height}\" class=\"frame\"/><text x=\"4\" y=\"11\">{}</text>",
        escaped(title),
        escaped(&most.to_string())
    );
    for (class, series) in [("tcp", &pair.tcp.series), ("haul", &pair.haul.series)] {
        let step = width / series.len().saturating_sub(1).max(1) as f64;
        let at = |(index, rate): (usize, &BitRate)| {
            let part = rate.as_bps() as f64 / most.as_bps() as f64;
            format!("{:.1},{:.1}", index as f64 * step, height - 2.0 - part * (height - 18.0))
        };
        let points: Vec<String> = series.iter().enumerate().map(at).collect();
        let _ = write!(html, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
    }
    html.push_str("</svg></figure>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:15px/1.4 sans-serif;margin:2em;color:#222}table{border-collapse:collapse}th,td{padding:.5em .8em;text-align:center;border:1px solid #ddd}\
th{background:#f4f4f4}td.none{background:#eee}td.x{color:#a00;font-weight:bold}.plots{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0}figcaption{font-size:13px}\
svg .frame{fill:#fafafa;stroke:#ccc}svg text{font-size:10px;fill:#666}polyline{fill:none;stroke-width:1.6}polyline.haul{stroke:#2a8a3a}polyline.tcp{stroke:#c0503c}\
.haul{color:#2a8a3a;font-weight:bold}.tcp{color:#c0503c;font-weight:bold}.legend span{display:inline-block;padding:.2em .7em;border:1px solid #ddd}";

const LEGEND: &str = "<p class=\"legend\"><span style=\"background:#d6604d\">1/16</span><span style=\"background:#ebb0a6\">1/4</span><span>1</span>\
<span style=\"background:#addab2\">4</span><span style=\"background:#5ab464\">16 and more</span></p>\n";

#[cfg(test)]
mod tests {
    use super::super::matrix::tests::example;
    use super::*;

    #[test]
    fn the_page_has_every_cell_and_needs_nothing_else() {
        let html = page(&example());
        assert!(html.contains("<b>10.21</b><br>786 / 77") && html.contains("<b>0.29</b><br>2747 / 9431"), "{html}");
        assert_eq!(html.matches("<polyline").count(), 4);
        assert!(html.contains("far &lt;away&gt;") && !html.contains("<away>"));
        for outside in ["http", "src=", "@import", "<script", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn colours_tell_who_is_faster() {
        assert_eq!(
            [colour(1.0), colour(16.0), colour(1000.0), colour(1.0 / 16.0), colour(0.0)],
            ["#ffffff", "#5ab464", "#5ab464", "#d6604d", "#d6604d"]
        );
        assert_eq!((colour(4.0), colour(0.25)), ("#addab2".replace(' ', ""), "#ebb0a6".to_owned()));
    }
}
