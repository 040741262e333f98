//! Beginning and end of the library as a whole.

use std::ffi::{c_char, c_int};

use super::lifetime;
use crate::{border, fork, started, table};

#[unsafe(no_mangle)]
extern "C" fn haul_startup() -> c_int {
    border::unchecked(|| {
        fork::check()?;
        fork::watch();
        started::enter();
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_cleanup() -> c_int {
    border::done(|| {
        if started::leave() {
            for entry in table::take_all() {
                lifetime::end(&entry);
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn haul_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
