//! What a daemon exports: the roots of its command line, then those of a file.

use std::fs;
use std::path::PathBuf;

use haul_files::Export;
use tracing::info;

use crate::args::{Root, ServeArgs};
use crate::exit::Failure;

/// The roots, each a directory that exists, no name twice.
pub fn read(args: &ServeArgs) -> Result<Vec<Export>, Failure> {
    let mut exports: Vec<Export> = Vec::new();
    for root in args.roots.iter().cloned().chain(in_file(args)?) {
        let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", root.path.display()));
        if exports.iter().any(|export| export.name == root.name) {
            return Err(Failure::new(format!("the root `{}` is named twice", root.name)).hint("give each root its own name"));
        }
        let path = fs::canonicalize(&root.path).map_err(|error| failed(&error))?;
        if !path.is_dir() {
            return Err(failed(&"not a directory").hint("a root is a directory: export the one that holds the file"));
        }
        exports.push(Export { name: root.name.clone(), path, writable: root.writable, ownership: root.ownership });
    }
    Ok(exports)
}

/// Says what is exported.
pub fn tell(exports: &[Export]) {
    for export in exports {
        info!(root = export.name, path = %export.path.display(), writable = export.writable, "exporting");
    }
}

/// The roots of the file; a line that starts with `#` is a comment, and a line that is not right spoils all: what it was to say is not known.
fn in_file(args: &ServeArgs) -> Result<Vec<Root>, Failure> {
    let Some(path) = &args.roots_file else { return Ok(Vec::new()) };
    let shown = || PathBuf::from(path).display().to_string();
    let text = fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", shown())))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| line.parse().map_err(|error| Failure::new(format!("{} line {number}: {error}", shown()))))
        .collect()
}
