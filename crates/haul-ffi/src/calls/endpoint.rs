//! Endpoints.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

use haul::Fingerprint;
use libc::{sockaddr, socklen_t};

use super::identity;
use crate::failure::{Outcome, invalid};
use crate::pointers::Given;
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::{Conn, Place};
use crate::waiting::Patience;
use crate::{address, border, pointers};

/// Does something with the endpoint of a handle.
fn with<T>(handle: i64, work: impl FnOnce(&Entry, &Place) -> Outcome<T>) -> Outcome<T> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Endpoint(place) => work(&entry, place),
        _ => Err(wrong_kind(&entry, "an endpoint")),
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_endpoint() -> i64 {
    border::call(|| table::insert(Entry::new(Object::Endpoint(Place::default()))))
}

#[unsafe(no_mangle)]
extern "C" fn haul_set_identity(endpoint: i64, identity: i64) -> c_int {
    border::done(|| {
        let identity = identity::find(identity)?;
        with(endpoint, |_, place| {
            place.settings().identity = Some(identity);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_trust_fingerprint(endpoint: i64, fingerprint: *const c_char) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or a text.
        let text = unsafe { pointers::text(fingerprint, "a fingerprint") }?;
        let fingerprint = text.parse::<Fingerprint>().map_err(|error| invalid(error.to_string()))?;
        with(endpoint, |_, place| {
            place.settings().trust.pinned.push(fingerprint);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_trust_anyone(endpoint: i64) -> c_int {
    border::done(|| {
        with(endpoint, |_, place| {
            place.settings().trust.anyone = true;
            Ok(())
        })
    })
}

type TrustFn = unsafe extern "C" fn(context: *mut c_void, fingerprint: *const c_char) -> c_int;

#[unsafe(no_mangle)]
extern "C" fn haul_trust_callback(endpoint: i64, decide: Option<TrustFn>, context: *mut c_void) -> c_int {
    border::done(|| {
        let decide = decide.ok_or_else(|| invalid("a null pointer where a function is wanted"))?;
        let context = Given(context);
        let decide = move |fingerprint: Fingerprint| {
            let Ok(text) = CString::new(fingerprint.to_string()) else { return false };
            // SAFETY: the application's promise: its function takes its context and a text.
            unsafe { decide(context.pointer(), text.as_ptr()) != 0 }
        };
        with(endpoint, |_, place| {
            place.settings().trust.decide = Some(Arc::new(decide));
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_add_protocol(endpoint: i64, name: *const c_char) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or a text.
        let name = unsafe { pointers::text(name, "the name of a protocol") }?;
        if !(1..=255).contains(&name.len()) {
            return Err(invalid(format!("a protocol's name of {} bytes: 1 to 255 are possible", name.len())));
        }
        with(endpoint, |_, place| {
            place.settings().protocols.push(name.into());
            Ok(())
        })
    })
}

unsafe fn bind(endpoint: i64, address: *const sockaddr, length: socklen_t, listens: bool) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or so many bytes.
        let address = unsafe { address::read(address, length) }?;
        with(endpoint, |_, place| place.bind(&place.settings(), address, listens))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_bind(endpoint: i64, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the same promise.
    unsafe { bind(endpoint, address, length, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_listen(endpoint: i64, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the same promise.
    unsafe { bind(endpoint, address, length, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_accept(endpoint: i64, address: *mut sockaddr, length: *mut socklen_t) -> i64 {
    border::call(|| {
        // Before a connection is taken that would be lost.
        if address.is_null() != length.is_null() {
            return Err(invalid("one null pointer of an address and its length: both or none"));
        }
        with(endpoint, |entry, place| {
            let connection = entry.gate.wait(entry.receiving(), |cx| place.poll_accept(cx))?;
            if !address.is_null() {
                // SAFETY: C's promise, as for accept(2).
                unsafe { address::write(connection.remote_addr(), address, length) }?;
            }
            table::insert(Entry::from(entry, Object::Connection(Conn::made_already(connection))))
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_connect(endpoint: i64, address: *const sockaddr, length: socklen_t) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or so many bytes.
        let to = unsafe { address::read(address, length) }?;
        with(endpoint, |entry, place| {
            let connection = place.connect(to)?;
            entry.gate.wait(Patience::Forever, |cx| connection.poll_made(cx).map_ok(drop))?;
            table::insert(Entry::from(entry, Object::Connection(connection)))
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_connect_start(endpoint: i64, address: *const sockaddr, length: socklen_t) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or so many bytes.
        let to = unsafe { address::read(address, length) }?;
        with(endpoint, |entry, place| table::insert(Entry::from(entry, Object::Connection(place.connect(to)?))))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_getsockname(endpoint: i64, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    border::done(|| {
        with(endpoint, |_, place| {
            let from = place.bound()?.local_addr();
            // SAFETY: C's promise, as for getsockname(2).
            unsafe { address::write(from, address, length) }
        })
    })
}
