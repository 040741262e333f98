//! `HAUL_TRACE` and `HAUL_KEYLOG`: what connections do, and the keys of their packets, for who looks for a fault.
//!
//! docs/use/debugging.md says what is in them. Keys are as dangerous as they are useful: the file is made for this user alone, one that others can read is refused, a program
//! that runs with rights that its user does not have ignores both variables, and whoever has set one is told so each time.

use std::io;
use std::path::{Path, PathBuf};

use haul::diagnose;
use haul_peer::secret;

use crate::exit::Failure;
use crate::output;

const KEYLOG: &str = "HAUL_KEYLOG";
const TRACE: &str = "HAUL_TRACE";

/// Starts what the environment asks for; before any connection is made.
pub fn start() -> Result<(), Failure> {
    if secret::has_rights_of_others() {
        return Ok(());
    }
    if let Some(path) = asked(KEYLOG) {
        let file = secret::append_secret(&path).map_err(|error| refused(KEYLOG, &path, &error))?;
        diagnose::log_keys(Box::new(file));
        let path = path.display();
        output::print_line(&format!("{KEYLOG} is set: the keys of all connections go to {path}, and who reads it reads them"));
    }
    if let Some(path) = asked(TRACE) {
        let file = secret::append(&path).map_err(|error| refused(TRACE, &path, &error))?;
        diagnose::trace(Box::new(file));
    }
    Ok(())
}

fn asked(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn refused(variable: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{variable}: cannot use {}: {error}", path.display()))
        .hint(format!("name a file of your own that nobody else can read, or unset {variable}"))
}
