//! Events for programs: one JSON object a line, on standard output; what is in them is in `haul_copy::told::events`.

use std::time::Duration;

use haul_copy::told::{Look, events};
use serde_json::Value;

use crate::terminal::out_json;

/// Time between progress events.
const EVERY: Duration = Duration::from_secs(1);

/// When the last progress event was.
#[derive(Debug, Default)]
pub struct Events {
    printed: Duration,
}

impl Events {
    /// Prints a progress event if it is time for one.
    pub fn show(&mut self, look: &Look) {
        if look.elapsed >= self.printed + EVERY {
            self.printed = look.elapsed;
            print(&events::progress(look));
        }
    }
}

/// Prints one event; whoever closed the pipe does not want it.
pub fn print(event: &Value) {
    out_json(&event.to_string());
}
