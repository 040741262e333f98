//! What was compared, as a table: aligned, or Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use haul_units::{BitRate, Ratio};

use super::CheckRow;
use super::model::{ModelRow, TOLERANCE};
use crate::options::LinkChanges;

/// Above the rows.
pub fn head(markdown: bool) -> String {
    let rule = if markdown { "|---|---|---|---|\n" } else { "" };
    cells(markdown, ["what", "link", "configured", "measured"]) + rule
}

fn cells(markdown: bool, [what, link, configured, measured]: [&str; 4]) -> String {
    if markdown {
        let link = if link.starts_with('-') { format!("`{link}`") } else { link.to_owned() };
        format!("| {what} | {link} | {configured} | {measured} |\n")
    } else {
        format!("{what:<22}{link:<44}{configured:<28}{measured}\n")
    }
}

impl CheckRow {
    /// A row of the table; with `markdown`, as Markdown.
    pub fn line(&self, markdown: bool) -> String {
        cells(markdown, [self.what, &self.options(), self.configured, &self.measured])
    }

    /// The options of `haul lab wan up` that make this link.
    pub fn options(&self) -> String {
        let LinkChanges { rate, rtt, queue, loss, burst_loss, reorder, duplicate, jitter, .. } = &self.link;
        let mut text = String::new();
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                let space = if text.is_empty() { "" } else { " " };
                let _ = write!(text, "{space}--{name}={value}");
            }
        };
        let percent = |ratio: &Option<Ratio>| ratio.map(|ratio| format!("{}%", (ratio.as_f64() * 1e6).round() / 1e4));
        let time = |time: &Option<Duration>| time.map(|time| format!("{}ms", time.as_millis()));
        option("rate", rate.map(short));
        option("rtt", time(rtt));
        option("mtu", self.mtu.map(|mtu| mtu.to_string()));
        option("queue", queue.map(|queue| queue.to_string().to_lowercase().replace(' ', "")));
        option("loss", percent(loss));
        option("burst-loss", burst_loss.map(|mean| mean.to_string()));
        option("reorder", percent(reorder));
        option("duplicate", percent(duplicate));
        option("jitter", time(jitter));
        text
    }
}

fn short(rate: BitRate) -> String {
    match rate.as_bps() {
        bps if bps % 1_000_000_000 == 0 => format!("{}G", bps / 1_000_000_000),
        bps => format!("{}M", bps / 1_000_000),
    }
}

/// The kernel beside the model, row by row, and what comes of all of them.
#[derive(Debug)]
pub struct ModelTable {
    markdown: bool,
    rows: u32,
    within: u32,
    log_ratios: f64,
}

impl ModelTable {
    /// No row yet; with `markdown`, as Markdown.
    pub const fn new(markdown: bool) -> Self {
        Self { markdown, rows: 0, within: 0, log_ratios: 0.0 }
    }

    /// Above the rows.
    pub fn head(&self) -> String {
        let head =
            self.cells(["TCP", "link", "flows", "kernel, Mbit/s each", "model", "ratio", "second half", "model", "ratio", ""]);
        if self.markdown { head + "|---|---|---|---|---|---|---|---|---|---|\n" } else { head }
    }

    /// A row, which counts.
    pub fn row(&mut self, row: &ModelRow) -> String {
        self.rows += 1;
        self.within += u32::from(row.is_within());
        self.log_ratios += row.ratio().ln();
        let link = format!("{} Mbit/s, {} ms, {} %", row.rate_mbps, row.rtt_ms, row.loss_percent);
        let figure = |[mean, error]: [f64; 2]| format!("{mean:.2} ± {error:.2}");
        self.cells([
            row.algorithm,
            &link,
            &format!("{} x {} s", row.flows, row.seconds),
            &figure(row.kernel.whole_mbps),
            &figure(row.model.whole_mbps),
            &format!("{:.2}", row.ratio()),
            &figure(row.kernel.half_mbps),
            &figure(row.model.half_mbps),
            &format!("{:.2}", row.ratio_of_half()),
            if row.is_within() { "ok" } else { "off" },
        ])
    }

    /// Below the rows.
    pub fn end(&self) -> String {
        let mean = (self.log_ratios / f64::from(self.rows.max(1))).exp();
        let tolerance = TOLERANCE * 100.0;
        format!(
            "\n{} of {} rows within {tolerance:.0} %; the model is {mean:.2} of the kernel on average.\n",
            self.within, self.rows
        )
    }

    /// Whether every row is within the tolerance.
    pub const fn is_within(&self) -> bool {
        self.within == self.rows
    }

    fn cells(&self, cells: [&str; 10]) -> String {
        if self.markdown {
            return format!("| {} |\n", cells.join(" | "));
        }
        let [tcp, link, flows, kernel, model, ratio, half, model_half, ratio_half, verdict] = cells;
        format!(
            "{tcp:<6}{link:<26}{flows:<11}{kernel:<21}{model:<16}{ratio:<7}{half:<16}{model_half:<16}{ratio_half:<7}{verdict}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::QueueSize;

    fn row(link: LinkChanges, mtu: Option<u16>) -> CheckRow {
        CheckRow { what: "", link, mtu, configured: "", measured: String::new() }
    }

    #[test]
    fn a_link_is_shown_as_its_options() {
        let base = LinkChanges { rate: Some(BitRate::gbps(10)), rtt: Some(Duration::from_millis(20)), ..LinkChanges::default() };
        let all = LinkChanges {
            rate: Some(BitRate::mbps(100)),
            queue: Some(QueueSize::Bdp(0.5)),
            loss: Some(Ratio::percent(0.1)),
            burst_loss: Some(8.0),
            reorder: Some(Ratio::percent(1.0)),
            duplicate: Some(Ratio::percent(10.0)),
            jitter: Some(Duration::from_millis(5)),
            ..base.clone()
        };
        assert_eq!(row(base, Some(9000)).options(), "--rate=10G --rtt=20ms --mtu=9000");
        let text = row(all, None).options();
        assert_eq!(
            text,
            "--rate=100M --rtt=20ms --queue=0.5bdp --loss=0.1% --burst-loss=8 --reorder=1% --duplicate=10% --jitter=5ms"
        );
    }

    #[test]
    fn rows_line_up_or_are_markdown() {
        assert_eq!(cells(true, ["RTT", "--rtt=1ms", "1 ms", "2 ms"]), "| RTT | `--rtt=1ms` | 1 ms | 2 ms |\n");
        assert_eq!(head(true), "| what | link | configured | measured |\n|---|---|---|---|\n");
        assert_eq!(cells(false, ["RTT", "x", "y", "z"]).find('z'), Some(22 + 44 + 28));
    }
}
