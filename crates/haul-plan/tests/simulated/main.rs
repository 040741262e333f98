//! Plans played in virtual time over servers, links and misfortunes drawn from a seed.

mod bound;
mod fast;
mod golden;
mod joining;
mod level;
mod loaded;
mod properties;
mod times;
