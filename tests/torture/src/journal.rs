//! What was done, and when: printed, and kept for the evidence.

use std::cell::RefCell;
use std::io::Write as _;

use e2e::Stopwatch;

/// The lines so far.
pub struct Journal {
    seed: u64,
    watch: Stopwatch,
    lines: RefCell<Vec<String>>,
}

impl Journal {
    /// Nothing has been done.
    pub fn begin(seed: u64) -> Self {
        let journal = Self { seed, watch: Stopwatch::start(), lines: RefCell::default() };
        journal.note(&format!("seed {seed}"));
        journal
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// One thing that was done or found.
    pub fn note(&self, what: &str) {
        let line = format!("torture {:7.2} s  {what}", self.watch.elapsed().as_secs_f64());
        // Not by the macro, whose output the test runner swallows: this is what a run that hangs is judged by.
        let _ = writeln!(std::io::stderr(), "{line}");
        self.lines.borrow_mut().push(line);
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.lines.borrow().join("\n") + "\n"
    }
}
