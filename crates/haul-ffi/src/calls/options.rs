//! Options: numbers, and one name.

use std::ffi::{c_char, c_int};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Duration;

use haul::{BitRate, Bytes, ControllerChoice, PATHS_MAX};

use crate::failure::{Outcome, invalid};
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::Settings;
use crate::{border, pointers};

use super::stream;

/// HAUL_OPT_*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opt {
    SendTimeout = 1,
    ReceiveTimeout = 2,
    ConnectTimeout = 3,
    Memory = 4,
    StreamWindow = 5,
    MaxPacket = 6,
    IdleTimeout = 7,
    KeepAlive = 8,
    MaxStreams = 9,
    RateLimit = 10,
    Paths = 11,
    Priority = 12,
    Controller = 20,
}

const ALL: [Opt; 13] = [
    Opt::SendTimeout,
    Opt::ReceiveTimeout,
    Opt::ConnectTimeout,
    Opt::Memory,
    Opt::StreamWindow,
    Opt::MaxPacket,
    Opt::IdleTimeout,
    Opt::KeepAlive,
    Opt::MaxStreams,
    Opt::RateLimit,
    Opt::Paths,
    Opt::Priority,
    Opt::Controller,
];

impl Opt {
    fn of(number: c_int) -> Outcome<Self> {
        let found = ALL.into_iter().find(|option| *option as c_int == number);
        found.ok_or_else(|| invalid(format!("{number} is no option: see HAUL_OPT_* in haul.h")))
    }

    /// What a number may be.
    fn range(self) -> RangeInclusive<i64> {
        match self {
            Self::SendTimeout | Self::ReceiveTimeout => -1..=i64::MAX,
            Self::ConnectTimeout | Self::IdleTimeout => 1..=YEAR_MS,
            Self::Memory | Self::StreamWindow => 1 << 16..=1 << 50,
            Self::MaxPacket => 1200..=65_507,
            Self::KeepAlive => 0..=YEAR_MS,
            Self::MaxStreams => 1..=1 << 20,
            Self::RateLimit => 0..=i64::MAX,
            Self::Paths => 1..=PATHS_MAX.into(),
            // A controller is no number: it was told apart before.
            Self::Priority | Self::Controller => 0..=255,
        }
    }
}

const YEAR_MS: i64 = 366 * 86_400_000;

fn set(entry: &Entry, option: Opt, value: i64) -> Outcome<()> {
    if option == Opt::Controller {
        return Err(invalid("a controller has a name: haul_setopt_name()"));
    }
    if !option.range().contains(&value) {
        let (first, last) = option.range().into_inner();
        return Err(invalid(format!("{option:?} of {value}: {first} to {last} are possible")));
    }
    match (option, &entry.object) {
        (Opt::SendTimeout, _) => entry.send_timeout.store(value, Ordering::Relaxed),
        (Opt::ReceiveTimeout, _) => entry.receive_timeout.store(value, Ordering::Relaxed),
        (Opt::Priority, _) => return stream::set_priority(entry, value as u8),
        (_, Object::Endpoint(place)) => configure(&mut place.settings(), option, value),
        (Opt::Memory, Object::Connection(connection)) => connection.made()?.set_memory(Bytes(value as u64)),
        (Opt::RateLimit, Object::Connection(connection)) => connection.made()?.set_rate_limit(limit(value)),
        _ => return Err(wrong_kind(entry, "an endpoint")),
    }
    Ok(())
}

/// Values are in the option's range, so they fit.
fn configure(settings: &mut Settings, option: Opt, value: i64) {
    let milliseconds = Duration::from_millis(value as u64);
    let transport = &mut settings.transport;
    match option {
        Opt::ConnectTimeout => settings.connect_timeout = Some(milliseconds),
        Opt::Memory => transport.memory = Bytes(value as u64),
        Opt::StreamWindow => transport.stream_window = Bytes(value as u64),
        Opt::MaxPacket => transport.max_packet = value as u16,
        Opt::IdleTimeout => transport.idle_timeout = milliseconds,
        Opt::KeepAlive => transport.keep_alive = (value > 0).then_some(milliseconds),
        Opt::MaxStreams => transport.max_streams = value as u32,
        Opt::RateLimit => transport.rate_limit = limit(value),
        Opt::Paths => transport.paths = value as u8,
        Opt::SendTimeout | Opt::ReceiveTimeout | Opt::Priority | Opt::Controller => {}
    }
}

fn limit(value: i64) -> Option<BitRate> {
    (value > 0).then(|| BitRate::from_bps(value as u64))
}

fn get(entry: &Entry, option: Opt) -> Outcome<i64> {
    let place = match (option, &entry.object) {
        (Opt::SendTimeout, _) => return Ok(entry.send_timeout.load(Ordering::Relaxed)),
        (Opt::ReceiveTimeout, _) => return Ok(entry.receive_timeout.load(Ordering::Relaxed)),
        (Opt::Priority | Opt::Controller, _) => return Err(invalid(format!("{option:?} cannot be read"))),
        (_, Object::Endpoint(place)) => place,
        _ => return Err(wrong_kind(entry, "an endpoint")),
    };
    let settings = place.settings();
    let transport = &settings.transport;
    Ok(match option {
        Opt::ConnectTimeout => settings.connect_timeout_of_clients().as_millis() as i64,
        Opt::Memory => transport.memory.as_u64() as i64,
        Opt::StreamWindow => transport.stream_window.as_u64() as i64,
        Opt::MaxPacket => transport.max_packet.into(),
        Opt::IdleTimeout => transport.idle_timeout.as_millis() as i64,
        Opt::KeepAlive => transport.keep_alive.map_or(0, |after| after.as_millis() as i64),
        Opt::MaxStreams => transport.max_streams.into(),
        Opt::RateLimit => transport.rate_limit.map_or(0, |rate| rate.as_bps() as i64),
        _ => transport.paths.into(),
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_setopt(handle: i64, option: c_int, value: i64) -> c_int {
    border::done(|| {
        let entry = table::get(handle)?;
        set(&entry, Opt::of(option)?, value)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_setopt_name(handle: i64, option: c_int, name: *const c_char) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or a text.
        let name = unsafe { pointers::text(name, "a name") }?;
        let entry = table::get(handle)?;
        if Opt::of(option)? != Opt::Controller {
            return Err(invalid("this option is a number: haul_setopt()"));
        }
        let choice = name.parse::<ControllerChoice>().map_err(|error| invalid(error.to_string()))?;
        match &entry.object {
            Object::Endpoint(place) => place.settings().transport.controller = choice,
            Object::Connection(connection) => connection.made()?.set_controller(choice),
            _ => return Err(wrong_kind(&entry, "an endpoint or a connection")),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_getopt(handle: i64, option: c_int, value: *mut i64) -> c_int {
    border::done(|| {
        let entry = table::get(handle)?;
        let found = get(&entry, Opt::of(option)?)?;
        // SAFETY: C's promise: null or room for a number.
        match unsafe { value.as_mut() } {
            Some(value) => *value = found,
            None => return Err(invalid("a null pointer where room for a number is wanted")),
        }
        Ok(())
    })
}
