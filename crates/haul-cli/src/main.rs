//! The `haul` command.

fn main() {}
