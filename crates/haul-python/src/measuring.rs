//! `haul.perf`: a path measured from memory to memory.

use std::sync::mpsc;

use haul::MAX_BLOCK;
use haul_peer::{Host, Operand};
use haul_perf::{Amount, Both, Direction, MeasureError, PROTOCOL, Plan, Role, Ways, measure};
use haul_units::Cancel;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::{Failure, OrRaise};
use crate::reach;
use crate::settings::{self, given, seconds, size};
use crate::waiting::in_thread;

/// Direction, start and length in seconds, and bytes that arrived.
type Interval = (&'static str, f64, f64, u64);

/// Measures the path to the host of an operand, and says what came each way.
#[pyfunction]
pub fn perf<'py>(py: Python<'py>, operand: Vec<u8>, kwargs: &Bound<'_, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    use std::os::unix::ffi::OsStrExt as _;
    let (connector, key, said) = reach::connector(kwargs, PROTOCOL)?;
    let host = match Operand::parse(std::ffi::OsStr::from_bytes(&operand)).or_raise(py)? {
        Operand::Daemon(host, _) => Host::Daemon(host),
        Operand::Ssh(host, _) => Host::Ssh(host),
        local => return Err(Failure::usage(format_args!("{local}: names no other host")).into_py_err(py)),
    };
    let (host, plan, cancel) = (reach::pinned(host, key), plan(kwargs)?, connector.cancel.clone());
    let (ways, (told, intervals)) = (plan.ways, mpsc::channel::<Interval>());
    let stop = cancel.clone();
    let measured = in_thread(py, &cancel, move || {
        let connected = connector.connect(&host)?;
        let closes = connected.connection.clone();
        let _hook = stop.on_cancel(move || closes.close(1, "interrupted"));
        let mut show = |both: &Both| {
            let interval = &both.receiver;
            let length = interval.end_us.saturating_sub(interval.start_us) as f64 / 1e6;
            let _ = told.send((name(both.direction), interval.start_us as f64 / 1e6, length, interval.bytes.iter().sum()));
        };
        let outcome = measure(&connected.connection, &plan, &Cancel::new(), &mut show).map_err(|error| failed(&error))?;
        connected.end();
        Ok::<_, Failure>(outcome)
    })?;
    let outcome = measured.map_err(|failure| said.explain(failure)).or_raise(py)?;
    let result = PyDict::new(py);
    for &direction in ways.directions() {
        let Some(total) = outcome.total(direction, Role::Receiver) else { continue };
        let told = PyDict::new(py);
        told.set_item("bytes", total.bytes.iter().sum::<u64>())?;
        told.set_item("seconds", total.time_us as f64 / 1e6)?;
        told.set_item("error", total.error.as_ref().map(ToString::to_string))?;
        if let Some(path) = outcome.total(direction, Role::Sender).and_then(|sender| sender.paths.first()) {
            told.set_item("rtt", path.rtt_us as f64 / 1e6)?;
            told.set_item("sent_packets", path.sent_pkts)?;
            told.set_item("lost_packets", path.lost_pkts)?;
        }
        result.set_item(name(direction), told)?;
    }
    result.set_item("intervals", PyList::new(py, intervals.try_iter().collect::<Vec<_>>())?)?;
    Ok(result)
}

fn plan(kwargs: &Bound<'_, PyDict>) -> PyResult<Plan> {
    let py = kwargs.py();
    let mut plan = Plan::default();
    if let Some(ways) = given::<String>(kwargs, "ways")? {
        plan.ways = match ways.as_str() {
            "up" => Ways::Up,
            "down" => Ways::Down,
            "both" => Ways::Both,
            other => return Err(Failure::usage(format_args!("{other}: up, down and both are possible")).into_py_err(py)),
        };
    }
    let word = |name| kwargs.get_item(name).map(|word| word.filter(|word| !word.is_none()));
    if let Some(time) = word("seconds")? {
        plan.amount = Amount::Time(seconds("seconds", &time)?.as_micros() as u64);
    }
    if let Some(bytes) = word("bytes")? {
        plan.amount = Amount::Bytes(size("bytes", &bytes)?.as_u64());
    }
    if let Some(interval) = word("interval")? {
        plan.interval_us = seconds("interval", &interval)?.as_micros() as u64;
    }
    if let Some(omit) = word("omit")? {
        plan.omit_us = seconds("omit", &omit)?.as_micros() as u64;
    }
    if let Some(block) = word("block")? {
        plan.block_bytes = size("block", &block)?.as_u64().clamp(1, MAX_BLOCK as u64) as u32;
    }
    plan.streams = given(kwargs, "streams")?.unwrap_or(1);
    let connection = kwargs.get_item("connection")?.map(Bound::cast_into::<PyDict>).transpose()?;
    let transport = settings::transport(connection.as_ref())?;
    plan.mode = transport.controller.to_string().as_str().into();
    plan.rate_bps = transport.rate_limit.map(haul::BitRate::as_bps);
    Ok(plan)
}

const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

fn failed(error: &MeasureError) -> Failure {
    let class = match error {
        MeasureError::Refused(_) => "Refused",
        _ => "NetworkError",
    };
    Failure::new(class, haul_peer::chain(error))
}
