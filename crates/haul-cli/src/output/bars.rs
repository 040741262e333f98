//! Progress for a terminal.

use std::time::Duration;

use haul_files::WirePath;
use haul_units::Bytes;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::lines::{path_parts, stalled, time_left, waiting};
use super::look::Look;
use crate::terminal::{colours, shown};

/// Time before anything is drawn: a short copy draws nothing.
const PATIENCE: Duration = Duration::from_millis(400);
/// Resolution of the bar.
const STEPS: u64 = 1000;

/// A line about the file under way, with a bar if it is a large one, and a bar for everything.
pub struct Bars {
    together: MultiProgress,
    file: ProgressBar,
    total: ProgressBar,
    /// A line of text.
    plain: ProgressStyle,
    /// A bar and text.
    barred: ProgressStyle,
}

impl Bars {
    /// Draws nothing yet.
    pub fn new() -> Self {
        let together = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let file = together.add(ProgressBar::new(STEPS));
        let total = together.add(ProgressBar::new(STEPS));
        let bar = if colours() { "{bar:24.cyan/dim}" } else { "{bar:24}" };
        let style = |template: &str| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let styles = (style("{wide_msg}"), style(&format!("{bar} {{wide_msg}}")).progress_chars("=> "));
        file.set_style(styles.0.clone());
        total.set_style(styles.1.clone());
        Self { together, file, total, plain: styles.0, barred: styles.1 }
    }

    /// Draws.
    pub fn show(&mut self, look: &Look) {
        if look.elapsed < PATIENCE {
            return;
        }
        let found = look.counts.found.as_u64();
        let part = if found == 0 { 0.0 } else { look.counts.present().as_u64() as f64 / found as f64 };
        self.total.set_position(if look.counts.complete { (part * STEPS as f64) as u64 } else { 0 });
        self.total.set_message(shown(&total_line(look, part)));
        let part = file_part(look);
        self.file.set_style(if part.is_some() { self.barred.clone() } else { self.plain.clone() });
        self.file.set_position((part.unwrap_or(0.0) * STEPS as f64) as u64);
        self.file.set_message(shown(&file_line(look)));
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
    if let Some(stalled) = stalled(&look.path) {
        return stalled;
    }
    if let Some(waiting) = waiting(look) {
        return waiting.to_owned();
    }
    let counts = &look.counts;
    let share = if counts.complete { format!("{:3.0} %", part * 100.0) } else { "scanning".to_owned() };
    let mut parts = vec![share, format!("{} of {}", counts.present(), counts.found), look.rate.to_string()];
    parts.extend(time_left(look));
    parts.join("  ")
}

/// The part of the current file that has arrived, if it is told.
fn file_part(look: &Look) -> Option<f64> {
    let (file, _) = look.active.as_ref()?;
    let arrived = file.arrived.filter(|_| file.size > Bytes::ZERO)?;
    Some((arrived.as_u64() as f64 / file.size.as_u64() as f64).min(1.0))
}

fn file_line(look: &Look) -> String {
    let counts = &look.counts;
    let mut parts = path_parts(&look.path);
    parts.push(format!("{}/{} files", counts.present_files(), counts.found_files));
    let start = parts.join("  ");
    let Some((file, others)) = &look.active else { return start };
    let name = WirePath::from(file.path.as_path());
    let more = if *others == 0 { String::new() } else { format!(" and {others} more") };
    match (file.arrived, file.size) {
        // The name last: it may be cut off.
        (Some(arrived), Bytes::ZERO) => format!("{arrived}  {start}  {name}{more}"),
        (Some(arrived), size) => format!("{arrived} of {size}  {start}  {name}{more}"),
        (None, Bytes::ZERO) => format!("{start}  {name}{more}"),
        (None, size) => format!("{start}  {name} ({size}){more}"),
    }
}

#[cfg(test)]
mod tests {
    use haul_units::BitRate;

    use super::*;
    use haul_copy::PathView;
    use haul_copy::{ActiveFile, Counts};

    #[test]
    fn lines_name_the_file_and_the_total() {
        let counts = Counts { found_files: 2, found: Bytes::mib(4), complete: true, arrived: Bytes::mib(1), ..Counts::default() };
        let file = ActiveFile { path: "a\x1b[2Jb".into(), size: Bytes::mib(3), arrived: None };
        let mut look = Look {
            counts,
            path: PathView::default(),
            rate: BitRate::mbps(100),
            elapsed: Duration::ZERO,
            active: Some((file, 1)),
        };
        assert_eq!(file_line(&look), "0/2 files  a\\u{1b}[2Jb (3.00 MiB) and 1 more");
        assert_eq!(file_part(&look), None);
        let file = ActiveFile { path: "big".into(), size: Bytes::mib(4), arrived: Some(Bytes::mib(1)) };
        look.active = Some((file, 0));
        assert_eq!((file_line(&look).as_str(), file_part(&look)), ("1.00 MiB of 4.00 MiB  0/2 files  big", Some(0.25)));
        assert_eq!(total_line(&look, 0.25), " 25 %  1.00 MiB of 4.00 MiB  100 Mbit/s  1 s left");
    }
}
