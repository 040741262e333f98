//! Keys: who one is, and whom one believes.

use std::path::PathBuf;

use haul::{Fingerprint, PeerTrust};
use haul_peer::keys::{self, Known, KnownHosts};
use haul_peer::{DaemonHost, StateDir};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySequence, PyString};

use crate::errors::{Failure, OrRaise};

/// A key pair. Made anew, read from its PKCS#8 form, or the user's own ([`own_key`]).
#[pyclass(frozen, module = "haul._haul")]
#[derive(Clone)]
pub struct Identity(pub haul::Identity);

#[pymethods]
impl Identity {
    /// A new key, or the one of `pkcs8`, bytes that `to_pkcs8` gave.
    #[new]
    #[pyo3(signature = (pkcs8=None))]
    fn new(py: Python<'_>, pkcs8: Option<&[u8]>) -> PyResult<Self> {
        match pkcs8 {
            None => Ok(Self(py.detach(haul::Identity::generate))),
            Some(der) => haul::Identity::from_pkcs8(der).map(Self).map_err(Failure::usage).or_raise(py),
        }
    }

    /// What others are told: `SHA256:..`.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.public_key().fingerprint().to_string()
    }

    /// The secret, to be kept in a file that nobody else may read; none for keys of certificates.
    fn to_pkcs8<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.to_pkcs8().map(|der| PyBytes::new(py, &der))
    }

    fn __repr__(&self) -> String {
        format!("<haul.Identity {}>", self.fingerprint())
    }
}

/// The user's own key, made if there is none; `state` is the directory of keys where it is not the usual one.
#[pyfunction]
#[pyo3(signature = (state=None))]
pub fn own_key(py: Python<'_>, state: Option<PathBuf>) -> PyResult<Identity> {
    let loaded = py.detach(|| {
        let state = StateDir::find(state.as_deref()).map_err(|error| Failure::new("LocalError", error))?;
        let (identity, _) = keys::load_or_make(&state).map_err(|error| Failure::new("LocalError", haul_peer::chain(&error)))?;
        Ok::<_, Failure>(identity)
    });
    loaded.map(Identity).or_raise(py)
}

/// Trusts a daemon's key from now on, as `haul key trust` does.
#[pyfunction]
#[pyo3(signature = (host, fingerprint, state=None, replace=false))]
pub fn trust(py: Python<'_>, host: &str, fingerprint: &str, state: Option<PathBuf>, replace: bool) -> PyResult<()> {
    let host = DaemonHost::parse(host).or_raise(py)?;
    let key = parse_fingerprint(fingerprint).or_raise(py)?;
    let local = |error: &dyn std::fmt::Display| Failure::new("LocalError", error);
    let trusted = py.detach(|| {
        let state = StateDir::find(state.as_deref()).map_err(|error| local(&error))?;
        state.create().map_err(|error| local(&error))?;
        let mut known = KnownHosts::load(state.known_hosts()).map_err(|error| local(&haul_peer::chain(&error)))?;
        match known.look_up(&host, key) {
            Known::Trusted => Ok(()),
            Known::Changed(trusted) if !replace => {
                let failure = Failure::new("NotTrusted", format_args!("{host}: another key is trusted: {trusted}"));
                Err(failure.hint("only if its owner confirms the new key: replace=True"))
            }
            _ => known.trust(&host, key).map_err(|error| local(&error)),
        }
    });
    trusted.or_raise(py)
}

/// `SHA256:` and 43 characters.
pub fn parse_fingerprint(text: &str) -> Result<Fingerprint, Failure> {
    text.parse().map_err(|error| Failure::usage(error).hint("`haul key show` on the other host prints it"))
}

/// The same, the argument `trust`.
pub fn fingerprint(trust: &Bound<'_, PyAny>) -> PyResult<Fingerprint> {
    let Ok(text) = trust.extract::<String>() else {
        let what = "trust: the fingerprint of the other side's key is wanted, text that begins with SHA256:";
        let given = trust.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{what}, not {given}")));
    };
    parse_fingerprint(&text).or_raise(trust.py())
}

/// Whom to believe: one fingerprint, several, or `None` for anyone.
pub fn trust_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<PeerTrust> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(PeerTrust::Anyone) };
    let several = if given.is_instance_of::<PyString>() { None } else { given.cast::<PySequence>().ok() };
    let keys = match several {
        Some(several) => several.try_iter()?.map(|key| fingerprint(&key?)).collect::<PyResult<_>>()?,
        None => vec![fingerprint(given)?],
    };
    Ok(PeerTrust::Pinned(keys))
}
