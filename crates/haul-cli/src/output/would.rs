//! What a dry run finds, a line each on standard output.

use haul_files::{Change, Would};
use haul_units::Bytes;
use serde_json::{Value, json};

use super::{Style, print_event, print_out};

/// Prints it as the style has it.
pub fn print(style: Style, would: &Would) {
    if style == Style::Json { print_event(&event(would)) } else { print_out(&line(would)) }
}

fn line(Would { path, change }: &Would) -> String {
    match change {
        Change::New(size) => format!("copy     {path} ({})", Bytes(*size)),
        Change::Replaced(size) => format!("replace  {path} ({})", Bytes(*size)),
        Change::Directory => format!("make     {path}/"),
        Change::Link => format!("link     {path}"),
        Change::Removed => format!("delete   {path}"),
    }
}

fn event(Would { path, change }: &Would) -> Value {
    let (what, size) = match change {
        Change::New(size) => ("copy", Some(size)),
        Change::Replaced(size) => ("replace", Some(size)),
        Change::Directory => ("make", None),
        Change::Link => ("link", None),
        Change::Removed => ("delete", None),
    };
    json!({ "event": "would", "what": what, "path": path.to_string(), "size": size })
}
