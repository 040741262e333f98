//! Keys.

use std::ffi::{c_char, c_int, c_void};

use haul::{Fingerprint, Identity};
use haul_peer::{StateDir, chain, keys};

use crate::border;
use crate::failure::{Code, Failure, Outcome, invalid, wrong_state};
use crate::pointers::{bytes, bytes_mut, path, write_text};
use crate::table::{self, Entry, Object, wrong_kind};

fn insert(identity: Identity) -> Outcome<i64> {
    table::insert(Entry::new(Object::Identity(identity)))
}

/// The identity of a handle.
pub fn find(handle: i64) -> Outcome<Identity> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Identity(identity) => Ok(identity.clone()),
        _ => Err(wrong_kind(&entry, "an identity")),
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_identity_generate() -> i64 {
    border::call(|| insert(Identity::generate()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_identity_load(directory: *const c_char) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or a text.
        let named = unsafe { path(directory) };
        let state = StateDir::find(named.as_deref()).map_err(|error| Failure::new(Code::System, chain(&error)))?;
        let (identity, _) = keys::load_or_make(&state).map_err(|error| Failure::new(Code::System, chain(&error)))?;
        insert(identity)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_identity_from_pkcs8(der: *const c_void, length: usize) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or so many bytes.
        insert(Identity::from_pkcs8(unsafe { bytes(der.cast(), length) }?)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_identity_pkcs8(identity: i64, buffer: *mut c_void, size: usize) -> i64 {
    border::call(|| {
        let document = find(identity)?.to_pkcs8().ok_or_else(|| wrong_state("an X.509 identity has no such document"))?;
        // SAFETY: C's promise: null or so many bytes.
        let buffer = unsafe { bytes_mut(buffer.cast(), size) }?;
        let room = buffer.get_mut(..document.len());
        let room = room.ok_or_else(|| invalid(format!("room for {size} bytes where {} are wanted", document.len())))?;
        room.copy_from_slice(&document);
        Ok(document.len() as i64)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fingerprint(handle: i64, buffer: *mut c_char, size: usize) -> c_int {
    border::done(|| {
        let fingerprint = of(handle)?.to_string();
        // SAFETY: C's promise: null or so many bytes.
        unsafe { write_text(&fingerprint, buffer, size) }
    })
}

fn of(handle: i64) -> Outcome<Fingerprint> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Identity(identity) => Ok(identity.public_key().fingerprint()),
        Object::Connection(connection) => {
            let key = connection.made()?.peer_key();
            key.map(|key| key.fingerprint()).ok_or_else(|| wrong_state("the peer has shown no key"))
        }
        _ => Err(wrong_kind(&entry, "an identity or a connection")),
    }
}
