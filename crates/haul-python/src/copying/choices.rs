//! How a copy is done: the words of `haul.copy` as the engine takes them. Which of them exclude each other the package has said before.

use haul_files::{Changed, Chosen, Delete, Filter, Options, Same, Verify};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, OrRaise};
use crate::settings::given;

/// How files are copied.
pub fn options(words: &Bound<'_, PyDict>) -> PyResult<Options> {
    let flag = |name| Ok::<bool, PyErr>(given(words, name)?.unwrap_or(false));
    let unknown = |what: &str, known: &str| Failure::usage(format_args!("{what}: {known} are possible")).into_py_err(words.py());
    let changed: String = given(words, "changed")?.unwrap_or_else(|| "take".into());
    let verify: String = given(words, "verify")?.unwrap_or_else(|| "arrival".into());
    Ok(Options {
        recursive: flag("recursive")?,
        preserve: flag("preserve")?,
        update: flag("update")?,
        skip_same: flag("skip_same")?,
        resume: given(words, "resume")?.unwrap_or(true),
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
        delete: flag("delete")?.then_some(Delete { most: given(words, "max_delete")? }),
        follow: flag("copy_links")?,
        dry_run: flag("dry_run")? || flag("compare")?,
    })
}

/// What is left out, lines of a .gitignore, of which what is taken back in comes last; and of what there is a list.
pub fn filter(words: &Bound<'_, PyDict>) -> PyResult<Filter> {
    let lines = |name| Ok::<Vec<String>, PyErr>(given(words, name)?.unwrap_or_default());
    let literal = |pattern: String| if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern };
    let mut all: Vec<String> = lines("exclude")?.into_iter().map(literal).collect();
    all.extend(lines("include")?.into_iter().map(|pattern| format!("!{pattern}")));
    let filter = Filter::new(all).map_err(|error| Failure::usage(haul_peer::chain(&error))).or_raise(words.py())?;
    Ok(match given::<Vec<Vec<u8>>>(words, "files_from")? {
        Some(names) => filter.of(chosen(&names).or_raise(words.py())?),
        None => filter,
    })
}

fn chosen(names: &[Vec<u8>]) -> Result<Chosen, Failure> {
    let chosen = Chosen::new(names.iter().map(Vec::as_slice)).map_err(|error| {
        Failure::usage(format_args!("files_from: {}", haul_peer::chain(&error)))
            .hint("names in a list are below the source, without ..")
    })?;
    if chosen.is_empty() { Err(Failure::usage("files_from: lists no name")) } else { Ok(chosen) }
}
