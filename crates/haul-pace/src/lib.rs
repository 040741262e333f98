//! Exact spacing of packets by frames that fill the gaps between them.
//!
//! A sender that lets packets go by a timer is as exact as the timer. One that never lets its line fall silent needs none: the line itself is the clock, each
//! byte takes as long as every other, and a gap of so many bytes is as exact as the oscillator of the interface. What fills a gap must end at the first switch; IEEE 802.3x PAUSE
//! frames do, and PAUSE for no time stops nobody. That is PSPacer's idea; *IPG-aware packet scheduling* has the same two parts, a target-rate estimator and a gap packet injector.
//!
//! | module | idea |
//! |---|---|
//! | `target` | how fast: the estimator, a window each round trip |
//! | `scheduler` | which frame leaves next, or how long a gap: classes on a clock of bytes; knows no packets and no time |
//! | `inject` | the same on a real interface, through a TUN device and a packet socket |
//! | `spaced` | an interface in virtual time, by gaps, by a timer, or neither |
//!
//! ```
//! use haul_pace::{Next, Scheduler};
//! use haul_units::{BitRate, Bytes};
//!
//! let mut line = Scheduler::new(BitRate::gbps(1));
//! let class = line.add_class(Some(BitRate::mbps(500)), Bytes::mib(1));
//! line.push(class, "first", Bytes(1538));
//! line.push(class, "second", Bytes(1538));
//! assert_eq!(line.carry(), Next::Frame("first"));
//! assert_eq!(line.carry(), Next::Gap(Bytes(1538)));
//! assert_eq!(line.carry(), Next::Frame("second"));
//! assert_eq!(line.carry(), Next::Idle);
//! ```

mod clock;
mod inject;
mod scheduler;
mod spaced;
mod target;

pub use inject::{InjectClass, InjectError, InjectSpec, InjectStats, Injector, InterfaceError};
pub use scheduler::{ClassId, Next, Scheduler};
pub use spaced::{OnLine, Spaced};
pub use target::{Estimator, of_window};
