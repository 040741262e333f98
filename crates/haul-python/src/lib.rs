//! haul for Python: the native half. What users see is the package in `/python/haul` of the workspace, which is Python; this module, `haul._haul`, has what must be native, and as little as that.
//!
//! ```text
//!   haul.copy, haul.Endpoint, haul.aio, haul.fs     Python: classes, defaults, errors, asyncio, fsspec
//!   haul._haul                                      this crate: jobs, handles, buffers
//!   haul, haul-copy, haul-peer                      the libraries
//! ```
//!
//! # Rules
//! - **Whoever waits does not hold the interpreter.** Every call of a library is made detached (`waiting::wait`), those too that are short: a lock of theirs may be held by a thread that waits for a disk.
//! - **No thread of a library calls into Python.** What it has to tell is put where Python looks for it (`logs`, `copying::Copying`); what Python owns and such a thread drops last is given
//!   back later (`buffer::View`).
//! - **Waiting is in slices**, after each of which Python looks at its signals, so Ctrl-C works; asyncio waits by an eventfd (`waiting::Reactor`).
//! - **Errors** are classes of `haul.errors`, which is Python (`errors::Failure`).
//!
//! # One module for all Pythons
//! It keeps to the stable ABI of CPython 3.9. Buffers are no part of that before 3.11, but 3.9 and 3.10, which change no more, have them in the same form: `buffer` declares what it needs of them.
//! There are no tests in here: they are pytest's, in `/python/tests`.

#![expect(clippy::needless_pass_by_value, clippy::too_many_arguments, reason = "arguments are those of Python's functions")]

mod blocks;
mod buffer;
mod copying;
mod endpoint;
mod errands;
mod errors;
mod fleet;
mod kept;
mod keys;
mod logs;
mod measuring;
mod process;
mod proxying;
mod reach;
mod settings;
mod streams;
mod waiting;

use pyo3::prelude::*;

/// The module `haul._haul`.
#[pymodule]
fn _haul(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_BLOCK", ::haul::MAX_BLOCK)?;
    module.add_class::<keys::Identity>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<endpoint::Connection>()?;
    module.add_class::<streams::SendStream>()?;
    module.add_class::<streams::RecvStream>()?;
    module.add_class::<blocks::BlockSender>()?;
    module.add_class::<blocks::BlockReceiver>()?;
    module.add_class::<waiting::Pending>()?;
    module.add_class::<waiting::Reactor>()?;
    module.add_class::<copying::Copying>()?;
    module.add_class::<proxying::Proxy>()?;
    module.add_class::<fleet::Fleet>()?;
    module.add_class::<fleet::FleetJob>()?;
    module.add_function(wrap_pyfunction!(fleet::start_fleet, module)?)?;
    module.add_function(wrap_pyfunction!(fleet::attach_fleet, module)?)?;
    module.add_function(wrap_pyfunction!(measuring::perf, module)?)?;
    module.add_class::<errands::Errands>()?;
    module.add_class::<errands::Writing>()?;
    module.add_function(wrap_pyfunction!(copying::copy, module)?)?;
    module.add_function(wrap_pyfunction!(kept::kept, module)?)?;
    module.add_function(wrap_pyfunction!(keys::own_key, module)?)?;
    module.add_function(wrap_pyfunction!(keys::trust, module)?)?;
    module.add_function(wrap_pyfunction!(logs::start_logging, module)?)?;
    module.add_function(wrap_pyfunction!(logs::next_records, module)?)?;
    Ok(())
}
