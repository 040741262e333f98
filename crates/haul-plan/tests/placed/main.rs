//! Placements played in virtual time over members drawn from a seed.

mod failing;
mod golden;
mod loaded;
mod properties;
mod times;
mod world;
