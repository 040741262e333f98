//! Copies that everything happens to.
//!
//! ```text
//!   seed -> Round: a tree, a way (push or pull, by ssh or through a daemon), a link, a theme
//!             run the command; meanwhile one fault after the other; run it again until it is done
//!             heal everything; compare the trees; count what was sent; look for what was left
//! ```
//! Two sites of [`e2e::Sites`], each behind a link that the emulator plays: the near one runs `haul cp`, the far one has an sshd and a daemon. What is done is
//! printed with its time, and decided by the seed alone; when a fault meets a copy is decided by the machine, so a run repeats as far as real
//! time lets it. On a failure what it was about is kept: the trees, the destination with its stages, what was done and what the daemon said.

mod fault;
mod field;
mod journal;
mod round;
pub mod soak;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use e2e::number;
use e2e::{Random, Stopwatch};

use field::Field;
use journal::Journal;

/// What a whole torture came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Copies that were brought to their end and found right.
    pub rounds: u64,
    /// Commands run for them.
    pub runs: u64,
    /// Faults.
    pub faults: u64,
    /// Processes killed.
    pub kills: u64,
    /// Bytes that crossed the links beyond the data itself, in rounds where nothing but kills made them cross again.
    pub again_bytes: u64,
    /// Kills in those rounds.
    pub again_kills: u64,
}

/// The seed that this variable of the environment names: a number, `random` for one of the clock's, 1 unless it is set.
#[expect(clippy::disallowed_methods, reason = "a seed that nobody chose, asked for by name and printed")]
pub fn seed(variable: &str) -> u64 {
    match std::env::var(variable) {
        Ok(word) if word == "random" => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs()),
        Ok(word) => word.parse().expect("a seed is a number, or `random`"),
        Err(_) => 1,
    }
}

/// The minutes that this variable names; 1 unless it is set.
pub fn minutes(variable: &str) -> f64 {
    number(variable, 1.0)
}

/// Tortures for so long at least; none where namespaces cannot be made. Panics at the first thing wrong.
pub fn torture(seed: u64, time: Duration) -> Option<Tally> {
    let journal = Journal::begin(seed);
    let mut random = Random::new(seed);
    let mut field = Field::lay_out(&journal)?;
    let (mut tally, watch) = (Tally::default(), Stopwatch::start());
    while watch.elapsed() < time {
        // A seed of its own each: what happened in one round does not change the next.
        let mut random = Random::new(random.number());
        let number = tally.rounds + 1;
        let round = catch_unwind(AssertUnwindSafe(|| round::run(&mut field, &journal, number, &mut random, &mut tally)));
        if let Err(panic) = round {
            let kept = field.keep_evidence(&journal);
            println!(
                "torture: FAILED in round {number}; repeat with HAUL_TORTURE_SEED={seed}; what is left of it: {}",
                kept.display()
            );
            resume_unwind(panic);
        }
        tally.rounds = number;
    }
    journal.note(&format!("{tally:?}"));
    Some(tally)
}
