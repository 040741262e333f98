//! The examples run.

#[path = "../examples/trains.rs"]
mod trains;

#[test]
fn trains() {
    trains::main().expect("runs");
}
