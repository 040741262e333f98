//! `haul.interrupted` and `haul.discard_interrupted`: what interrupted copies have kept in a directory, here or on another host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use haul_copy::{Kept, KeptCopy, KeptRequest, PROTOCOL, at_daemon};
use haul_files::{CopyError, Discarded, WirePath};
use haul_peer::{Connector, Host, Operand};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{Failure, OrRaise};
use crate::reach;
use crate::waiting::in_thread;

/// Lists, or discards, what is kept in a directory; and how many there are besides.
#[pyfunction]
pub fn kept<'py>(
    py: Python<'py>,
    directory: Vec<u8>,
    discard: bool,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<(Vec<Bound<'py, PyDict>>, u64)> {
    let (connector, key, said) = reach::connector(kwargs, PROTOCOL)?;
    let request = |path: &OsStr| KeptRequest { directory: WirePath(path.as_bytes().to_vec()), discard };
    let (host, request) = match Operand::parse(OsStr::from_bytes(&directory)).or_raise(py)? {
        Operand::Stdio => return Err(Failure::usage("-: not a directory").into_py_err(py)),
        Operand::Local(path) => (None, request(path.as_os_str())),
        Operand::Ssh(host, path) => (Some(Host::Ssh(host)), request(&path)),
        Operand::Daemon(host, path) => (Some(Host::Daemon(host)), request(&at_daemon(&path))),
    };
    let found = match host {
        Some(host) => {
            let (host, cancel) = (reach::pinned(host, key), connector.cancel.clone());
            let found = in_thread(py, &cancel, move || at(&connector, &host, &request))?;
            found.map_err(|failure| said.explain(failure)).or_raise(py)?
        }
        None => py.detach(|| request.here()).map_err(CopyError::Stopped).or_raise(py)?,
    };
    let copies = found.copies.iter().map(|copy| told(py, copy)).collect::<PyResult<Vec<_>>>()?;
    Ok((copies, found.more))
}

/// What another host has.
fn at(connector: &Connector, host: &Host, request: &KeptRequest) -> Result<Kept, Failure> {
    let connected = connector.connect(host)?;
    match request.ask(&connected.connection, &connector.cancel) {
        Ok(found) => {
            connected.part(false);
            Ok(found)
        }
        Err(error) => Err(connected.cause().map_or_else(|| Failure::from(error).about(host), Failure::from)),
    }
}

fn told<'py>(py: Python<'py>, copy: &KeptCopy) -> PyResult<Bound<'py, PyDict>> {
    let names: Vec<_> = copy.names.iter().map(|name| PyBytes::new(py, &name.0)).collect();
    let told = PyDict::new(py);
    told.set_item("name", PyBytes::new(py, &copy.name.0))?;
    told.set_item("names", names)?;
    told.set_item("bytes", copy.bytes)?;
    told.set_item("idle", copy.idle_s)?;
    told.set_item("running", copy.running)?;
    told.set_item("stays", copy.discarded.as_ref().and_then(stays))?;
    Ok(told)
}

/// Why it was not removed.
fn stays(discarded: &Discarded) -> Option<String> {
    match discarded {
        Discarded::Removed => None,
        Discarded::Running => Some("a copy is working on it".to_owned()),
        Discarded::Foreign => Some("it holds something that haul did not put there".to_owned()),
        Discarded::Failed(why) => Some(why.to_string()),
    }
}
