//! Progress for a terminal: a row for each member as far as there is room, and a bar for all of them.

use std::time::Duration;

use haul_fleet::told::{Look, text};
use haul_fleet::{MemberState, MemberView};
use haul_units::Bytes;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::{self, bar, height, shown};

/// Time before anything is drawn: a short job draws nothing.
const PATIENCE: Duration = Duration::from_millis(400);
/// Resolution of the bar.
const STEPS: u64 = 1000;
/// Rows that are left to others: the bar, what is said above it, the shell's line.
const LEFT_FREE: usize = 4;
/// Columns of the bar.
const BAR: usize = 16;
/// Columns where the terminal does not say how wide it is.
const USUAL_WIDTH: usize = 80;
/// Of a name so much tells something: less is left out.
const SHORTEST_NAME: usize = 8;
/// What stands between the parts of a line.
const SPACE: &str = "  ";
/// Rows where the terminal does not say how high it is.
const USUAL_HEIGHT: usize = 24;

pub struct Table {
    together: MultiProgress,
    rows: Vec<ProgressBar>,
    total: ProgressBar,
}

impl Table {
    /// Draws nothing yet.
    pub fn new() -> Self {
        let together = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let total = together.add(ProgressBar::new(STEPS));
        total.set_style(style(&format!("{} {{wide_msg}}", bar(BAR))).progress_chars("=> "));
        Self { together, rows: Vec::new(), total }
    }

    /// Draws.
    pub fn show(&mut self, look: &Look) {
        if look.since_command < PATIENCE {
            return;
        }
        let (shown_members, hidden) =
            chosen(&look.job.members, height().unwrap_or(USUAL_HEIGHT).saturating_sub(LEFT_FREE).max(1));
        let columns = terminal::width().unwrap_or(USUAL_WIDTH);
        let names = text::name_width(look.job.members.iter().map(|member| &*member.name));
        let width = names.min(columns.saturating_sub(text::BEHIND_NAME)).max(1);
        let row = |member: &MemberView| row(&text::member(member, width), text::file(member).as_deref(), columns);
        let mut lines: Vec<String> = shown_members.into_iter().map(row).collect();
        if hidden > 0 {
            lines.push(format!("and {hidden} more"));
        }
        self.rows.iter().skip(lines.len()).for_each(ProgressBar::finish_and_clear);
        self.rows.truncate(lines.len());
        while self.rows.len() < lines.len() {
            let row = self.together.insert_before(&self.total, ProgressBar::new(1));
            row.set_style(style("{wide_msg}"));
            self.rows.push(row);
        }
        for (row, line) in self.rows.iter().zip(lines) {
            row.set_message(shown(&line));
        }
        let part = if look.job.bytes == Bytes::ZERO {
            0.0
        } else {
            look.job.bytes_done.as_u64() as f64 / look.job.bytes.as_u64() as f64
        };
        self.total.set_position((part * STEPS as f64) as u64);
        self.total.set_message(shown(&in_room(&text::total(look), columns.saturating_sub(BAR + 1))));
    }

    /// Prints something that stays, above the rows.
    pub fn above(&self, print: impl FnOnce()) {
        self.together.suspend(print);
    }

    /// Takes all of it away.
    pub fn end(self) {
        self.rows.iter().for_each(ProgressBar::finish_and_clear);
        self.total.finish_and_clear();
        let _ = self.together.clear();
    }
}

/// The members that are shown where there is room for `most` rows, in their order, and how many are not: those with the least to tell.
fn chosen(members: &[MemberView], most: usize) -> (Vec<&MemberView>, usize) {
    if members.len() <= most {
        return (members.iter().collect(), 0);
    }
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&at| (interest(members[at].state), at));
    order.truncate(most - 1);
    order.sort_unstable();
    let hidden = members.len() - order.len();
    (order.into_iter().map(|at| &members[at]).collect(), hidden)
}

/// What is wrong first, then who works.
const fn interest(state: MemberState) -> u8 {
    match state {
        MemberState::Stalled => 0,
        MemberState::Busy => 1,
        MemberState::Listing | MemberState::Starting => 2,
        MemberState::Idle => 3,
        MemberState::Down => 4,
        MemberState::Done => 5,
    }
}

/// What one server does, and its file where that has room, from which the middle may be missing.
fn row(line: &str, file: Option<&str>, room: usize) -> String {
    let without = in_room(line, room);
    let left = room.saturating_sub(without.chars().count() + SPACE.len());
    match file {
        Some(file) if without == line && left >= SHORTEST_NAME.min(file.chars().count()) => {
            format!("{without}{SPACE}{}", text::elided(file, left))
        }
        _ => without,
    }
}

/// As many parts of a line as there is room for: a number that is cut would be another one.
fn in_room(line: &str, room: usize) -> String {
    let mut kept = line;
    while kept.chars().count() > room {
        let Some((before, _)) = kept.rsplit_once(SPACE) else { break };
        kept = before.trim_end();
    }
    kept.to_owned()
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_left_out_and_never_cut_to_another_number() {
        let line = "7.86 %  15.0 MiB of 191 MiB  43.1 Mbit/s  files 0/1  servers 2/12";
        let parts: Vec<&str> = line.split(SPACE).collect();
        for room in parts[0].len()..80 {
            let kept = in_room(line, room);
            assert!(kept.len() <= room && parts.join(SPACE).starts_with(&kept), "{room}: {kept}");
            assert!(kept.split(SPACE).zip(&parts).all(|(kept, part)| kept == *part), "{room}: {kept}");
        }
        let told = |room| row("store    busy  7.00 MiB", Some("results/2024/day  7.h5"), room);
        assert_eq!(told(80), "store    busy  7.00 MiB  results/2024/day  7.h5");
        assert_eq!(told(37), "store    busy  7.00 MiB  resul.. 7.h5");
        assert_eq!(told(30), "store    busy  7.00 MiB");
        assert_eq!(told(20), "store    busy");
    }

    #[test]
    fn where_there_is_no_room_the_busy_ones_are_shown() {
        let view = |name: &str, state| MemberView { name: name.into(), state, ..MemberView::default() };
        let members = [
            view("a", MemberState::Done),
            view("b", MemberState::Busy),
            view("c", MemberState::Stalled),
            view("d", MemberState::Busy),
        ];
        let (shown, hidden) = chosen(&members, 3);
        assert_eq!((shown.iter().map(|member| &*member.name).collect::<Vec<_>>(), hidden), (vec!["b", "c"], 2));
        assert_eq!(chosen(&members, 4).1, 0);
    }
}
