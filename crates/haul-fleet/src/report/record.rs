//! What a log says, as data. Times are seconds since the job began.

/// One job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobRecord {
    /// The name of its log.
    pub name: String,
    /// `get` or `put`.
    pub kind: String,
    /// Sources and destination.
    pub about: Vec<String>,
    /// When it began, in seconds since 1970.
    pub unix_s: u64,
    /// How long it took; until the last line where it was killed.
    pub seconds: f64,
    /// It came to its end.
    pub is_complete: bool,
    /// The client, each second.
    pub points: Vec<ClientPoint>,
    /// The members, in their order.
    pub members: Vec<MemberRecord>,
    /// Files that were not transferred, and why; the first of them.
    pub problems: Vec<(String, String)>,
    /// How many there were.
    pub problem_count: u64,
    /// Lines that say nothing, or too much.
    pub bad_lines: u64,
}

/// The client at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs, reason = "docs/reference/fleet-log.md has them")]
pub struct ClientPoint {
    pub t: f64,
    pub files: f64,
    pub files_done: f64,
    pub bytes_done: f64,
    pub rate_bps: f64,
    pub cpu: f64,
    pub memory_bytes: f64,
}

/// One member.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberRecord {
    /// Its name, printable.
    pub name: String,
    /// Each second.
    pub points: Vec<MemberPoint>,
    /// What it was told to do, in the order in which it began.
    pub spans: Vec<Span>,
    /// When it was gone, and why.
    pub down: Option<(f64, String)>,
}

/// A member at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs, reason = "docs/reference/fleet-log.md has them")]
pub struct MemberPoint {
    pub t: f64,
    pub delivered: f64,
    pub files: f64,
    pub rate_bps: f64,
    pub rtt_us: f64,
    pub cpu: Option<f64>,
    pub memory_bytes: Option<f64>,
}

/// A part of a file that a member sent or was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Which file.
    pub path: String,
    /// When it was told.
    pub from: f64,
    /// When it was over; none where it never was.
    pub to: Option<f64>,
    /// Bytes.
    pub bytes: f64,
}

impl JobRecord {
    /// Bytes that members sent or were sent.
    pub fn delivered(&self) -> f64 {
        self.members.iter().map(MemberRecord::delivered).sum()
    }

    /// Bits a second over the whole job.
    pub fn rate_bps(&self) -> f64 {
        if self.seconds > 0.0 { self.delivered() * 8.0 / self.seconds } else { 0.0 }
    }

    /// Members that had a part in it.
    pub fn working(&self) -> usize {
        self.members.iter().filter(|member| member.delivered() > 0.0).count()
    }

    /// The member that was done last: the others waited for it.
    pub fn last(&self) -> Option<&MemberRecord> {
        self.members
            .iter()
            .filter(|member| member.end().is_some())
            .max_by(|a, b| a.end().unwrap_or(0.0).total_cmp(&b.end().unwrap_or(0.0)))
    }
}

impl MemberRecord {
    /// Bytes that it sent or was sent.
    pub fn delivered(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.delivered)
    }

    /// When the last of what it was told was over.
    pub fn end(&self) -> Option<f64> {
        self.spans.iter().filter_map(|span| span.to).reduce(f64::max)
    }

    /// Seconds in which it had something to do, overlapping work counted once.
    pub fn busy(&self, until: f64) -> f64 {
        let (mut busy, mut covered) = (0.0, 0.0f64);
        for span in &self.spans {
            let to = span.to.unwrap_or_else(|| self.down.as_ref().map_or(until, |down| down.0)).min(until);
            busy += (to - span.from.max(covered)).max(0.0);
            covered = covered.max(to);
        }
        busy
    }
}
