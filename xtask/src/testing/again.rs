//! A second look at what failed beside others: the same tests, alone.
//!
//! Programs that cross namespaces and real sockets share the cores with each other and with whatever else the machine does. One of their tests that fails
//! in company and passes alone has found a race, in haul or in itself: it is reported as unstable, with all that it said, and waits for somebody to mend it, but
//! the change that happened to meet it is not what broke it. What computes in virtual time gets no second look, for it comes to the same each time; nor does anything
//! where more tests failed than `HAUL_TEST_AGAIN` allows, which only CI sets.

use std::path::PathBuf;

use super::lanes::Lane;
use super::programs::Program;
use super::run::{self, Ended};

/// How many tests of a run may be looked at once more.
pub fn allowed() -> usize {
    std::env::var("HAUL_TEST_AGAIN").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What passed when it was alone: the program as it ended among others, and its tests that failed then.
#[derive(Debug)]
pub struct Unstable {
    pub ended: Ended,
    pub tests: Vec<String>,
}

/// Runs the failed tests again and takes those that pass out of `ended`'s failures. All of them, or none if they are more than `allowed`.
pub fn look(ended: &mut [Ended], programs: &[Program], environment: &[(&'static str, PathBuf)], allowed: usize) -> Vec<Unstable> {
    let failed: Vec<(usize, Vec<String>)> =
        ended.iter().enumerate().filter(|(_, one)| !one.success).map(|(at, one)| (at, failures(&one.output))).collect();
    let deterministic = failed.iter().any(|(at, tests)| ended[*at].lane == Lane::Processor || tests.is_empty());
    if deterministic || failed.iter().map(|(_, tests)| tests.len()).sum::<usize>() > allowed {
        return Vec::new();
    }
    let mut unstable = Vec::new();
    for (at, tests) in failed {
        let Some(program) = programs.iter().find(|program| program.name == ended[at].name) else { continue };
        let again = run::one(&only(program, &tests), ended[at].lane, environment);
        println!("\n== {} again, {} ({}, {:.1} s)", again.name, tests.join(", "), again.how, again.took.as_secs_f64());
        println!("{}", again.output.trim_end());
        // Alone it is silent about what it ran if the name has gone: then it has shown nothing.
        if again.success && super::table::tests(&again.output) == tests.len() as u64 {
            let among_others = std::mem::replace(&mut ended[at], again);
            unstable.push(Unstable { ended: among_others, tests });
        }
    }
    unstable
}

/// The program with these of its tests only.
fn only(program: &Program, tests: &[String]) -> Program {
    let mut program = program.clone();
    program.run.push("--exact".into());
    program.run.extend_from_slice(tests);
    program
}

/// The names under the last "failures:" of what a test program said; none if it did not come that far.
fn failures(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let Some(at) = lines.iter().rposition(|line| *line == "failures:") else { return Vec::new() };
    lines[at + 1..].iter().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lanes::Plan;

    /// A program that says what a test program would: `a` fails, and passes alone if `alone` says so.
    fn program(name: &str, alone: &str) -> Program {
        let script = format!(
            r#"if [ "$1" = --exact ]; then echo "test result: ok. {alone} passed; 0 failed;"; else
            printf 'failures:\n\n---- a stdout ----\nx\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed;\n'; exit 101; fi"#
        );
        let run = ["sh", "-c", &script, "program"].map(String::from).to_vec();
        Program { name: name.into(), run, dir: std::env::temp_dir() }
    }

    fn looked(programs: &[Program], allowed: usize) -> (Vec<bool>, Vec<Vec<String>>) {
        let mut ended = run::all(&Plan::of(programs.to_vec()), &[]);
        ended.sort_by(|one, other| one.name.cmp(&other.name));
        let unstable = look(&mut ended, programs, &[], allowed);
        (ended.iter().map(|one| one.success).collect(), unstable.into_iter().map(|one| one.tests).collect())
    }

    #[test]
    fn what_passes_alone_is_unstable_and_said() {
        let programs = [program("e2e/kills", "1"), program("e2e/lab", "0")];
        let (success, unstable) = looked(&programs, 2);
        assert_eq!(success, [true, false], "a program that ran nothing has not passed");
        assert_eq!(unstable, [["a"]]);
    }

    #[test]
    fn more_than_are_allowed_are_failures_all_of_them() {
        let programs = [program("e2e/kills", "1"), program("e2e/lab", "1")];
        assert_eq!(looked(&programs, 1), (vec![false, false], Vec::new()));
        assert_eq!(looked(&programs, 0), (vec![false, false], Vec::new()));
    }

    #[test]
    fn what_computes_is_not_looked_at_again() {
        assert_eq!(looked(&[program("haul-cc/simulated", "1")], 3), (vec![false], Vec::new()));
    }

    #[test]
    fn the_names_of_what_failed_are_read() {
        let output = "failures:\n\n---- a::b stdout ----\n    c\n\n\nfailures:\n    a::b\n    d\n\ntest result: FAILED.";
        assert_eq!(failures(output), ["a::b", "d"]);
        assert!(failures("killed").is_empty());
    }
}
