//! A run of `haul lab bench`: each row with every tool, as it came out.

use std::fmt::Write as _;

use super::section::Section;
use super::table::Table;

/// The names of haul among the tools of a row, by what carries it: each is compared with other tools.
const HAUL: &[&str] = &["haul", "haul-cp", "haul-cp-tcp", "haul-cp-ssh"];
/// Its other modes are no competitors.
const OWN: &str = "haul";

/// A section of `results.csv` and of the goals in `results.txt`.
pub fn section(csv: &str, text: &str) -> Section {
    let turns = Table::parse(csv);
    let mut names: Vec<&str> = Vec::new();
    for turn in &turns.rows {
        let name = turns.cell(turn, "row");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut section = Section::default();
    for name in names {
        let entries = entries(&turns, name);
        section.behind.extend(behind(name, &entries));
        let _ = write!(section.text, "{name}\n\n{}\n", table(&entries).markdown());
    }
    goals(text, &mut section);
    section
}

/// What one tool did in a row, over its turns.
#[derive(Debug)]
struct Entry {
    tool: String,
    turns: usize,
    /// Why not all turns have a figure.
    failed: Option<String>,
    time_s: f64,
    mean_bps: f64,
    second_half_bps: Option<f64>,
    startup_rtts: Option<f64>,
    memory_bytes: f64,
    is_files: bool,
}

fn entries(turns: &Table, name: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let of_row = turns.rows.iter().filter(|turn| turns.cell(turn, "row") == name);
    let mut tools: Vec<&str> = Vec::new();
    for turn in of_row.clone() {
        let tool = turns.cell(turn, "tool");
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    for tool in tools {
        let mine: Vec<&Vec<String>> = of_row.clone().filter(|turn| turns.cell(turn, "tool") == tool).collect();
        let figure = |head: &str| {
            let values: Vec<f64> = mine.iter().filter_map(|turn| turns.cell(turn, head).parse().ok()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let outcome = |turn: &&&Vec<String>| turns.cell(turn, "outcome") != "done";
        let round_trip = figure("rtt_s").filter(|rtt| *rtt > 0.0);
        entries.push(Entry {
            tool: tool.to_owned(),
            turns: mine.len(),
            failed: mine.iter().find(outcome).map(|turn| turns.cell(turn, "outcome").to_owned()),
            time_s: figure("time_s").unwrap_or_default(),
            mean_bps: figure("mean_bps").unwrap_or_default(),
            second_half_bps: figure("second_half_bps"),
            startup_rtts: figure("startup_s").zip(round_trip).map(|(startup, rtt)| startup / rtt),
            memory_bytes: figure("sender_memory_bytes")
                .unwrap_or_default()
                .max(figure("receiver_memory_bytes").unwrap_or_default()),
            is_files: turns.cell(mine[0], "work").contains("file"),
        });
    }
    entries
}

fn table(entries: &[Entry]) -> Table {
    let is_files = entries.iter().any(|entry| entry.is_files);
    let heads: &[&str] = if is_files {
        &["tool", "turns", "time, s", "Mbit/s", "memory, MiB", "remark"]
    } else {
        &["tool", "turns", "Mbit/s", "second half", "80 % after, round trips", "memory, MiB", "remark"]
    };
    let mut table = Table::new(heads);
    for entry in entries {
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        let mbps = |bps: f64| if bps < 100e6 { format!("{:.2}", bps / 1e6) } else { format!("{:.0}", bps / 1e6) };
        let mut row = vec![entry.tool.clone(), entry.turns.to_string()];
        if is_files {
            row.push(format!("{:.2}", entry.time_s));
            row.push(mbps(entry.mean_bps));
        } else {
            row.push(mbps(entry.mean_bps));
            row.push(entry.second_half_bps.map_or_else(|| "-".to_owned(), mbps));
            row.push(optional(entry.startup_rtts));
        }
        row.push(format!("{:.0}", entry.memory_bytes / 1_048_576.0));
        row.push(entry.failed.clone().unwrap_or_default());
        table.rows.push(row);
    }
    table
}

/// Who was faster than haul in a row.
fn behind(name: &str, entries: &[Entry]) -> Vec<String> {
    let own = entries.iter().filter(|entry| HAUL.contains(&entry.tool.as_str()));
    own.flat_map(|haul| faster_than(name, haul, entries)).collect()
}

fn faster_than(name: &str, haul: &Entry, entries: &[Entry]) -> Vec<String> {
    let faster = entries.iter().filter(|other| {
        let is_sooner = if other.is_files { other.time_s < haul.time_s } else { other.mean_bps > haul.mean_bps };
        // Whoever came to the end has beaten one that did not.
        let beats = haul.failed.is_some() || is_sooner;
        !other.tool.starts_with(OWN) && other.failed.is_none() && beats
    });
    let line = |other: &Entry| {
        if let Some(failed) = &haul.failed {
            format!("{name}: {}: {failed}; {} came to its end", haul.tool, other.tool)
        } else if other.is_files {
            format!("{name}: {} {:.2} s, {} {:.2} s", haul.tool, haul.time_s, other.tool, other.time_s)
        } else {
            format!("{name}: {} {:.0} Mbit/s, {} {:.0} Mbit/s", haul.tool, haul.mean_bps / 1e6, other.tool, other.mean_bps / 1e6)
        }
    };
    faster.map(line).collect()
}

/// How a goal ends for which somebody's figure is missing.
const NOT_KNOWN: &str = ": not known, a figure is missing";

/// Lines like `  haul: NOT MET: second half at least 97 % ..`, below the name of their row.
fn goals(text: &str, section: &mut Section) {
    let mut row = "";
    for line in text.lines() {
        if !line.starts_with(' ') && line.contains(": ") {
            row = line.split(": ").next().unwrap_or_default();
        }
        let verdict = line.trim();
        if let Some((who, goal)) = verdict.split_once(": NOT MET: ") {
            section.missed.push(format!("{row}: {who}: {goal}"));
        } else if verdict.contains(": MET: ") {
            section.met += 1;
        } else if let Some((who, goal)) = verdict.split_once(": ").filter(|_| verdict.ends_with(NOT_KNOWN)) {
            section.unmeasured.push(format!("{row}: {who}: {goal}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str =
        "row,tool,turn,rtt_s,work,outcome,time_s,mean_bps,second_half_bps,startup_s,sender_memory_bytes,receiver_memory_bytes
\"1 Gbit/s, 100 ms\",haul,0,0.1,10 s,done,10,600000000,700000000,0.5,1048576,2097152
\"1 Gbit/s, 100 ms\",haul,1,0.1,10 s,done,10,800000000,900000000,0.7,1048576,2097152
\"1 Gbit/s, 100 ms\",cubic,0,0.1,10 s,done,10,750000000,,,0,0
\"1 Gbit/s, 100 ms\",udt,0,0.1,10 s,it crashed,10,950000000,,,0,0
\"1 Gbit/s, 100 ms\",haul-cp-ssh,0,0.1,10 s,done,10,740000000,,,0,0
";

    #[test]
    fn turns_are_averaged_and_whoever_is_faster_is_named() {
        let section = section(CSV, "");
        assert!(section.text.contains("| haul | 2 | 700 | 800 | 6.0 | 2 |  |"), "{}", section.text);
        assert_eq!(
            section.behind,
            ["1 Gbit/s, 100 ms: haul 700 Mbit/s, cubic 750 Mbit/s", "1 Gbit/s, 100 ms: haul-cp-ssh 740 Mbit/s, cubic 750 Mbit/s"]
        );
    }

    #[test]
    fn whoever_came_to_the_end_was_faster_than_haul_that_did_not() {
        let row = |tool: &str, outcome: &str| format!("\"1 GB\",{tool},0,0.1,1 file of 1 GB,{outcome},70,1,,,0,0\n");
        let csv = |other: &str| {
            format!("{}{}{}", CSV.lines().next().unwrap().to_owned() + "\n", row("haul-cp-ssh", "gave up"), row("scp", other))
        };
        assert_eq!(section(&csv("done"), "").behind, ["1 GB: haul-cp-ssh: gave up; scp came to its end"]);
        assert!(section(&csv("gave up"), "").behind.is_empty());
    }

    #[test]
    fn goals_without_a_figure_are_not_measured() {
        let text = "1 GB: files\n  haul: haul cp by ssh: at most 1 x the fastest other: not known, a figure is missing\n";
        let section = section(CSV, text);
        assert_eq!(section.unmeasured.len(), 1);
        assert!(section.unmeasured[0].starts_with("1 GB: haul: haul cp by ssh"), "{:?}", section.unmeasured);
    }

    #[test]
    fn goals_are_counted_and_misses_kept_with_their_row() {
        let text = "10 Gbit/s, 5 % loss: 20 s; at most\n  haul: MET: this\n  haul: NOT MET: memory at most 1, took 2\n";
        let section = section(CSV, text);
        assert_eq!((section.met, section.missed), (1, vec!["10 Gbit/s, 5 % loss: haul: memory at most 1, took 2".to_owned()]));
    }
}
