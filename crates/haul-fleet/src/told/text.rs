//! Rows and lines of text.

use std::time::Duration;

use haul_copy::told::text::{path_parts, short_duration};
use haul_files::WirePath;
use haul_plan::Why;
use haul_units::{BitRate, Bytes, Ratio, milliseconds};

use super::look::{Look, Said};
use crate::observe::{JobReport, MemberState, MemberView};

/// The longest name that a column is made wide enough for.
const WIDEST_NAME: usize = 28;

/// Columns that a row needs behind the member's name for its state and its rate.
pub const BEHIND_NAME: usize = 2 + 7 + 2 + 12;

/// One member in one row, without its file (`file`).
pub fn member(view: &MemberView, width: usize) -> String {
    let name = elided(&view.name, width);
    let mut parts = vec![format!("{name:width$}  {:>7}  {:>12}", state(view.state), rate(view))];
    parts.extend(path_parts(&view.path));
    if view.path.server_demand.wanted > 0.0 {
        parts.push(format!("cpu {:.0} %", view.path.server_demand.wanted * 100.0));
    }
    if let Some(free) = view.path.machine.and_then(|machine| machine.free_bytes) {
        parts.push(format!("disk {} free", Bytes(free)));
    }
    parts.push(view.delivered.to_string());
    parts.join("  ")
}

/// The file that it is at.
pub fn file(view: &MemberView) -> Option<String> {
    view.file.as_ref().map(|file| WirePath::from(file.as_path()).to_string())
}

/// All members in one line.
pub fn total(look: &Look) -> String {
    let job = &look.job;
    let listing =
        job.members.iter().filter(|member| matches!(member.state, MemberState::Starting | MemberState::Listing)).count();
    if job.files == 0 && job.bytes == Bytes::ZERO && listing > 0 {
        return format!("waiting for {listing} of {} servers to say what they have", job.members.len());
    }
    let share = Ratio::new(job.bytes_done.as_u64() as f64 / job.bytes.as_u64().max(1) as f64);
    let busy = job.members.iter().filter(|member| member.state == MemberState::Busy).count();
    let mut parts = vec![
        share.to_string(),
        format!("{} of {}", job.bytes_done, job.bytes),
        look.rate.to_string(),
        format!("files {}/{}", job.files_done, job.files),
        format!("servers {busy}/{}", job.members.len()),
    ];
    parts.extend(look.left().map(|left| format!("{} left", short_duration(left))));
    parts.join("  ")
}

/// What was told, in a line; told of only where names are wanted. `also_servers`: in a log, for a table shows servers by itself.
pub fn said<F>(said: &Said<F>, also_servers: bool) -> Option<String> {
    Some(match said {
        Said::File { member: Some(member), path, size } => {
            format!("{} ({size}) on {member}", WirePath::from(path.as_path()))
        }
        Said::File { member: None, path, size } => format!("{} ({size})", WirePath::from(path.as_path())),
        Said::Ordered { member, path, range, why } => {
            let (path, length) = (WirePath::from(path.as_path()), Bytes(range.end - range.start));
            format!("{member}: {path} from {}, {length}{}", Bytes(range.start), because(*why))
        }
        // Where the first answer came through ssh, the distance is known a little later.
        Said::Up { member, rtt } if also_servers && rtt.is_zero() => format!("{member}: up"),
        Said::Up { member, rtt } if also_servers => {
            format!("{member}: up, RTT {}", milliseconds(u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)))
        }
        Said::Listed { member, files, bytes } if also_servers => {
            let plural = if *files == 1 { "" } else { "s" };
            format!("{member}: has {files} file{plural}, {bytes}")
        }
        _ => return None,
    })
}

/// How wide the column of names is.
pub fn name_width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(4, WIDEST_NAME)
}

/// What each member did, once it is over.
pub fn summary(report: &JobReport) -> Vec<String> {
    if report.members.iter().all(|member| member.delivered == Bytes::ZERO && member.files == 0 && member.down.is_none()) {
        return Vec::new();
    }
    let width = name_width(report.members.iter().map(|member| &*member.name));
    // Members have said so themselves.
    let all = report.members.iter().map(|member| member.delivered.as_u64()).fold(0, u64::saturating_add);
    let mut lines: Vec<String> = report
        .members
        .iter()
        .map(|member| {
            let name = elided(&member.name, width);
            let share = Ratio::new(member.delivered.as_u64() as f64 / all.max(1) as f64);
            let idle = report.elapsed.saturating_sub(member.busy);
            let rate = if member.busy.is_zero() { BitRate::ZERO } else { BitRate::of(member.delivered, member.busy) };
            let gone = member.down.as_ref().map(|why| format!("  gone: {why}")).unwrap_or_default();
            format!(
                "  {name:width$}  {:>10}  {share:>7}  {rate:>12}  {}  idle {}{gone}",
                member.delivered.to_string(),
                files(member.files),
                seconds(idle)
            )
        })
        .collect();
    if report.wasted > Bytes::ZERO {
        lines.push(format!("  {} came for nothing: sent twice, or by servers that were given up", report.wasted));
    }
    lines
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Why a member was told, where that is worth a word.
pub fn because(why: Why) -> &'static str {
    match why {
        Why::Next => "",
        Why::Taken(_) => ", taken from another one",
        Why::Twice(_) => ", sent a second time",
    }
}

/// A state in a word.
pub const fn state(state: MemberState) -> &'static str {
    match state {
        MemberState::Starting => "starts",
        MemberState::Listing => "lists",
        MemberState::Busy => "busy",
        MemberState::Idle => "idle",
        MemberState::Stalled => "stalled",
        MemberState::Done => "done",
        MemberState::Down => "gone",
    }
}

fn rate(view: &MemberView) -> String {
    if view.state == MemberState::Busy { view.rate.to_string() } else { String::new() }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// A name in no more than `width` characters: its beginning and its end tell names apart.
pub fn elided(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let front = width.saturating_sub(2) / 2;
    let back = width.saturating_sub(2) - front;
    let begin: String = name.chars().take(front).collect();
    let end: String = name.chars().skip(length - back).collect();
    format!("{begin}..{end}")
}

#[cfg(test)]
mod tests {
    use crate::observe::{MemberReport, Snapshot};
    use haul_copy::{MachineReport, PathReport, PathView};

    use super::*;

    fn busy() -> MemberView {
        let sender = PathReport { rtt_us: 150_000, loss: 0.001, ..PathReport::default() };
        let path = PathView {
            rtt_us: 150_000,
            sender: Some(sender),
            server_demand: haul_copy::Demand { wanted: 0.35, ..haul_copy::Demand::default() },
            ..PathView::default()
        };
        MemberView {
            name: "node01".into(),
            state: MemberState::Busy,
            file: Some("a\x1b[2Jb".into()),
            delivered: Bytes::mib(64),
            rate: BitRate::mbps(100),
            path,
            ..MemberView::default()
        }
    }

    #[test]
    fn members_that_say_the_most_of_everything_are_summed_up() {
        let boaster = |name: &str| MemberReport {
            name: name.into(),
            delivered: Bytes(u64::MAX),
            files: u64::MAX,
            ..MemberReport::default()
        };
        let report = JobReport { members: vec![boaster("a"), boaster("b")], ..JobReport::default() };
        assert_eq!(summary(&report).len(), 2);
    }

    #[test]
    fn a_row_has_what_one_server_does() {
        assert_eq!(member(&busy(), 6), "node01     busy    100 Mbit/s  RTT 150 ms  loss 0.10 %  cpu 35 %  64.0 MiB");
        assert_eq!(file(&busy()).as_deref(), Some("a\\u{1b}[2Jb"));
        let mut writing = busy();
        writing.path.machine = Some(MachineReport { free_bytes: Some(3 << 30), ..MachineReport::default() });
        assert_eq!(
            member(&writing, 6),
            "node01     busy    100 Mbit/s  RTT 150 ms  loss 0.10 %  cpu 35 %  disk 3.00 GiB free  64.0 MiB"
        );
        let idle = MemberView { state: MemberState::Idle, file: None, path: PathView::default(), ..busy() };
        assert_eq!(member(&idle, 6), "node01     idle                64.0 MiB");
    }

    #[test]
    fn the_total_says_how_far_it_is() {
        let job = Snapshot { members: vec![MemberView::default(); 3], ..Snapshot::default() };
        let mut look = Look { job, rate: BitRate::mbps(8), ..Look::default() };
        assert_eq!(total(&look), "waiting for 3 of 3 servers to say what they have");
        look.job.members[0] = busy();
        (look.job.files, look.job.bytes, look.job.files_done, look.job.bytes_done) = (4, Bytes::mib(4), 1, Bytes::mib(3));
        assert_eq!(total(&look), "75.0 %  3.00 MiB of 4.00 MiB  8.00 Mbit/s  files 1/4  servers 1/3  2 s left");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(elided("storage-server-01.example.org", 12), "stora..e.org");
        assert_eq!(elided("short", 12), "short");
    }
}
