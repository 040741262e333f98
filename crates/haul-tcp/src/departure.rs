//! When packets leave: the program that gives each packet of a class its time, at an interface. The discipline there ([`Discipline::Fq`](crate::discipline::Discipline)) holds it until then.

use std::io;
use std::os::fd::OwnedFd;

use crate::class::{PaceClass, with_rates};
use crate::error::TcpError;
use crate::kernel::bpf;
use crate::kernel::library::{Library, Loaded};
use crate::kernel::object::Object;

static DEPARTURE: Object = Object::packed(include_bytes!(concat!(env!("OUT_DIR"), "/departure.bpf.o.zst")));

/// Has the program look at what leaves through the interface of this number, for as long as the link lives. It gives nothing a time that nobody has said a class of.
pub(crate) fn at(interface: u32, classes: &[PaceClass]) -> Result<OwnedFd, TcpError> {
    let library = Library::open()?;
    let object = load(&library, classes)?;
    bpf::link_to_interface(object.program(PROGRAM)?, interface).map_err(|source| match source.kind() {
        // What the kernel was built without.
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => TcpError::NoDepartures("it takes no program at an interface"),
        _ => TcpError::doing("attaching to an interface")(source),
    })
}

/// The program, with the rates of these classes.
fn load<'a>(library: &'a Library, classes: &[PaceClass]) -> Result<Loaded<'a>, TcpError> {
    let object = library.object(DEPARTURE.bytes())?;
    object.load()?;
    let departures = object.map("departures")?;
    for (class, number) in with_rates(classes) {
        let written = bpf::update(departures, &number.to_ne_bytes(), &free(class.bits_per_s));
        written.map_err(TcpError::doing("filling the tables"))?;
    }
    Ok(object)
}

/// A class that has sent nothing yet: `struct departure`, its lock first.
fn free(bits_per_s: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[8..16].copy_from_slice(&bits_per_s.to_ne_bytes());
    bytes
}

const PROGRAM: &str = "depart";

#[cfg(test)]
mod tests;
