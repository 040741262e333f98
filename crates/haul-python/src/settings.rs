//! What a Python program chooses, in Python's types: rates and sizes as numbers (bit/s, bytes) or as text with a unit, times in seconds.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use haul::{BitRate, Bytes, ControllerChoice, PATHS_MAX, TransportConfig, Via};
use haul_peer::chain;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::{Failure, OrRaise};

/// A rate, the argument of this name: bits a second, or `"250M"`, `"1.5 Gbit/s"`.
pub fn rate(name: &str, word: &Bound<'_, PyAny>) -> PyResult<BitRate> {
    let rate = if word.is_instance_of::<PyString>() {
        parsed(name, word)?
    } else {
        BitRate::from_bps(taken(name, word, "a rate, bits a second or text such as \"250M\", is")?)
    };
    if rate == BitRate::ZERO {
        let message = format!("{name}: nothing would ever be sent at a rate of zero");
        return Err(Failure::usage(message).into_py_err(word.py()));
    }
    Ok(rate)
}

/// A size, the argument of this name: bytes, or `"64MiB"`.
pub fn size(name: &str, word: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if word.is_instance_of::<PyString>() {
        return parsed(name, word);
    }
    Ok(Bytes(taken(name, word, "a size, bytes or text such as \"64MiB\", is")?))
}

/// A time in seconds, the argument of this name.
pub fn seconds(name: &str, word: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = taken(name, word, "a time in seconds is")?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::usage(format_args!("{name}: {seconds}: not a time in seconds")).into_py_err(word.py()))
}

fn parsed<T: FromStr<Err: Display>>(name: &str, word: &Bound<'_, PyAny>) -> PyResult<T> {
    let parsed = word.extract::<String>()?.parse();
    parsed.map_err(|error| Failure::usage(format_args!("{name}: {error}"))).or_raise(word.py())
}

/// How a connection behaves: `mode`, `limit`, `memory`, `paths`, `via`, `idle_timeout`, `max_packet`, `stream_window`.
pub fn transport(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<TransportConfig> {
    let mut config = TransportConfig::default();
    let Some(kwargs) = kwargs else { return Ok(config) };
    for (name, value) in kwargs.iter().filter(|(_, value)| !value.is_none()) {
        let name: String = name.extract()?;
        let usage = |message: String| Failure::usage(message).into_py_err(value.py());
        match name.as_str() {
            "mode" => {
                let mode: String = taken(&name, &value, "text is")?;
                let known = || format!("{mode}: no mode: {}", ControllerChoice::names());
                config.controller = mode.parse().map_err(|_| usage(known()))?;
            }
            "limit" => config.rate_limit = Some(rate(&name, &value)?),
            "memory" => config.memory = size(&name, &value)?,
            "stream_window" => config.stream_window = size(&name, &value)?,
            "paths" => {
                let paths: u8 = taken(&name, &value, "a number is")?;
                if !(1..=PATHS_MAX).contains(&paths) {
                    return Err(usage(format!("{paths} paths: 1 to {PATHS_MAX} are possible")));
                }
                config.paths = paths;
            }
            "via" => {
                let ways: Vec<String> = taken(&name, &value, "a list of text is")?;
                config.via =
                    ways.iter().map(|way| way.parse::<Via>()).collect::<Result<_, _>>().map_err(|error| usage(chain(&error)))?;
            }
            "idle_timeout" => config.idle_timeout = seconds(&name, &value)?,
            "max_packet" => config.max_packet = taken::<u16>(&name, &value, "a size in bytes is")?.max(1200),
            _ => return Err(usage(format!("{name}: no setting of a connection"))),
        }
    }
    Ok(config)
}

/// A word that was given and is not `None`.
pub fn given<'py, T: FromPyObjectOwned<'py>>(kwargs: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match kwargs.get_item(name)? {
        Some(value) if !value.is_none() => taken(name, &value, "").map(Some),
        _ => Ok(None),
    }
}

/// A value as what is wanted. Where it is none, the exception names the argument: a number out of range is a `UsageError`, what has another type a `TypeError`.
fn taken<'py, T: FromPyObjectOwned<'py>>(name: &str, value: &Bound<'py, PyAny>, wanted: &str) -> PyResult<T> {
    let py = value.py();
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        if error.is_instance_of::<PyOverflowError>(py) {
            let why = if value.lt(0).unwrap_or(false) { "is less than 0" } else { "is too large" };
            Failure::usage(format_args!("{name}: {value} {why}")).into_py_err(py)
        } else if error.is_instance_of::<PyTypeError>(py) && wanted.is_empty() {
            PyTypeError::new_err(format!("{name}: {}", error.value(py)))
        } else if error.is_instance_of::<PyTypeError>(py) {
            let given = value.get_type().name().map_or_else(|_| "this".into(), |given| given.to_string());
            PyTypeError::new_err(format!("{name}: {wanted} wanted, not {given}"))
        } else {
            error
        }
    })
}
