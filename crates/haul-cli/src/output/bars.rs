//! Progress for a terminal.

use std::time::Duration;

use haul_files::WirePath;
use haul_units::Bytes;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::colours;
use super::lines::{path_parts, time_left};
use super::monitor::Look;

/// Time before anything is drawn: a short copy draws nothing.
const PATIENCE: Duration = Duration::from_millis(400);
/// Resolution of the bar.
const STEPS: u64 = 1000;

/// A line about the file under way, and a bar for everything.
pub struct Bars {
    together: MultiProgress,
    file: ProgressBar,
    total: ProgressBar,
}

impl Bars {
    /// Draws nothing yet.
    pub fn new() -> Self {
        let together = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let file = together.add(ProgressBar::no_length());
        let total = together.add(ProgressBar::new(STEPS));
        let bar = if colours() { "{bar:24.cyan/dim}" } else { "{bar:24}" };
        let style = |template: &str| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        file.set_style(style("{wide_msg}"));
        total.set_style(style(&format!("{bar} {{wide_msg}}")).progress_chars("=> "));
        Self { together, file, total }
    }

    /// Draws.
    pub fn show(&mut self, look: &Look) {
        if look.elapsed < PATIENCE {
            return;
        }
        let found = look.counts.found.as_u64();
        let part = if found == 0 { 0.0 } else { look.counts.present().as_u64() as f64 / found as f64 };
        self.total.set_position(if look.counts.complete { (part * STEPS as f64) as u64 } else { 0 });
        self.total.set_message(total_line(look, part));
        self.file.set_message(file_line(look));
    }

    /// Prints something that stays, above the bars.
    pub fn above(&self, print: impl FnOnce()) {
        self.together.suspend(print);
    }

    /// Takes the bars away.
    pub fn end(self) {
        self.file.finish_and_clear();
        self.total.finish_and_clear();
        let _ = self.together.clear();
    }
}

fn total_line(look: &Look, part: f64) -> String {
    let counts = &look.counts;
    let share = if counts.complete { format!("{:3.0} %", part * 100.0) } else { "scanning".to_owned() };
    let mut parts = vec![share, format!("{} of {}", counts.present(), counts.found), look.rate.to_string()];
    parts.extend(time_left(look));
    parts.join("  ")
}

fn file_line(look: &Look) -> String {
    let counts = &look.counts;
    let mut parts = path_parts(&look.path);
    parts.push(format!("{}/{} files", counts.present_files(), counts.found_files));
    let start = parts.join("  ");
    let Some((file, others)) = &look.active else { return start };
    let name = WirePath::from(file.path.as_path());
    let size = if file.size == Bytes::ZERO { String::new() } else { format!(" ({})", file.size) };
    let more = if *others == 0 { String::new() } else { format!(" and {others} more") };
    format!("{start}  {name}{size}{more}")
}

#[cfg(test)]
mod tests {
    use haul_units::BitRate;

    use super::super::tally::{ActiveFile, Counts};
    use super::*;
    use crate::session::PathView;

    #[test]
    fn lines_name_the_file_and_the_total() {
        let counts = Counts { found_files: 2, found: Bytes::mib(4), complete: true, arrived: Bytes::mib(1), ..Counts::default() };
        let file = ActiveFile { path: "a\x1b[2Jb".into(), size: Bytes::mib(3) };
        let look = Look {
            counts,
            path: PathView::default(),
            rate: BitRate::mbps(100),
            elapsed: Duration::ZERO,
            active: Some((file, 1)),
        };
        assert_eq!(file_line(&look), "RTT 0.00 ms  0/2 files  a\\u{1b}[2Jb (3.00 MiB) and 1 more");
        assert_eq!(total_line(&look, 0.25), " 25 %  1.00 MiB of 4.00 MiB  100 Mbit/s  1 s left");
    }
}
