//! Progress for a terminal.

use std::time::Duration;

use haul_copy::told::Look;
use haul_copy::told::text::{path_parts, stalled, time_left, waiting};
use haul_files::WirePath;
use haul_units::Bytes;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::{bar, shown, width};

/// Time before anything is drawn: a short copy draws nothing.
const PATIENCE: Duration = Duration::from_millis(400);
/// Resolution of the bar.
const STEPS: u64 = 1000;

/// A bar for everything; and above it, where there are several files, a line about the one under way, with a bar if it is a large one.
pub struct Bars {
    together: MultiProgress,
    /// Drawn once a second file is there.
    file: Option<ProgressBar>,
    total: ProgressBar,
    /// A line of text.
    plain: ProgressStyle,
    /// A bar and text.
    barred: ProgressStyle,
    /// Columns of the terminal when it was last drawn.
    columns: usize,
}

impl Bars {
    /// Draws nothing yet.
    pub fn new() -> Self {
        let together = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let total = together.add(ProgressBar::new(STEPS));
        let style = |template: &str| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let styles = (style("{msg}"), style(&format!("{} {{msg}}", bar(24))).progress_chars("=> "));
        total.set_style(styles.1.clone());
        Self { together, file: None, total, plain: styles.0, barred: styles.1, columns: 0 }
    }

    /// Draws.
    pub fn show(&mut self, look: &Look) {
        if look.elapsed < PATIENCE {
            return;
        }
        let columns = width().unwrap_or(USUAL_COLUMNS);
        if columns < self.columns {
            // The terminal has broken the lines in two; what is drawn next does not know how many there are.
            let _ = self.together.clear();
        }
        self.columns = columns;
        let has_bar = columns >= LEAST_FOR_A_BAR;
        let (for_text, for_bar) = (columns.saturating_sub(1), columns.saturating_sub(BAR + 2));
        let room = if has_bar { for_bar } else { for_text };
        let style = |with_bar: bool| if with_bar && has_bar { self.barred.clone() } else { self.plain.clone() };

        let found = look.counts.found.as_u64();
        let part = if found == 0 { 0.0 } else { look.counts.present().as_u64() as f64 / found as f64 };
        self.total.set_style(style(true));
        self.total.set_position(if look.counts.complete { (part * STEPS as f64) as u64 } else { 0 });
        let several = look.counts.found_files > 1;
        self.total.set_message(shown(&total_line(look, part, !several, room)));
        if !several && self.file.is_none() {
            return;
        }
        let part = file_part(look);
        let file = self.file.get_or_insert_with(|| self.together.insert_before(&self.total, ProgressBar::new(STEPS)));
        file.set_style(style(part.is_some()));
        file.set_position((part.unwrap_or(0.0) * STEPS as f64) as u64);
        file.set_message(shown(&file_line(look, if part.is_some() { room } else { for_text })));
    }

    /// Prints something that stays, above the bars.
    pub fn above(&self, print: impl FnOnce()) {
        self.together.suspend(print);
    }

    /// Takes the bars away.
    pub fn end(self) {
        self.file.iter().for_each(ProgressBar::finish_and_clear);
        self.total.finish_and_clear();
        let _ = self.together.clear();
    }
}

/// Columns of the bar.
const BAR: usize = 24;
/// On a narrower terminal words say more than a bar.
const LEAST_FOR_A_BAR: usize = 72;
/// What a terminal that does not say is taken to have.
const USUAL_COLUMNS: usize = 80;

fn total_line(look: &Look, part: f64, alone: bool, room: usize) -> String {
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
    if alone {
        parts.extend(path_parts(&look.path));
    }
    let text = fitting(&parts, room);
    match &look.active {
        Some((file, _)) if alone && text == parts.join(SPACE) => {
            with_name(&text, &WirePath::from(file.path.as_path()).to_string(), "", room)
        }
        _ => text,
    }
}

/// The part of the current file that has arrived, if it is told.
fn file_part(look: &Look) -> Option<f64> {
    let (file, _) = look.active.as_ref()?;
    let arrived = file.arrived.filter(|_| file.size > Bytes::ZERO)?;
    Some((arrived.as_u64() as f64 / file.size.as_u64() as f64).min(1.0))
}

fn file_line(look: &Look, room: usize) -> String {
    let counts = &look.counts;
    let mut parts = vec![format!("{}/{} files", counts.present_files(), counts.found_files)];
    let Some((file, others)) = &look.active else {
        parts.extend(path_parts(&look.path));
        return fitting(&parts, room);
    };
    let name = WirePath::from(file.path.as_path()).to_string();
    let (first, behind) = match (file.arrived, file.size) {
        (Some(arrived), Bytes::ZERO) => (Some(arrived.to_string()), String::new()),
        (Some(arrived), size) => (Some(format!("{arrived} of {size}")), String::new()),
        (None, Bytes::ZERO) => (None, String::new()),
        (None, size) => (None, format!(" ({size})")),
    };
    parts.splice(0..0, first);
    parts.extend(path_parts(&look.path));
    let more = if *others == 0 { String::new() } else { format!(" and {others} more") };
    // A name says more than the state of the path.
    let least = LEAST_OF_A_NAME.min(name.chars().count()) + behind.chars().count() + more.chars().count() + SPACE.len();
    let start = fitting(&parts, room.saturating_sub(least));
    with_name(&start, &name, &format!("{behind}{more}"), room)
}

/// As many of these, from the first on, as there is room for: a number that is cut would be another one.
fn fitting(parts: &[String], room: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let more = part.chars().count() + if text.is_empty() { 0 } else { SPACE.len() };
        if text.chars().count() + more > room {
            break;
        }
        if !text.is_empty() {
            text += SPACE;
        }
        text += part;
    }
    text
}

/// A name behind a text, as much of it as there is room for, and what stands behind the name.
fn with_name(text: &str, name: &str, behind: &str, room: usize) -> String {
    let taken = text.chars().count() + if text.is_empty() { 0 } else { SPACE.len() } + behind.chars().count();
    let left = room.saturating_sub(taken);
    if left < LEAST_OF_A_NAME.min(name.chars().count()) {
        return text.to_owned();
    }
    let space = if text.is_empty() { "" } else { SPACE };
    format!("{text}{space}{}{behind}", elided(name, left))
}

/// A name in so many columns: its beginning says where it is, its end what it is.
fn elided(name: &str, room: usize) -> String {
    let count = name.chars().count();
    if count <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(ELLIPSIS.len());
    let (start, end) = (kept / 2, kept - kept / 2);
    let start: String = name.chars().take(start).collect();
    let end: String = name.chars().skip(count - end).collect();
    format!("{start}{ELLIPSIS}{end}")
}

const SPACE: &str = "  ";
const ELLIPSIS: &str = "...";
/// Less of a name names nothing.
const LEAST_OF_A_NAME: usize = 12;

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
        assert_eq!(file_line(&look, 80), "0/2 files  a\\u{1b}[2Jb (3.00 MiB) and 1 more");
        assert_eq!(file_part(&look), None);
        let file = ActiveFile { path: "big".into(), size: Bytes::mib(4), arrived: Some(Bytes::mib(1)) };
        look.active = Some((file, 0));
        assert_eq!((file_line(&look, 80).as_str(), file_part(&look)), ("1.00 MiB of 4.00 MiB  0/2 files  big", Some(0.25)));
        assert_eq!(total_line(&look, 0.25, false, 80), " 25 %  1.00 MiB of 4.00 MiB  100 Mbit/s  1 s left");
        assert_eq!(total_line(&look, 0.25, true, 80), " 25 %  1.00 MiB of 4.00 MiB  100 Mbit/s  1 s left  big");
    }

    #[test]
    fn what_there_is_no_room_for_is_left_out_and_never_cut_to_something_else() {
        let counts =
            Counts { found_files: 1, found: Bytes::mib(4000), complete: true, arrived: Bytes::mib(1000), ..Counts::default() };
        let name = "results/2026/very-long-name-of-an-experiment.tar.zst";
        let file = ActiveFile { path: name.into(), size: Bytes::mib(4000), arrived: Some(Bytes::mib(1000)) };
        let look = Look {
            counts,
            path: PathView::default(),
            rate: BitRate::mbps(100),
            elapsed: Duration::ZERO,
            active: Some((file, 0)),
        };
        let whole = [" 25 %", "1000 MiB of 3.91 GiB", "100 Mbit/s", "4:12 left"].join(SPACE);
        for room in 0..120 {
            let line = total_line(&look, 0.25, true, room);
            assert!(line.chars().count() <= room, "{room}: {line}");
            let (numbers, end) = line.split_at(line.len().min(whole.len()));
            assert!(
                whole.starts_with(numbers) && (numbers.len() == whole.len() || whole[numbers.len()..].starts_with(SPACE))
                    || numbers.is_empty(),
                "{room}: {line}"
            );
            assert!(
                end.is_empty() || end.contains(name) || end.starts_with("  res") && end.ends_with("zst") && end.contains("..."),
                "{room}: {line}"
            );
            assert!(file_line(&look, room).chars().count() <= room, "{room}");
        }
        assert_eq!(elided("abcdefghij", 7), "ab...ij");
    }
}
