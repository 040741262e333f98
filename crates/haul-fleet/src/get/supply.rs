//! What the driver knows of one member: what it has, and what it was told to send.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use haul_copy::PathView;
use haul_files::block::Piece;
use haul_files::protocol::ROOT;
use haul_files::{FileProblem, Wish};
use haul_units::{BitRate, Bytes, Cancel};

use super::news::{Doubt, Gate, Newcomer, PathWatch};
use haul_plan::FileId;

/// Who is there answers within so many round trips: one for the answer, two for a loss of either.
const ANSWER_ROUNDS: u32 = 3;
/// And so much for threads that wait for a processor.
const SLACK: Duration = Duration::from_millis(100);

/// One member.
pub(super) struct Supply<'a> {
    pub(super) name: String,
    /// The sources of the job, as they are named there.
    pub(super) sources: Vec<PathBuf>,
    pub(super) path: PathWatch,
    /// Bytes that had come when its path was last looked at.
    received: Option<(Instant, Bytes)>,
    pub(super) doubt: Doubt,
    /// It is silent, and was asked for a sign of life.
    is_asked: bool,
    pub(super) limit: Option<BitRate>,
    pub(super) wishes: Sender<Wish>,
    pub(super) gate: &'a Gate,
    /// Ends its session.
    pub(super) cancel: Cancel,
    /// It has come.
    pub(super) is_here: bool,
    /// Why it is gone.
    pub(super) down: Option<String>,
    /// All that it has was told.
    pub(super) is_listed: bool,
    /// Its session is over.
    pub(super) is_over: bool,
    /// Ids of files, of those that it tells of next, whose content it does not have at hand.
    pub(super) elsewhere: Vec<u64>,
    /// What it could not list.
    pub(super) problems: Vec<FileProblem>,
    /// Names that it has left out, as it was told to.
    pub(super) left_out: u64,
    /// The nodes of its ids, ascending.
    nodes: Vec<(u64, u32)>,
    /// The ids of its files by node, ascending; made from the above when all is listed.
    ids: Vec<(u32, u64)>,
    /// What it was told to send, by number.
    orders: HashMap<u64, Open>,
    /// The same by its ids of the files.
    by_file: HashMap<u64, Vec<u64>>,
    /// Files that it had a part in.
    pub(super) files: u64,
    /// Orders that have not failed.
    active: usize,
    busy: Duration,
    busy_since: Option<Instant>,
    /// The latest order, to tell what it works on.
    pub(super) latest: Option<FileId>,
}

/// An order that is not over.
pub(super) struct Open {
    pub(super) file: FileId,
    id: u64,
    pub(super) range: Range<u64>,
    /// Nothing behind this is needed.
    pub(super) until: u64,
    /// Bytes that have come for it.
    pub(super) came: u64,
    /// It was sent up to there, and so many bytes are not holes.
    pub(super) ended: Option<(u64, u64)>,
    /// It failed; what is late of it is dropped.
    pub(super) failed: bool,
}

impl<'a> Supply<'a> {
    pub(super) fn new(name: String, wishes: Sender<Wish>, gate: &'a Gate, cancel: Cancel) -> Self {
        Self {
            name,
            sources: Vec::new(),
            path: Box::new(PathView::default),
            received: None,
            doubt: Box::new(|| false),
            is_asked: false,
            limit: None,
            wishes,
            gate,
            cancel,
            is_here: false,
            down: None,
            left_out: 0,
            is_listed: false,
            is_over: false,
            elsewhere: Vec::new(),
            problems: Vec::new(),
            nodes: Vec::new(),
            ids: Vec::new(),
            orders: HashMap::new(),
            by_file: HashMap::new(),
            files: 0,
            active: 0,
            busy: Duration::ZERO,
            busy_since: None,
            latest: None,
        }
    }

    /// Looks at its path; what has come of it since the last look, if that is known.
    pub(super) fn look(&mut self, now: Instant) -> (PathView, Option<(Bytes, Duration)>) {
        let path = (self.path)();
        let before = self.received.replace((now, path.received));
        (path, before.map(|(then, before)| (path.received.saturating_sub(before), now.saturating_duration_since(then))))
    }

    /// It has come.
    pub(super) fn came(&mut self, newcomer: Newcomer) {
        let Newcomer { path, doubt, limit, sources } = newcomer;
        (self.path, self.doubt, self.limit, self.sources, self.is_here) = (path, doubt, limit, sources, true);
    }

    /// It is there, and its session goes on.
    pub(super) fn is_up(&self) -> bool {
        self.is_here && self.down.is_none()
    }

    /// It is still to say goodbye, for which it was waited so long. One that has not been heard since, nor will be, is gone.
    pub(super) fn says_goodbye(&self, waited: Duration) -> bool {
        let path = (self.path)();
        !self.is_over && self.is_up() && (waited < patience(&path) || path.silence < waited)
    }

    /// It has something to send, has been silent for long enough to be asked for a sign of life, which it is, and for as long again, in which one that lives answers whatever its disk does. Others are heard
    /// meanwhile (`others_are`): it is not this side's own link.
    pub(super) fn is_mute(&mut self, path: &PathView, others_are: bool) -> bool {
        if path.silence < patience(path) || !self.is_busy() {
            self.is_asked = false;
            return false;
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            let _ = self.wishes.send(Wish::Orders(Vec::new()));
        }
        others_are && path.silence >= patience(path) * 2
    }

    /// It will not say what it has any more: it has, or is gone, or never came.
    pub(super) fn is_heard(&self) -> bool {
        self.is_listed || self.down.is_some()
    }

    /// The node of one of its ids; none for the root.
    pub(super) fn node(&self, id: u64) -> Option<u32> {
        if id == ROOT {
            return None;
        }
        let at = self.nodes.binary_search_by_key(&id, |known| known.0).ok()?;
        self.nodes.get(at).map(|known| known.1)
    }

    /// One of its things is this node; its ids rise.
    pub(super) fn has(&mut self, id: u64, node: u32) {
        self.nodes.push((id, node));
    }

    /// It has said everything.
    pub(super) fn listed(&mut self) {
        self.is_listed = true;
        self.ids = self.nodes.drain(..).map(|(id, node)| (node, id)).collect();
        self.nodes.shrink_to_fit();
        self.ids.sort_unstable();
    }

    /// Its id of a node.
    pub(super) fn id_of(&self, node: u32) -> Option<u64> {
        let at = self.ids.partition_point(|known| known.0 < node);
        self.ids.get(at).filter(|known| known.0 == node).map(|known| known.1)
    }

    /// It is told to send this.
    pub(super) fn ordered(&mut self, number: u64, file: FileId, id: u64, range: Range<u64>, now: Instant) {
        let until = range.end;
        self.orders.insert(number, Open { file, id, range, until, came: 0, ended: None, failed: false });
        self.by_file.entry(id).or_default().push(number);
        self.active += 1;
        self.busy_since.get_or_insert(now);
        self.latest = Some(file);
    }

    pub(super) fn order(&mut self, number: u64) -> Option<&mut Open> {
        self.orders.get_mut(&number)
    }

    /// The order that a piece has come for: none where an honest member would not have sent it.
    pub(super) fn order_of(&self, piece: &Piece) -> Option<u64> {
        let end = piece.offset + u64::from(piece.length);
        let fits = |open: &Open| {
            let within = open.range.start <= piece.offset && end <= open.range.end;
            within && open.came + u64::from(piece.length) <= open.range.end - open.range.start
        };
        self.by_file.get(&piece.file)?.iter().copied().find(|number| self.orders.get(number).is_some_and(fits))
    }

    /// An order is over.
    pub(super) fn close(&mut self, number: u64, now: Instant) -> Option<Open> {
        let open = self.orders.remove(&number)?;
        if let Some(numbers) = self.by_file.get_mut(&open.id) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_file.remove(&open.id);
            }
        }
        if !open.failed {
            self.is_less(now);
        }
        Some(open)
    }

    /// An order has failed: what is late of it is still to be known. Its file, unless that was said before.
    pub(super) fn fail(&mut self, number: u64, now: Instant) -> Option<FileId> {
        let open = self.orders.get_mut(&number).filter(|open| !open.failed)?;
        open.failed = true;
        let file = open.file;
        self.is_less(now);
        Some(file)
    }

    fn is_less(&mut self, now: Instant) {
        self.active -= 1;
        if self.active == 0 {
            self.rest(now);
        }
    }

    /// Nothing will come of its orders.
    pub(super) fn drop_orders(&mut self, now: Instant) {
        self.orders = HashMap::new();
        self.by_file = HashMap::new();
        self.active = 0;
        self.rest(now);
    }

    fn rest(&mut self, now: Instant) {
        self.busy += self.busy_since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Whether it has something to send.
    pub(super) fn is_busy(&self) -> bool {
        self.active > 0
    }

    /// How long it has had something to send.
    pub(super) fn busy(&self, now: Instant) -> Duration {
        self.busy + self.busy_since.map_or(Duration::ZERO, |since| now - since)
    }
}

/// How long who is there and was asked something may be silent.
fn patience(path: &PathView) -> Duration {
    Duration::from_micros(path.rtt_us) * ANSWER_ROUNDS + SLACK
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// One that was last heard so long ago, 100 ms away.
    fn silent_for(silence: Duration) -> Supply<'static> {
        let gate = Box::leak(Box::new(Gate::default()));
        let mut supply = Supply::new("a".to_owned(), channel().0, gate, Cancel::new());
        let path: PathWatch = Box::new(move || PathView { rtt_us: 100_000, silence, ..PathView::default() });
        supply.came(Newcomer { path, doubt: Box::new(|| false), limit: None, sources: Vec::new() });
        supply
    }

    #[test]
    fn who_is_gone_is_not_waited_for_to_say_goodbye() {
        let long = Duration::from_secs(10);
        for waited_ms in [0, 300, 399] {
            assert!(silent_for(long).says_goodbye(Duration::from_millis(waited_ms)), "its answer may be under way");
        }
        assert!(!silent_for(long).says_goodbye(Duration::from_millis(400)));
        assert!(
            silent_for(Duration::from_millis(50)).says_goodbye(Duration::from_millis(1500)),
            "it is heard, and has more to say"
        );
        let mut over = silent_for(Duration::ZERO);
        over.is_over = true;
        assert!(!over.says_goodbye(Duration::ZERO));
    }

    #[test]
    fn who_does_not_answer_while_others_are_heard_is_in_doubt() {
        let (wishes, told) = channel();
        let mut supply = silent_for(Duration::ZERO);
        supply.wishes = wishes;
        let path = |silence_ms| PathView { rtt_us: 100_000, silence: Duration::from_millis(silence_ms), ..PathView::default() };
        let asked = || matches!(told.try_recv(), Ok(Wish::Orders(orders)) if orders.is_empty());
        assert!(!supply.is_mute(&path(900), true), "it has nothing to send");
        assert!(!asked());
        supply.ordered(1, FileId::new(0), 1, 0..9, crate::clock::now());
        assert!(!supply.is_mute(&path(399), true));
        assert!(!asked(), "too early");
        assert!(!supply.is_mute(&path(400), true));
        assert!(asked());
        assert!(!supply.is_mute(&path(799), true));
        assert!(!asked(), "asked once");
        assert!(!supply.is_mute(&path(800), false), "nobody is heard");
        assert!(supply.is_mute(&path(800), true));
        assert!(!supply.is_mute(&path(3), true));
        assert!(!supply.is_mute(&path(400), true));
        assert!(asked(), "it has been heard since");
    }
}
