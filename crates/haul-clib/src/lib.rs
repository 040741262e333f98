//! Functions of a C library that is loaded at run time: neither building nor starting haul needs it.
//!
//! What is declared becomes a type with a field for each function; a library that lacks one of them is an error whose source names it.
//!
//! ```
//! # fn main() -> Result<(), haul_clib::Error> {
//! haul_clib::functions! {
//!     struct Functions {
//!         abs(std::ffi::c_int) -> std::ffi::c_int;
//!     }
//! }
//! // SAFETY: it is loaded already.
//! let library = unsafe { haul_clib::Library::open("libc.so.6") }?;
//! // SAFETY: the type is that of stdlib.h.
//! let functions = unsafe { Functions::find(&library) }?;
//! // SAFETY: any number but the least will do.
//! assert_eq!(unsafe { (functions.abs)(-7) }, 7);
//! # Ok(())
//! # }
//! ```

pub use libloading::Error;

/// A library. It is never unloaded: it may have registered what runs at the end of the process.
#[derive(Debug, Clone, Copy)]
pub struct Library(&'static libloading::Library);

impl Library {
    /// Loads it, as the system's loader finds this name.
    ///
    /// # Safety
    /// What it does when it is loaded must be harmless.
    pub unsafe fn open(name: &str) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let library = unsafe { libloading::Library::new(name) }?;
        Ok(Self(Box::leak(Box::new(library))))
    }

    /// A function; for [`functions!`].
    ///
    /// # Safety
    /// `F` must be its type.
    #[doc(hidden)]
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Error> {
        // SAFETY: the caller's promise; the library stays, and so does what is found in it.
        unsafe { self.0.get::<F>(name.as_bytes()) }.map(|found| *found)
    }
}

/// Declares a type with these functions, `name(types) -> type;` each, and `unsafe fn find(&Library) -> Result<Self, Error>` of it, for which the types must be
/// those of the library.
#[macro_export]
macro_rules! functions {
    ($visible:vis struct $Functions:ident { $($name:ident($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        #[allow(non_snake_case, clippy::struct_field_names, reason = "as the library has them")]
        $visible struct $Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $Functions {
            /// Finds them.
            ///
            /// # Safety
            /// The types must be those of the library.
            $visible unsafe fn find(library: &$crate::Library) -> ::std::result::Result<Self, $crate::Error> {
                ::std::result::Result::Ok(Self {
                    // SAFETY: the caller's promise.
                    $($name: unsafe { library.function(stringify!($name)) }?,)*
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;

    functions! {
        struct Here {
            abs(c_int) -> c_int;
        }
    }

    functions! {
        struct Nowhere {
            abs(c_int) -> c_int;
            no_such_function_of_libc();
        }
    }

    #[test]
    fn a_function_is_found_and_one_that_is_missing_is_named() {
        // SAFETY: it is loaded already.
        let library = unsafe { Library::open("libc.so.6") }.expect("every system has it");
        // SAFETY: the type is that of stdlib.h.
        let here = unsafe { Here::find(&library) }.expect("it has this");
        // SAFETY: any number but the least will do.
        assert_eq!(unsafe { (here.abs)(-7) }, 7);
        // SAFETY: none of it is called.
        let error = unsafe { Nowhere::find(&library) }
            .map(|nowhere| (nowhere.abs, nowhere.no_such_function_of_libc))
            .expect_err("not there");
        let said = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(said.contains("no_such_function_of_libc"), "{error}: {said}");
        // SAFETY: nothing has this name.
        assert!(unsafe { Library::open("libno-such-library.so.0") }.is_err());
    }
}
