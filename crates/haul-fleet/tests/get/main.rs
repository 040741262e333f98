//! Downloads from members on this machine, over real connections.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod example;
mod failing;
mod fixture;
mod hostile;
mod joining;
mod whole;
