//! The laws in this machine's kernel, and the ways by which connections get them: between network namespaces that the tests make, as root.
//!
//! What is loaded is seen by the whole machine, so the tests go one after the other, and each looks that nothing is left.

mod coupled;
mod load;
mod objects;
mod order;
mod rig;
mod road;
mod ways;
#[path = "../wire/mod.rs"]
mod wire;
