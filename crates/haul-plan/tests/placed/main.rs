//! Placements played in virtual time over members drawn from a seed.

mod golden;
mod properties;
mod times;
mod world;
