//! Controllers in a simulated network: through the real pacer, the real measurements and a real queue.

mod flow;
mod grid;
mod hindered;
mod joining;
mod lossy;
mod named;
mod paths;
mod scenario;
mod sharing;
mod start;
mod start_buckets;
mod start_grid;
