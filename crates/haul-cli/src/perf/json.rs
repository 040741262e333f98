//! JSON of `haul perf`: an event a line.

use serde::Serialize;
use serde_json::json;

use crate::output;

/// One line of --json-stream.
pub fn event(name: &str, data: &impl Serialize) {
    output::print_event(&json!({ "event": name, "data": data }));
}
