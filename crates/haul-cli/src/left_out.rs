//! Commands that are about what Linux alone has, or were not made for Windows yet: they say so.

use crate::exit::{Exit, Failure};

/// A command's module, in which it says that it is not there.
macro_rules! left_out {
    ($($name:ident),*) => {
        $(pub mod $name {
            use crate::args::LeftOut;
            use crate::exit::{Exit, Failure};

            /// Says it.
            pub fn run(_: &LeftOut) -> Result<Exit, Failure> {
                crate::left_out::said(stringify!($name))
            }
        })*
    };
}

left_out!(ctl, lab, pace, rsync, tcp);

/// `haul rsh`, which has no failure but its status.
pub mod rsh {
    use crate::args::LeftOut;
    use crate::exit::Exit;
    use crate::output;

    /// As ssh fails.
    pub const FAILED: Exit = Exit::Code(255);

    /// Says it.
    pub fn run(_: LeftOut, _: &[std::ffi::OsString]) -> Exit {
        if let Err(failure) = crate::left_out::said("rsh") {
            output::print_failure(&failure);
        }
        FAILED
    }
}

/// `haul fleet`, which would read a configuration file.
pub mod fleet {
    use crate::args::LeftOut;
    use crate::exit::{Exit, Failure};

    /// Says it.
    pub fn run(_: LeftOut, _: &[std::ffi::OsString]) -> Result<Exit, Failure> {
        crate::left_out::said("fleet")
    }
}

fn said(name: &str) -> Result<Exit, Failure> {
    Err(Failure::new(format!("haul for Windows has no `haul {name}`"))
        .hint("cp, key, perf, pipe, proxy, remote and serve are there; the others run on Linux"))
}
