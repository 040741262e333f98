//! Measuring over the emulated WAN of `haul-lab`: haul beside other tools, and the figures of the field, reproduced.
//!
//! | module | idea |
//! |---|---|
//! | [`bench`](mod@bench) | rows of paths and work, the tools that take turns, what arrived, and whether haul reached its goals |
//! | [`experiment`] | each reproduces a figure, in simulation and on real sockets, and says what came out |
//! | [`plot`] | charts as SVG and PNG |
//!
//! ```
//! use haul_bench::experiment::find;
//!
//! let experiment = find("loss")?;
//! println!("{}: {}, after {}", experiment.name, experiment.about, experiment.reproduces);
//! assert!(find("lose").is_err_and(|error| error.to_string().contains("did you mean `loss`?")));
//! # Ok::<_, haul_bench::experiment::ExperimentError>(())
//! ```
//!
//! What is measured on real sockets runs in processes of an emulator ([`bench::Emulators`]): who stops it says so by [`bench::Observer::go_on`], and nothing is left but the results.
//!
//! A crate beside the emulator because tests of the transport need only that: neither the drivers of other people's tools, nor fonts, nor pixels.

pub mod bench;
pub mod experiment;
pub use haul_plot as plot;
