//! Coupled laws in this machine's kernel: rates beside a flow of TCP, so these tests run alone.

#[expect(dead_code, reason = "what looks for what is left uses the rest")]
#[path = "../kernel/objects.rs"]
mod objects;
#[expect(dead_code, reason = "the tests of the ways use the rest")]
#[path = "../kernel/rig.rs"]
mod rig;
#[expect(dead_code, reason = "those of the subflows use the rest")]
#[path = "../kernel/road.rs"]
mod road;
mod sharing;
#[path = "../wire/mod.rs"]
mod wire;
