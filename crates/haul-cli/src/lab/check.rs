//! `haul lab wan check`: whether the emulator tells the truth, as a table.

use std::fmt::Write as _;
use std::time::Duration;

use haul_lab::LinkChanges;
use haul_lab::check::{self, CheckRow, Extent};
use haul_units::{BitRate, Cancel, Ratio};

use super::args::CheckArgs;
use super::commands::COMMANDS;
use super::model;
use super::print::{print, write};
use crate::exit::{Exit, Failure};

/// Prints the table.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let markdown = args.markdown;
    check::needed()?;
    if args.model {
        return model::run(if args.quick { Extent::Quick } else { Extent::Whole }, markdown);
    }
    print(&head(markdown))?;
    let row = |row: CheckRow| write(&cells(markdown, [row.what, &link(&row), row.configured, &row.measured]));
    // An interrupt ends this process, and the emulator with it.
    check::run(COMMANDS, Duration::from_secs(args.time.into()), &Cancel::new(), row)?;
    Ok(Exit::Done)
}

fn head(markdown: bool) -> String {
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

/// The options of `haul lab wan up` that make this link.
fn link(row: &CheckRow) -> String {
    let LinkChanges { rate, rtt, queue, loss, burst_loss, reorder, duplicate, jitter, .. } = &row.link;
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
    option("mtu", row.mtu.map(|mtu| mtu.to_string()));
    option("queue", queue.map(|queue| queue.to_string().to_lowercase().replace(' ', "")));
    option("loss", percent(loss));
    option("burst-loss", burst_loss.map(|mean| mean.to_string()));
    option("reorder", percent(reorder));
    option("duplicate", percent(duplicate));
    option("jitter", time(jitter));
    text
}

fn short(rate: BitRate) -> String {
    match rate.as_bps() {
        bps if bps % 1_000_000_000 == 0 => format!("{}G", bps / 1_000_000_000),
        bps => format!("{}M", bps / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};
    use haul_lab::QueueSize;

    use super::*;
    use crate::lab::args::LinkArgs;

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
        assert_eq!(link(&row(base, Some(9000))), "--rate=10G --rtt=20ms --mtu=9000");
        let text = link(&row(all.clone(), None));
        assert_eq!(
            text,
            "--rate=100M --rtt=20ms --queue=0.5bdp --loss=0.1% --burst-loss=8 --reorder=1% --duplicate=10% --jitter=5ms"
        );
        let command = LinkArgs::augment_args(clap::Command::new("up").no_binary_name(true));
        let matches = command.try_get_matches_from(text.split(' ')).expect("understood");
        assert_eq!(LinkArgs::from_arg_matches(&matches).expect("understood").changes(), all);
    }

    #[test]
    fn rows_line_up_or_are_markdown() {
        assert_eq!(cells(true, ["RTT", "--rtt=1ms", "1 ms", "2 ms"]), "| RTT | `--rtt=1ms` | 1 ms | 2 ms |\n");
        assert_eq!(head(true), "| what | link | configured | measured |\n|---|---|---|---|\n");
        assert_eq!(cells(false, ["RTT", "x", "y", "z"]).find('z'), Some(22 + 44 + 28));
    }
}
