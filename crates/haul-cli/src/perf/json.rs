//! JSON of `haul perf`: an event a line, or one document.

use serde::Serialize;
use serde_json::json;

use crate::output;

/// One line of --json-stream.
pub fn event(name: &str, data: &impl Serialize) {
    output::print_event(&json!({ "event": name, "data": data }));
}

/// With sorted keys.
pub fn pretty(document: &impl Serialize) -> String {
    serde_json::to_value(document).and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_default()
}
