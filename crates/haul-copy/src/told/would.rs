//! What a dry run finds.

use haul_files::{Change, Would};
use haul_units::Bytes;
use serde_json::{Value, json};

/// For people.
pub fn would_line(Would { path, change }: &Would) -> String {
    match change {
        Change::New(size) => format!("copy     {path} ({})", Bytes(*size)),
        Change::Replaced(size) => format!("replace  {path} ({})", Bytes(*size)),
        Change::Directory => format!("make     {path}/"),
        Change::Link => format!("link     {path}"),
        Change::Removed => format!("delete   {path}"),
        Change::Attributes => format!("update   {path} (attributes)"),
    }
}

/// For programs.
pub fn would_event(Would { path, change }: &Would) -> Value {
    let (what, size) = match change {
        Change::New(size) => ("copy", Some(size)),
        Change::Replaced(size) => ("replace", Some(size)),
        Change::Directory => ("make", None),
        Change::Link => ("link", None),
        Change::Removed => ("delete", None),
        Change::Attributes => ("attributes", None),
    };
    json!({ "event": "would", "what": what, "path": path.to_string(), "size": size })
}
