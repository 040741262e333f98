//! How long each program took, the longest first in each lane.

use std::fmt::Write as _;
use std::time::Duration;

use super::lanes::Lane;
use super::run::Ended;

pub fn table(ended: &[Ended], building: Duration, in_all: Duration) -> String {
    let mut text = format!("{:>10} {:>7}  {}\n", "seconds", "tests", "program");
    for lane in Lane::ALL {
        let mut of: Vec<&Ended> = ended.iter().filter(|ended| ended.lane == lane).collect();
        of.sort_by_key(|ended| std::cmp::Reverse(ended.took));
        for one in of {
            let mark = if one.success { "" } else { "  FAILED" };
            let _ = writeln!(text, "{:>10.1} {:>7}  {} ({lane}){mark}", one.took.as_secs_f64(), tests(&one.output), one.name);
        }
    }
    for (time, what) in [(building, "building"), (in_all, "in all")] {
        let _ = writeln!(text, "{:>10.1} {:>7}  {what}", time.as_secs_f64(), "");
    }
    text
}

/// What programs say that they did not test, and why; each reason of a program once.
pub fn skipped(ended: &[Ended]) -> Vec<String> {
    let mut lines = Vec::new();
    for one in ended {
        for said in one.output.lines().filter(|line| line.starts_with(SKIPPED)) {
            let line = format!("{said} ({})", one.name);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// How a test begins the line in which it says so, on the process's own standard error: what goes through `eprintln!` is shown only of tests that fail.
const SKIPPED: &str = "SKIPPED";

/// How many tests ran; documentation says so once a crate.
pub fn tests(output: &str) -> u64 {
    // "test result: ok. 89 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.83s"
    let count = |part: &str, word: &str| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok();
    let of_line = |line: &str| -> u64 {
        let Some((_, counts)) = line.split_once(". ") else { return 0 };
        counts.split(';').filter_map(|part| count(part, "passed").or_else(|| count(part, "failed"))).sum()
    };
    output.lines().filter(|line| line.starts_with("test result:")).map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(name: &str, lane: Lane, seconds: u64, success: bool, output: &str) -> Ended {
        let took = Duration::from_secs(seconds);
        Ended { name: name.into(), lane, success, how: String::new(), output: output.into(), took }
    }

    #[test]
    fn what_was_skipped_is_said_once() {
        let said = "test a ... SKIPPED\nSKIPPED: mount: no root\nok\nSKIPPED: mount: no root\n";
        let ended = [ended("a/lib", Lane::Waiting, 1, true, said), ended("b/lib", Lane::Waiting, 1, true, "ok\n")];
        assert_eq!(skipped(&ended), ["SKIPPED: mount: no root (a/lib)"]);
    }

    #[test]
    fn the_longest_of_a_lane_come_first_and_what_failed_is_marked() {
        let line = "test result: FAILED. 89 passed; 1 failed; 3 ignored; 0 measured; 2 filtered out; finished in 2.83s\n";
        let ended = [
            ended("a/lib", Lane::Processor, 1, true, ""),
            ended("b/lib", Lane::Waiting, 7, true, &format!("{line}{line}")),
            ended("c/lib", Lane::Processor, 2, false, line),
        ];
        let text = table(&ended, Duration::from_secs(3), Duration::from_secs(9));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["2.0", "90", "c/lib", "(processor)", "FAILED"]);
        assert_eq!(lines[2], ["1.0", "0", "a/lib", "(processor)"]);
        assert_eq!(lines[3], ["7.0", "180", "b/lib", "(waiting)"]);
        assert_eq!(lines[5], ["9.0", "in", "all"]);
    }
}
