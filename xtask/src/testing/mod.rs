//! `cargo xtask test`: every test program of the workspace, several at once.
//!
//! ```text
//!   build once ──> [programs] ──> processor:  one after the other, each with a thread for every core
//!                                 waiting:    two at a time, for their time goes by on links and in timers   } together
//!                                 alone:      what measures, one after the other, when the others are done
//!              ──> in CI a second look, alone, at a few that failed
//!              ──> the output of each as it ends, then a table of times, what was skipped, then once more the output of what failed
//! ```
//! `cargo test` runs one program after the other, and stands still while a copy waits for a link to come back. Programs are asked for once
//! (`programs.rs`), sorted by what they need (`lanes.rs`) and run to their end whatever the others come to (`run.rs`); `again.rs` tells a race from a failure.

mod again;
mod lanes;
mod programs;
mod run;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use again::Unstable;
use lanes::Plan;
use programs::Program;
use run::{Clock, Ended};

/// Runs the programs whose name contains one of `wanted`, all of them if there is none.
pub fn test(wanted: &[&str]) -> ExitCode {
    let clock = Clock::start();
    let built = match programs::build() {
        Ok(built) => built,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let building = clock.elapsed();
    let is_wanted = |program: &Program| wanted.is_empty() || wanted.iter().any(|part| program.name.contains(part));
    let programs: Vec<Program> = built.programs.iter().filter(|program| is_wanted(program)).cloned().collect();
    if programs.is_empty() {
        eprintln!("error: no test program is called like that; these are there:");
        built.programs.iter().for_each(|program| eprintln!("  {}", program.name));
        return ExitCode::from(2);
    }
    let mut ended = run::all(&Plan::of(programs.clone()), &built.environment);
    let unstable = again::look(&mut ended, &programs, &built.environment, again::allowed());
    report(&ended, &unstable, building, clock.elapsed())
}

/// The table, and at the very end what failed and how.
fn report(ended: &[Ended], unstable: &[Unstable], building: Duration, in_all: Duration) -> ExitCode {
    println!("\n{}", table::table(ended, building, in_all));
    for line in table::skipped(ended) {
        println!("{line}");
    }
    let failed: Vec<&Ended> = ended.iter().filter(|ended| !ended.success).collect();
    for ended in &failed {
        println!("\n== FAILED: {} ({})\n{}", ended.name, ended.how, ended.output.trim_end());
    }
    for Unstable { ended, tests } in unstable {
        let tests = tests.join(", ");
        println!("\n== UNSTABLE: {}: {tests}: failed beside others, passed alone\n{}", ended.name, ended.output.trim_end());
    }
    let names: Vec<&str> = failed.iter().map(|ended| ended.name.as_str()).collect();
    if names.is_empty() {
        println!("test: all {} programs passed", ended.len());
        for Unstable { ended, tests } in unstable {
            println!("test: UNSTABLE: {}: {}: only when it was alone; mend it", ended.name, tests.join(", "));
        }
        return ExitCode::SUCCESS;
    }
    println!("\ntest: FAILED: {}", names.join(", "));
    ExitCode::FAILURE
}
