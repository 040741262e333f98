//! haul for a far side that has none: what is at hand for which machine, and the question whether to send it.

use std::path::Path;

use haul_peer::{Bootstrap, Program, Stay};

use crate::args::BootstrapArgs;
use crate::exit::Failure;

/// What the arguments ask for.
pub fn asked(args: &BootstrapArgs) -> Result<Option<Bootstrap>, Failure> {
    let Some(stay) = args.bootstrap else { return Ok(None) };
    let programs = match &args.bootstrap_from {
        Some(path) => named(path)?,
        None => Program::at_hand(),
    };
    if programs.is_empty() {
        return Err(Failure::new("there is no static haul here that a far side could be given")
            .hint("name one with --bootstrap-from PATH: `make static` builds it, packages and the tarball have it"));
    }
    Ok(Some(bootstrap(programs, stay.into())))
}

/// With these programs.
pub const fn bootstrap(programs: Vec<Program>, stay: Stay) -> Bootstrap {
    Bootstrap { programs, stay, afresh: false }
}

fn named(path: &Path) -> Result<Vec<Program>, Failure> {
    let programs = Program::all_named(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    if programs.is_empty() && !path.is_dir() {
        return Err(Failure::new(format!("{}: not a program for Linux on x86_64 or aarch64", path.display())));
    }
    Ok(programs)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_no_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        let failure = named(&path).unwrap_err();
        assert!(failure.message.contains("script: not a program"), "{failure}");
        assert!(named(&dir.path().join("missing")).unwrap_err().message.contains("missing: "));
        assert!(named(dir.path()).unwrap().is_empty());
    }
}
