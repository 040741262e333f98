//! The laws in this machine's kernel, and the ways by which connections get them: between network namespaces that the tests make, as root.
//!
//! What is loaded is seen by the whole machine, so the tests go one after the other, and each looks that nothing is left.

mod buffers;
#[path = "../chance/mod.rs"]
mod chance;
mod line;
mod load;
mod modes;
mod named;
mod objects;
mod order;
mod rig;
#[expect(dead_code, reason = "what measures uses the rest")]
mod road;
mod stage;
mod subflows;
mod ways;
#[path = "../wire/mod.rs"]
mod wire;
