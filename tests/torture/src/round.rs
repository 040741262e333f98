//! One copy, from the tree that is made for it to the comparison.

use std::path::Path;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Random, Running, Stopwatch, pause};
use haul_lab::LinkOptions;
use haul_units::BitRate;

use crate::Tally;
use crate::fault::{Fault, Theme};
use crate::field::{Field, Files, usual_link};
use crate::journal::Journal;

/// Runs of one command in which there are faults; after them it is left alone.
const DISTURBED_RUNS: u64 = 8;
/// Runs of one command, at most.
const RUNS_MAX: u64 = 12;
/// Faults in one run.
const FAULTS_PER_RUN: u64 = 4;
/// A run that takes longer hangs: the longest timer of haul's is 90 s, and the longest outage 8.
const PATIENCE: Duration = Duration::from_secs(180);
/// One that was asked to end keeps what has arrived, and ends.
const PATIENCE_ASKED: Duration = Duration::from_secs(30);
/// What a kill may cost beside what was in flight and in the queue: blocks that were under way, files not yet synced.
const LOST_PER_KILL_BYTES: u64 = 6 << 20;
/// ssh's login, handshakes, acknowledgements and the list of files of one run.
const OVERHEAD_PER_RUN_BYTES: u64 = 1 << 20;

/// What the seed says about a round.
#[derive(Debug)]
struct Plan {
    push: bool,
    daemon: bool,
    theme: Theme,
    varied: bool,
    many: u64,
    large_bytes: u64,
    rate: BitRate,
    rtt: Duration,
    /// What the far site's processes may have open.
    files: Files,
}

impl Plan {
    fn draw(random: &mut Random) -> Self {
        Self {
            push: random.within(0..2) == 0,
            daemon: random.within(0..2) == 0,
            theme: Theme::draw(random),
            varied: random.within(0..4) != 0,
            many: [0, 50, 400][random.within(0..3) as usize],
            large_bytes: random.within(1..40) << 20,
            rate: BitRate::mbps([50, 100, 200][random.within(0..3) as usize]),
            rtt: random.millis(2..60),
            files: [None, None, None, Some(128), Some(256)][random.within(0..5) as usize],
        }
    }
}

/// Runs it to its end. Panics where anything is wrong.
pub fn run(field: &mut Field, journal: &Journal, number: u64, random: &mut Random, tally: &mut Tally) {
    let plan = Plan::draw(random);
    journal.note(&format!("round {number}: {plan:?}"));
    // Each link has half of the round trip.
    let link = usual_link(plan.rate, plan.rtt / 2, random.number());
    field.heal(&link);
    field.limit_files(plan.files);
    let small = (plan.theme == Theme::Disk).then_some(plan.large_bytes / 2 + (1 << 20));
    let (source_dir, target) = field.places(number, small);
    let source = source_dir.join("tree");
    make_tree(&plan, &source, random);

    let (from, to) = if plan.push {
        (source.clone().into_os_string(), field.operand(&target, plan.daemon))
    } else {
        (field.operand(&source, plan.daemon), target.clone().into_os_string())
    };
    let before = field.offered_bytes();
    let (mut runs, mut kills) = (0, 0);
    let mut is_short = small.is_some();
    loop {
        runs += 1;
        let mut copy = field.copy(&from, &to);
        let watch = Stopwatch::start();
        let mut was_asked = false;
        if runs <= DISTURBED_RUNS {
            let disturbed = disturb(field, journal, &mut copy, &plan, &link, random, tally);
            (kills, was_asked) = (kills + disturbed.kills, disturbed.asked);
        } else {
            field.heal(&link);
        }
        let left = PATIENCE.saturating_sub(watch.elapsed()).max(Duration::from_secs(1));
        let finished = copy.wait(if was_asked { PATIENCE_ASKED } else { left });
        journal.note(&format!("run {runs} ended with {:?} after {:.1} s", finished.code, finished.took.as_secs_f64()));
        assert!(!finished.stderr.contains("panicked at"), "{finished}");
        let is_documented = matches!(finished.code, None | Some(0..=2)) || finished.code == Some(130) && was_asked;
        assert!(is_documented, "{finished}");
        if finished.code == Some(0) {
            assert!(!is_short, "it was copied to a disk that has not the room for it: {finished}");
            break;
        }
        assert!(runs < RUNS_MAX, "not done after {runs} runs: {finished}");
        if small.is_some() && finished.code.is_some() {
            journal.note("the disk is made large");
            field.enlarge_disk();
            is_short = false;
        }
        field.start_daemon();
        let is_there = || tree::differences(&source, &target.join("tree"), Exactness::Everything).is_empty();
        if !is_short && tree::names(&target) == ["tree"] && is_there() {
            // Nothing is left to go on with: it ended between the last name and the goodbyes, and another run would be another copy. Where a stage is missing because
            // nothing had arrived, there is all to be copied.
            journal.note("all was in place");
            break;
        }
    }
    let offered = field.offered_bytes() - before;
    field.heal(&link);

    for stage in field.sweep() {
        journal.note(&format!("what others put into {} was left alone", stage.display()));
    }
    let arrived = target.join("tree");
    tree::assert_same(&source, &arrived, Exactness::Everything);
    tree::assert_as_sparse(&source, &arrived);
    assert_eq!(tree::names(&target), ["tree"], "something was left beside the copy");
    let data = tree::data_bytes(&source);
    let again = offered.saturating_sub(data);
    journal.note(&format!("right: {data} bytes of data, {offered} sent, {runs} runs, {kills} kills"));
    if plan.theme == Theme::Kills {
        let in_flight = 2 * plan.rate.bytes_in(plan.rtt).as_u64();
        // What is in flight is lost with a kill, and by the start of each run, which may overflow the queue.
        let allowed = data / 10 + kills * (LOST_PER_KILL_BYTES + in_flight) + runs * (OVERHEAD_PER_RUN_BYTES + in_flight);
        assert!(again <= allowed, "{again} bytes too many were sent in {runs} runs with {kills} kills; {allowed} would be right");
        tally.again_bytes += again;
        tally.again_kills += kills;
    }
    (tally.runs, tally.kills) = (tally.runs + runs, tally.kills + kills);
    field.assert_nothing_left(journal);
    field.clear();
}

/// What has happened in one run.
#[derive(Default)]
struct Disturbed {
    /// Processes that were killed, or asked to end.
    kills: u64,
    /// The command itself was asked.
    asked: bool,
}

/// Lets faults happen while the copy runs.
fn disturb(
    field: &mut Field,
    journal: &Journal,
    copy: &mut Running,
    plan: &Plan,
    link: &LinkOptions,
    random: &mut Random,
    tally: &mut Tally,
) -> Disturbed {
    let mut disturbed = Disturbed::default();
    for _ in 0..FAULTS_PER_RUN {
        pause(random.millis(150..2000));
        let fault = plan.theme.fault(random);
        if !copy.runs() {
            break;
        }
        journal.note(&format!("{fault:?}"));
        let died = fault.happen(field, link, copy, plan.daemon, random);
        tally.faults += 1;
        disturbed.kills += died;
        disturbed.asked |= matches!(fault, Fault::Ask(_));
        if fault.is_kill() {
            // Who was not killed notices, and ends by itself, or goes on.
            break;
        }
    }
    disturbed
}

fn make_tree(plan: &Plan, root: &Path, random: &mut Random) {
    std::fs::create_dir_all(root).expect("making the root of the tree");
    if plan.many > 0 {
        tree::make_many(&root.join("many"), plan.many, random);
    }
    tree::write_random(&root.join("large"), plan.large_bytes, random);
    if plan.varied {
        tree::make_varied(&root.join("varied"), random);
    }
}
