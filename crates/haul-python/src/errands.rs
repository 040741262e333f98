//! Single files at a server, for a file system in Python (`haul/fs.py`): one connection, and an errand a call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use haul_copy::{ErrandError, Found, FoundKind, PROTOCOL};
use haul_files::WirePath;
use haul_peer::{Connected, Host, Operand};
use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::buffer::View;
use crate::errors::{Failure, OrRaise};
use crate::process::Own;
use crate::reach;
use crate::waiting::{in_thread, wait_for};

/// A connection to a server that does errands.
#[pyclass(frozen, module = "haul._haul")]
pub struct Errands {
    errands: Own<haul_copy::Errands>,
    /// What must live as long.
    _connected: Own<Mutex<Option<Connected>>>,
}

/// A file that is being written.
#[pyclass(frozen, module = "haul._haul")]
pub struct Writing(Own<Mutex<Option<haul_copy::Writing>>>);

/// Name, kind, size, mode, owner, group, seconds since 1970, inode, and what a link says.
type Told<'py> = (Bound<'py, PyBytes>, &'static str, u64, u32, u32, u32, f64, u64, Option<Bound<'py, PyBytes>>);

#[pymethods]
impl Errands {
    /// Connects to the host of an operand, `haul://host:port/root` or `user@host:path`.
    #[new]
    fn new(py: Python<'_>, operand: &[u8], kwargs: &Bound<'_, PyDict>) -> PyResult<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        let (connector, key, said) = reach::connector(kwargs, PROTOCOL)?;
        let host = match Operand::parse(std::ffi::OsStr::from_bytes(operand)).or_raise(py)? {
            Operand::Daemon(host, _) => Host::Daemon(host),
            Operand::Ssh(host, _) => Host::Ssh(host),
            local => return Err(Failure::usage(format_args!("{local}: names no other host")).into_py_err(py)),
        };
        let (host, cancel) = (reach::pinned(host, key), connector.cancel.clone());
        let connected = in_thread(py, &cancel, move || connector.connect(&host))?;
        let connected = connected.map_err(|error| said.explain(error.into())).or_raise(py)?;
        let connection = connected.connection.clone();
        match waited(py, haul_copy::Errands::open(connection.clone())) {
            Ok(errands) => Ok(Self { errands: Own::new(errands), _connected: Own::new(Mutex::new(Some(connected))) }),
            // Where nothing came over UDP at all, or our key is refused, the errand could only see its connection end.
            Err(error) => Err(py.detach(|| connected.cause()).map_or(error, |cause| Failure::from(cause).into_py_err(py))),
        }
    }

    /// What has this name.
    fn look<'py>(&self, py: Python<'py>, path: Vec<u8>) -> PyResult<Told<'py>> {
        Ok(told(py, waited(py, self.errands.look(&WirePath(path)))?))
    }

    /// What is in a directory.
    fn list<'py>(&self, py: Python<'py>, path: Vec<u8>) -> PyResult<Vec<Told<'py>>> {
        let found = waited(py, self.errands.list(&WirePath(path)))?;
        Ok(found.into_iter().map(|found| told(py, found)).collect())
    }

    /// A part of a file, as far as it goes.
    fn read<'py>(&self, py: Python<'py>, path: Vec<u8>, start: u64, length: u64) -> PyResult<Bound<'py, PyBytes>> {
        let path = WirePath(path);
        let reading = async {
            let mut reading = self.errands.read(&path, start, length).await?;
            reading.read_to_end().await
        };
        Ok(PyBytes::new(py, &waited(py, reading)?))
    }

    /// The same into a buffer; how much it was.
    fn readinto(&self, py: Python<'_>, path: Vec<u8>, start: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        View::writing(buffer)?.during(py, |view| {
            let (room, path) = (view.bytes_mut(), WirePath(path));
            let reading = async {
                let mut reading = self.errands.read(&path, start, room.len() as u64).await?;
                let mut filled = 0;
                while let Some(room) = room.get_mut(filled..).filter(|_| reading.left() > 0) {
                    filled += reading.read(room).await?;
                }
                Ok(filled)
            };
            waited(py, reading)
        })
    }

    /// Begins a file.
    fn write(&self, py: Python<'_>, path: Vec<u8>) -> PyResult<Writing> {
        Ok(Writing(Own::new(Mutex::new(Some(waited(py, self.errands.write(&WirePath(path)))?)))))
    }

    /// Makes a directory.
    fn make(&self, py: Python<'_>, path: Vec<u8>) -> PyResult<()> {
        waited(py, self.errands.make(&WirePath(path)))
    }

    /// Removes a file or a link.
    fn remove(&self, py: Python<'_>, path: Vec<u8>) -> PyResult<()> {
        waited(py, self.errands.remove(&WirePath(path)))
    }

    /// Removes an empty directory.
    fn remove_directory(&self, py: Python<'_>, path: Vec<u8>) -> PyResult<()> {
        waited(py, self.errands.remove_directory(&WirePath(path)))
    }

    /// Another name for it.
    fn rename(&self, py: Python<'_>, old: Vec<u8>, new: Vec<u8>) -> PyResult<()> {
        waited(py, self.errands.rename(&WirePath(old), &WirePath(new)))
    }

    /// Copies a file over there.
    fn copy(&self, py: Python<'_>, old: Vec<u8>, new: Vec<u8>) -> PyResult<()> {
        waited(py, self.errands.copy(&WirePath(old), &WirePath(new)))
    }

    /// Whether the connection is over.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.errands.connection().end()).is_some()
    }

    /// Ends the connection; that of another process stays.
    fn close(&self, py: Python<'_>) {
        if self.errands.is_here() {
            py.detach(|| self.errands.close());
        }
    }
}

#[pymethods]
impl Writing {
    /// More of its content.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        View::reading(data)?.during(py, |view| {
            let mut writing = py.detach(|| self.take()).or_raise(py)?;
            // Given up where it fails, or is interrupted: a part that is missing is not noticed later.
            waited(py, writing.write(view))?;
            py.detach(|| *self.lock() = Some(writing));
            Ok(view.len())
        })
    }

    /// Ends it, and waits until it is durable under its name.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let mut writing = py.detach(|| self.take()).or_raise(py)?;
        waited(py, writing.finish())
    }

    /// Gives it up: there is no such file.
    fn discard(&self, py: Python<'_>) {
        py.detach(|| {
            if let Ok(mut writing) = self.take() {
                writing.discard();
            }
        });
    }
}

impl Writing {
    fn lock(&self) -> MutexGuard<'_, Option<haul_copy::Writing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<haul_copy::Writing, Failure> {
        if !self.0.is_here() {
            return Err(Failure::new("Closed", "the file is being written by the process that this one was forked from"));
        }
        self.lock().take().ok_or_else(|| Failure::new("Closed", "the file is no longer being written"))
    }
}

/// What an errand gives; what a server could not do is an `OSError` with the number and the name.
fn waited<T: Send>(py: Python<'_>, errand: impl Future<Output = Result<T, ErrandError>> + Send) -> PyResult<T> {
    let mut errand = Box::pin(errand);
    match wait_for(py, None, move |cx| errand.as_mut().poll(cx))? {
        Some(Ok(value)) => Ok(value),
        Some(Err(ErrandError::Failed(problem))) => {
            let path = PyBytes::new(py, &problem.path.0);
            let path = path.call_method1("decode", ("utf-8", "surrogateescape"))?;
            Err(PyOSError::new_err((problem.errno, problem.words.to_string(), path.unbind())))
        }
        Some(Err(error @ ErrandError::NoMemory)) => Err(PyMemoryError::new_err(error.to_string())),
        Some(Err(error)) => Err(failure(error).into_py_err(py)),
        None => Err(Failure::new("Cancelled", "given up").into_py_err(py)),
    }
}

fn failure(error: ErrandError) -> Failure {
    match error {
        ErrandError::Stream(error) => error.into(),
        ErrandError::Refused(refusal) => Failure::new("Refused", &refusal).hint_of(refusal.hint),
        ErrandError::TooLong => Failure::usage(error),
        _ => Failure::new("PeerError", error),
    }
}

fn told(py: Python<'_>, found: Found) -> Told<'_> {
    let kind = match found.kind {
        FoundKind::File => "file",
        FoundKind::Directory => "directory",
        FoundKind::Link => "link",
        FoundKind::Special => "other",
    };
    let modified = found.modified.0 as f64 + f64::from(found.modified.1) / 1e9;
    let target = found.target.map(|target| PyBytes::new(py, &target.0));
    (PyBytes::new(py, &found.name.0), kind, found.size, found.mode, found.uid, found.gid, modified, found.inode, target)
}
