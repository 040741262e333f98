//! Results as a table for people, and as CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use haul_units::BitRate;

use super::measurement::{Measurement, Outcome, Results, RowResults};
use super::plan::{Path, Work};
use super::tool::Tool;

/// All rows, the bars of haul, what was skipped, and the settings of each tool.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    for row in &results.rows {
        text += &row_text(row);
        text.push('\n');
    }
    text += &settings_text(results);
    text
}

/// One row: its tools, best first as they were asked for, and whether haul reached its bars.
pub fn row_text(results: &RowResults) -> String {
    let row = &results.row;
    let limit = row.path.limit().map_or_else(String::new, |limit| format!("; haul's payload at most {limit}"));
    let mut text = format!("{}: {}{limit}\n", row.name, row.work);
    let in_memory = !matches!(row.work, Work::Files { .. });
    let _ = if in_memory {
        writeln!(
            text,
            "  {:<28}{:>14}{:>30}{:>14}{:>10}{:>9}{:>15}",
            "", "mean", "(least .. most)", "second half", "start", "x best", "cpu s + r"
        )
    } else {
        writeln!(text, "  {:<28}{:>10}{:>19}{:>14}{:>9}{:>15}", "", "time", "(least .. most)", "mean", "x best", "cpu s + r")
    };
    for candidate in &row.candidates {
        let path = candidate.elsewhere.as_ref().unwrap_or(&row.path);
        let turns: Vec<&Measurement> =
            results.measurements.iter().filter(|turn| turn.tool == candidate.tool && turn.path == *path).collect();
        let line = match Summary::of(&turns) {
            Some(summary) if in_memory => summary.memory_line(results),
            Some(summary) => summary.files_line(results),
            None => format!("  {}", why_nothing(&turns)),
        };
        let note = if candidate.elsewhere.is_some() { format!("  (on {path})") } else { String::new() };
        let _ = writeln!(text, "  {:<28}{line}{note}", candidate.tool.title());
        text += &parts_line(&turns);
    }
    for verdict in results.verdicts() {
        let _ = writeln!(text, "  {verdict}");
    }
    text
}

/// Where the time of a tool's turns went, in the mean, the longest part first.
fn parts_line(turns: &[&Measurement]) -> String {
    let told: Vec<_> = turns.iter().map(|turn| &turn.parts_s).filter(|parts| !parts.is_empty()).collect();
    let mut sums = BTreeMap::<&str, f64>::new();
    for (part, seconds) in told.iter().flat_map(|parts| parts.iter()).filter(|(part, _)| *part != "total") {
        *sums.entry(part).or_default() += seconds / told.len() as f64;
    }
    let mut parts: Vec<_> = sums.into_iter().filter(|(_, seconds)| *seconds >= 0.005).collect();
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let words: Vec<_> = parts.iter().map(|(part, seconds)| format!("{part} {seconds:.2}")).collect();
    if words.is_empty() { String::new() } else { format!("    of it {} s\n", words.join(", ")) }
}

/// The figures of a tool over its turns.
struct Summary {
    tool: Tool,
    path: Path,
    mean: BitRate,
    least: BitRate,
    most: BitRate,
    second_half: Option<BitRate>,
    startup: Option<Duration>,
    times: [Duration; 3],
    cpu: [Option<f64>; 2],
    gave_up: usize,
    failed: usize,
}

impl Summary {
    /// Nothing where no turn counts.
    fn of(turns: &[&Measurement]) -> Option<Self> {
        let counting: Vec<&Measurement> = turns.iter().copied().filter(|turn| turn.counts()).collect();
        let first = counting.first()?;
        let count = counting.len();
        let rates = || counting.iter().map(|turn| turn.mean);
        let times = || counting.iter().map(|turn| turn.time);
        let second: Vec<u64> = counting.iter().filter_map(|turn| turn.second_half).map(BitRate::as_bps).collect();
        let starts: Option<Vec<Duration>> = counting.iter().map(|turn| turn.startup).collect();
        // Of a processor.
        let cpu = |side: fn(&Measurement) -> Option<Duration>| {
            let of = |turn: &&Measurement| Some(side(turn)?.as_secs_f64() / turn.time.as_secs_f64().max(1e-3));
            counting.iter().map(of).sum::<Option<f64>>().map(|sum| sum / count as f64)
        };
        Some(Self {
            tool: first.tool,
            path: first.path.clone(),
            mean: BitRate::from_bps(rates().map(BitRate::as_bps).sum::<u64>() / count as u64),
            least: rates().min()?,
            most: rates().max()?,
            second_half: (!second.is_empty()).then(|| BitRate::from_bps(second.iter().sum::<u64>() / second.len() as u64)),
            startup: starts.map(|starts| starts.iter().sum::<Duration>() / count as u32),
            times: [times().sum::<Duration>() / count as u32, times().min()?, times().max()?],
            cpu: [cpu(|turn| turn.sender.cpu), cpu(|turn| turn.receiver.cpu)],
            gave_up: counting.iter().filter(|turn| turn.outcome == Outcome::GaveUp).count(),
            failed: turns.len() - count,
        })
    }

    fn memory_line(&self, row: &RowResults) -> String {
        let spread = format!("({} .. {})", self.least, self.most);
        let second = self.second_half.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        let rtt = self.path.rtt().as_secs_f64();
        let start = match self.startup {
            Some(time) if rtt > 0.0 => format!("{:.1} RTT", time.as_secs_f64() / rtt),
            Some(time) => format!("{:.1} s", time.as_secs_f64()),
            None if self.path.limit().is_none() => "-".to_owned(),
            None => "never".to_owned(),
        };
        let (best, cpu, note) = (self.times_best(row), self.cpu_text(), self.note());
        format!("{:>14}{spread:>30}{second:>14}{start:>10}{best:>9}{cpu:>15}{note}", self.mean.to_string())
    }

    fn files_line(&self, row: &RowResults) -> String {
        let [mean, least, most] = self.times.map(|time| time.as_secs_f64());
        let spread = format!("({least:.2} .. {most:.2})");
        let (best, cpu, note) = (self.times_best(row), self.cpu_text(), self.note());
        let over = if self.gave_up > 0 { ">" } else { "" };
        format!("{:>10}{spread:>19}{:>14}{best:>9}{cpu:>15}{note}", format!("{over}{mean:.2} s"), self.mean.to_string())
    }

    /// The rate beside that of the best tool that is not haul.
    fn times_best(&self, row: &RowResults) -> String {
        let Some((_, best)) = row.best_other() else { return "-".to_owned() };
        format!("{:.2}", self.mean.as_bps() as f64 / (best.as_bps() as f64).max(1.0))
    }

    fn cpu_text(&self) -> String {
        let text = |cpu: Option<f64>| cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{:.0} %", cpu * 100.0));
        let [sender, receiver] = self.cpu;
        format!("{} + {}", text(sender), text(receiver))
    }

    fn note(&self) -> String {
        let files = self.tool.kind() == super::Kind::Files;
        let gave_up = if self.gave_up > 0 && files { format!("  given up {} times", self.gave_up) } else { String::new() };
        let failed = if self.failed > 0 { format!("  failed {} times", self.failed) } else { String::new() };
        gave_up + &failed
    }
}

fn why_nothing(turns: &[&Measurement]) -> String {
    match turns.first().map(|turn| &turn.outcome) {
        None => "not measured".to_owned(),
        Some(Outcome::Skipped(why)) => format!("skipped: {why}"),
        Some(Outcome::Failed(why)) => format!("failed: {why}"),
        Some(Outcome::Done | Outcome::GaveUp) => String::new(),
    }
}

/// How each tool was set up, as of its first turn that counts.
fn settings_text(results: &Results) -> String {
    let mut text = "Settings\n".to_owned();
    for tool in Tool::all() {
        let mut turns = results.rows.iter().flat_map(|row| &row.measurements).filter(|turn| turn.tool == tool && turn.counts());
        if let Some(turn) = turns.next() {
            let _ = writeln!(text, "  {:<28}{}", tool.title(), turn.settings);
        }
    }
    text.push('\n');
    text + &facts_text(&results.facts)
}

/// Facts of the machine and of the run.
pub fn facts_text(facts: &BTreeMap<String, String>) -> String {
    let mut text = "Machine\n".to_owned();
    for (name, value) in facts {
        let _ = writeln!(text, "  {name:<28}{value}");
    }
    text
}

/// A line for each turn.
pub fn csv(results: &Results) -> String {
    let mut text =
        "row,tool,turn,rate_bps,rtt_s,loss,queue,work,outcome,time_s,bytes,mean_bps,second_half_bps,startup_s,sender_cpu_s,\
                    receiver_cpu_s,sender_memory_bytes,receiver_memory_bytes\n"
            .to_owned();
    for row in &results.rows {
        for turn in &row.measurements {
            text += &turn_csv(row, turn);
        }
    }
    text
}

fn turn_csv(row: &RowResults, turn: &Measurement) -> String {
    fn text<T>(value: Option<T>, format: impl Fn(T) -> String) -> String {
        value.map(format).unwrap_or_default()
    }
    let seconds = |time: Duration| format!("{:.4}", time.as_secs_f64());
    let bps = |rate: BitRate| rate.as_bps().to_string();
    let bytes = |bytes: haul_units::Bytes| bytes.0.to_string();
    let link = turn.path.link();
    let outcome = match &turn.outcome {
        Outcome::Done => "done",
        Outcome::GaveUp => "gave up",
        Outcome::Skipped(_) => "skipped",
        Outcome::Failed(_) => "failed",
    };
    let fields = [
        row.row.name.clone(),
        turn.tool.to_string(),
        turn.turn.to_string(),
        text(link, |link| bps(link.rate)),
        text(link, |link| seconds(link.rtt)),
        text(link, |link| link.loss.as_f64().to_string()),
        text(link, |link| link.queue.to_string()),
        row.row.work.to_string(),
        outcome.to_owned(),
        seconds(turn.time),
        bytes(turn.bytes),
        bps(turn.mean),
        text(turn.second_half, bps),
        text(turn.startup, seconds),
        text(turn.sender.cpu, seconds),
        text(turn.receiver.cpu, seconds),
        text(turn.sender.memory, bytes),
        text(turn.receiver.memory, bytes),
    ];
    fields.map(|field| quoted(&field)).join(",") + "\n"
}

/// RFC 4180 2.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use haul_units::{Bytes, Ratio};

    use super::super::measurement::Usage;
    use super::super::plan::{Bar, Row};
    use super::super::series::Series;
    use super::*;
    use haul_lab::LinkOptions;

    const SECONDS: Duration = Duration::from_secs(2);

    fn turn(tool: Tool, number: u32, mbps: u64, path: &Path) -> Measurement {
        let mean = BitRate::mbps(mbps);
        let tenth = |n: u64| (Duration::from_millis(n * 100), mean.bytes_in(Duration::from_millis(100)));
        let usage = Usage { cpu: Some(Duration::from_secs(1)), memory: Some(Bytes::mib(50)) };
        Measurement {
            tool,
            turn: number,
            path: path.clone(),
            outcome: Outcome::Done,
            time: SECONDS,
            bytes: mean.bytes_in(SECONDS),
            mean,
            second_half: Some(mean),
            startup: Some(Duration::from_millis(300)),
            series: (1..=20).map(tenth).collect(),
            sender: usage,
            receiver: usage,
            settings: "as it is".to_owned(),
            parts_s: BTreeMap::new(),
        }
    }

    fn results() -> Results {
        let path = Path::Wan(LinkOptions { rate: BitRate::gbps(1), loss: Ratio::percent(1.0), ..LinkOptions::default() });
        let mut row = Row::new(path.clone(), Work::Time(SECONDS), &[Tool::Haul, Tool::Bbr, Tool::Udt]);
        row.bars = vec![
            Bar::SecondHalfOfLimit(Ratio::percent(90.0)),
            Bar::TimesRateOf(Tool::Bbr, 4.0),
            Bar::StartedWithin(Tool::Haul, 4.0),
            Bar::MemoryOfEachSide,
        ];
        let skipped = Measurement {
            outcome: Outcome::Skipped("there is no udt-bulk here: build it".to_owned()),
            series: Series::default(),
            ..turn(Tool::Udt, 0, 0, &path)
        };
        let measurements = vec![
            turn(Tool::Haul, 0, 800, &path),
            turn(Tool::Bbr, 0, 100, &path),
            skipped,
            turn(Tool::Haul, 1, 900, &path),
            turn(Tool::Bbr, 1, 300, &path),
        ];
        let facts = BTreeMap::from([("cpu".to_owned(), "a fast one".to_owned())]);
        Results { name: "test".to_owned(), facts, rows: vec![RowResults { row, measurements }] }
    }

    #[test]
    fn the_table_has_means_spreads_ratios_and_who_is_missing() {
        let text = text(&results());
        let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
        let haul = line("haul ");
        for part in ["850 Mbit/s", "(800 Mbit/s .. 900 Mbit/s)", "3.0 RTT", "4.25", "50 % + 50 %"] {
            assert!(haul.contains(part), "{part} in {haul}");
        }
        assert!(line("TCP BBR").contains("200 Mbit/s") && line("TCP BBR").contains("1.00"), "{text}");
        assert!(line("UDT 4").ends_with("skipped: there is no udt-bulk here: build it"), "{text}");
        assert!(text.contains("a fast one") && text.contains("as it is"));
    }

    #[test]
    fn verdicts_go_by_the_worst_turn() {
        let verdicts = results().rows[0].verdicts();
        let met: Vec<bool> = verdicts.iter().map(|verdict| verdict.met).collect();
        // 800 of 942 Mbit/s are 85 %; 4 times 200 are 800; 3 round trips; 50 of 152 MiB.
        assert_eq!(met, [false, true, true, true], "{verdicts:?}");
        assert!(verdicts[0].to_string().contains("NOT MET") && verdicts[0].to_string().contains("84.9 %"), "{}", verdicts[0]);
        let mut slow = results();
        slow.rows[0].measurements[0].startup = None;
        assert!(!slow.rows[0].verdicts()[2].met, "a turn that never got there is one too many");
        let mut failed = results();
        let broke = Outcome::Failed("the files at the other end are not those that were sent".to_owned());
        let turn = Measurement { outcome: broke, ..turn(Tool::Haul, 2, 0, &failed.rows[0].row.path) };
        failed.rows[0].measurements.push(turn);
        assert!(failed.rows[0].verdicts().iter().all(|verdict| !verdict.met), "a turn that failed has met nothing");
    }

    #[test]
    fn csv_has_a_line_for_each_turn() {
        let csv = csv(&results());
        assert_eq!(csv.lines().count(), 6);
        let fields = csv.lines().next().map(|line| line.split(',').count());
        let unquoted = csv.lines().nth(1).map(|line| line.replace(", ", " ").split(',').count());
        assert_eq!(fields, unquoted, "{csv}");
    }

    #[test]
    fn a_row_keeps_where_the_time_went() {
        let mut results = results();
        let parts = |login: f64| [("login", login), ("bulk", 0.8), ("rename", 0.0), ("total", login + 0.8)];
        for (turn, login) in [(0, 1.5), (3, 1.7)] {
            let parts_s = parts(login).map(|(part, seconds)| (part.to_owned(), seconds));
            results.rows[0].measurements[turn].parts_s = BTreeMap::from(parts_s);
        }
        let text = text(&results);
        assert!(text.contains("\n    of it login 1.60, bulk 0.80 s\n"), "{text}");
        assert_eq!(text.matches("of it").count(), 1, "who does not tell has none: {text}");
        let json = serde_json::to_string(&results).expect("plain");
        assert_eq!(json.matches("parts_s").count(), 2);
        assert_eq!(serde_json::from_str::<Results>(&json).ok(), Some(results));
    }

    #[test]
    fn results_are_read_back_as_they_were_written() {
        let results = results();
        let json = serde_json::to_string(&results).expect("plain");
        let before = json.replace("candidates", "contestants");
        assert!(before != json && serde_json::from_str::<Results>(&before).ok().as_ref() == Some(&results));
        assert_eq!(serde_json::from_str::<Results>(&json).ok(), Some(results));
    }

    #[test]
    fn charts_are_drawn_of_what_is_there() {
        let mut results = results();
        let names =
            |results: &Results| super::super::figures::figures(results).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&results), ["time-1"]);
        let mut other = results.rows[0].clone();
        let path = Path::Wan(LinkOptions { rate: BitRate::gbps(1), ..LinkOptions::default() });
        other.row.path = path.clone();
        other.measurements.iter_mut().for_each(|turn| turn.path = path.clone());
        results.rows.push(other);
        assert_eq!(names(&results), ["loss", "time-1", "time-2"]);
        for (name, figure) in super::super::figures::figures(&results) {
            assert!(figure.svg().is_ok_and(|svg| svg.contains("TCP BBR")), "{name}");
        }
    }
}
