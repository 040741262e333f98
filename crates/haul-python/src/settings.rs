//! What a Python program chooses, in Python's types: rates and sizes as numbers (bit/s, bytes) or as text with a unit, times in seconds.

use std::time::Duration;

use haul::{BitRate, Bytes, ControllerChoice, PATHS_MAX, TransportConfig, Via};
use haul_peer::chain;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::{Failure, OrRaise};

/// A rate: bits a second, or `"250M"`, `"1.5 Gbit/s"`.
pub fn rate(word: &Bound<'_, PyAny>) -> PyResult<BitRate> {
    if word.is_instance_of::<PyString>() {
        return word.extract::<String>()?.parse().map_err(Failure::usage).or_raise(word.py());
    }
    let bps: u64 = word.extract()?;
    if bps == 0 {
        return Err(Failure::usage("nothing would ever be sent at a rate of zero").into_py_err(word.py()));
    }
    Ok(BitRate::from_bps(bps))
}

/// A size: bytes, or `"64MiB"`.
pub fn size(word: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if word.is_instance_of::<PyString>() {
        return word.extract::<String>()?.parse().map_err(Failure::usage).or_raise(word.py());
    }
    Ok(Bytes(word.extract()?))
}

/// A time in seconds.
pub fn seconds(word: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = word.extract()?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::usage(format_args!("{seconds}: not a time in seconds")).into_py_err(word.py()))
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
                let mode: String = value.extract()?;
                let known = || format!("{mode}: no mode: {}", ControllerChoice::names());
                config.controller = mode.parse().map_err(|_| usage(known()))?;
            }
            "limit" => config.rate_limit = Some(rate(&value)?),
            "memory" => config.memory = size(&value)?,
            "stream_window" => config.stream_window = size(&value)?,
            "paths" => {
                let paths: u8 = value.extract()?;
                if !(1..=PATHS_MAX).contains(&paths) {
                    return Err(usage(format!("{paths} paths: 1 to {PATHS_MAX} are possible")));
                }
                config.paths = paths;
            }
            "via" => {
                let ways: Vec<String> = value.extract()?;
                config.via =
                    ways.iter().map(|way| way.parse::<Via>()).collect::<Result<_, _>>().map_err(|error| usage(chain(&error)))?;
            }
            "idle_timeout" => config.idle_timeout = seconds(&value)?,
            "max_packet" => config.max_packet = value.extract::<u16>()?.max(1200),
            _ => return Err(usage(format!("{name}: no setting of a connection"))),
        }
    }
    Ok(config)
}

/// A word that was given and is not `None`.
pub fn given<'py, T: FromPyObjectOwned<'py>>(kwargs: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match kwargs.get_item(name)? {
        Some(value) if !value.is_none() => Ok(Some(value.extract::<T>().map_err(Into::into)?)),
        _ => Ok(None),
    }
}
