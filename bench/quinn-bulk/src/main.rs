//! Bulk over quinn.

fn main() {}
