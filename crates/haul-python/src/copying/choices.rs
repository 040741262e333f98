//! How a copy is done: the arguments of `haul.copy` as the engine takes them. Which of them exclude each other the package has said before.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use haul_files::{Changed, Chosen, Delete, Filter, Keep, Options, Same, Verify, rules};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, OrRaise};
use crate::settings::given;

/// How files are copied.
pub fn options(kwargs: &Bound<'_, PyDict>) -> PyResult<Options> {
    let flag = |name| Ok::<bool, PyErr>(given(kwargs, name)?.unwrap_or(false));
    let unknown = |what: &str, known: &str| Failure::usage(format_args!("{what}: {known} are possible")).into_py_err(kwargs.py());
    let changed: String = given(kwargs, "changed")?.unwrap_or_else(|| "take".into());
    let verify: String = given(kwargs, "verify")?.unwrap_or_else(|| "arrival".into());
    Ok(Options {
        recursive: flag("recursive")?,
        preserve: flag("preserve")?,
        update: flag("update")?,
        skip_same: flag("skip_same")?,
        resume: given(kwargs, "resume")?.unwrap_or(true),
        changed: match changed.as_str() {
            "take" => Changed::Take,
            "fail" => Changed::Fail,
            "retry" => Changed::Retry,
            other => return Err(unknown(other, "take, fail and retry")),
        },
        verify: match verify.as_str() {
            "off" => Verify::Off,
            "arrival" => Verify::Arrival,
            "read-back" => Verify::ReadBack,
            other => return Err(unknown(other, "off, arrival and read-back")),
        },
        same: match (flag("size_only")?, flag("checksum")? || flag("compare")?) {
            (true, _) => Same::Size,
            (false, true) => Same::Content,
            (false, false) => Same::Time,
        },
        delete: flag("delete")?.then_some(Delete { most: given(kwargs, "max_delete")? }),
        follow: flag("copy_links")?,
        keep: Keep::NONE,
        dry_run: flag("dry_run")? || flag("compare")?,
    })
}

/// Whether blocks are compressed on their way, where that gains.
pub fn packs(kwargs: &Bound<'_, PyDict>) -> PyResult<bool> {
    match given::<String>(kwargs, "compress")?.as_deref() {
        None => Ok(false),
        Some("auto") => Ok(true),
        Some(other) => Err(Failure::usage(format_args!("compress: {other}: auto is possible")).into_py_err(kwargs.py())),
    }
}

/// What is left out, lines of a .gitignore, of which those of files of rules come first and what is taken back in last; and of what there is a list.
pub fn filter(kwargs: &Bound<'_, PyDict>) -> PyResult<Filter> {
    let py = kwargs.py();
    let lines = |name| Ok::<Vec<String>, PyErr>(given(kwargs, name)?.unwrap_or_default());
    let literal = |pattern: String| if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern };
    let mut all: Vec<String> = Vec::new();
    // Of several files the first has the first rule.
    for path in given::<Vec<PathBuf>>(kwargs, "filter_from")?.unwrap_or_default().iter().rev() {
        all.extend(py.detach(|| rules_in(path)).or_raise(py)?);
    }
    all.extend(lines("exclude")?.into_iter().map(literal));
    all.extend(lines("include")?.into_iter().map(|pattern| format!("!{pattern}")));
    let filter = Filter::new(all).map_err(|error| Failure::usage(haul_peer::chain(&error))).or_raise(py)?;
    Ok(match given::<Vec<Vec<u8>>>(kwargs, "files_from")? {
        Some(names) => filter.of(chosen(&names).or_raise(py)?),
        None => filter,
    })
}

/// The rules in a file, as lines of a .gitignore.
fn rules_in(path: &Path) -> Result<Vec<String>, Failure> {
    let unusable = |why: &dyn Display| Failure::usage(format_args!("filter_from: {}: {why}", path.display()));
    let text = fs::read(path).map_err(|error| {
        Failure::new("LocalError", format_args!("filter_from: {}: {error}", path.display())).errno(error.raw_os_error())
    })?;
    let text = String::from_utf8(text).map_err(|_| unusable(&"patterns are UTF-8 text"))?;
    rules(&text).map_err(|error| unusable(&error))
}

fn chosen(names: &[Vec<u8>]) -> Result<Chosen, Failure> {
    let chosen = Chosen::new(names.iter().map(Vec::as_slice)).map_err(|error| {
        Failure::usage(format_args!("files_from: {}", haul_peer::chain(&error)))
            .hint("names in a list are below the source, without ..")
    })?;
    if chosen.is_empty() { Err(Failure::usage("files_from: lists no name")) } else { Ok(chosen) }
}
