//! Progress for a log: one line every few seconds.

use std::time::Duration;

use haul_copy::told::{Look, text};

use super::print_line;

/// Time between lines.
const EVERY: Duration = Duration::from_secs(5);

/// What was printed last.
#[derive(Debug, Default)]
pub struct Lines {
    printed: Duration,
}

impl Lines {
    /// Prints a line if it is time for one; a short copy prints none.
    pub fn show(&mut self, look: &Look) {
        if look.elapsed >= self.printed + EVERY {
            self.printed = look.elapsed;
            print_line(&text::line(look));
        }
    }
}
