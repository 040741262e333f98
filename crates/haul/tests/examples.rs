//! The examples that teach run.

#[path = "../examples/blocks.rs"]
mod blocks;
#[path = "../examples/echo.rs"]
mod echo;
#[path = "../examples/sink.rs"]
mod sink;

#[test]
fn echo() {
    echo::main().expect("runs");
}

#[test]
fn blocks() {
    blocks::main().expect("runs");
}

#[test]
fn sink() {
    sink::main().expect("runs");
}
