//! What there is to run: cargo builds all of it once, with one set of flags, and says where each program is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::workspace::root;

/// Something with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its crate's directory and its target, such as `e2e/kills` or `haul-cc/lib`.
    pub name: String,
    /// What to run.
    pub run: Vec<String>,
    /// Where to run it.
    pub dir: PathBuf,
}

/// All that was built.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Built {
    pub programs: Vec<Program>,
    /// Where tests that start other programs of this workspace find them: they build none themselves then.
    pub environment: Vec<(&'static str, PathBuf)>,
}

/// Builds every test, example and program; what the compiler says goes to standard error.
pub fn build() -> Result<Built, String> {
    let mut command = cargo();
    command.args(["test", "--locked", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]).current_dir(root());
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".into());
    }
    let mut built = parse(&String::from_utf8_lossy(&output.stdout))?;
    built.programs.push(documentation());
    Ok(built)
}

/// The examples in the documentation, by the same libraries.
fn documentation() -> Program {
    let run = ["cargo", "test", "--locked", "--workspace", "--doc"].map(String::from).to_vec();
    Program { name: "documentation".into(), run, dir: root().to_owned() }
}

pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Cargo's messages, one a line.
fn parse(messages: &str) -> Result<Built, String> {
    let mut built = Built::default();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).map_err(|error| format!("cargo said {line:?}: {error}"))?;
        let (Some("compiler-artifact"), Some(executable)) = (message["reason"].as_str(), message["executable"].as_str()) else {
            continue;
        };
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let target = message["target"]["name"].as_str().unwrap_or_default();
        if message["profile"]["test"] == true {
            let dir = Path::new(message["manifest_path"].as_str().unwrap_or_default()).parent().unwrap_or(root());
            let of = dir.file_name().unwrap_or_default().to_string_lossy();
            let which = if kind == "lib" { kind } else { target };
            built.programs.push(Program { name: format!("{of}/{which}"), run: vec![executable.into()], dir: dir.to_owned() });
        } else if (kind, target) == ("bin", "haul") {
            built.environment.push(("HAUL_BIN", executable.into()));
        } else if kind == "example" && !built.environment.iter().any(|(name, _)| *name == "HAUL_EXAMPLES") {
            let dir = Path::new(executable).parent().unwrap_or(root());
            built.environment.push(("HAUL_EXAMPLES", dir.to_owned()));
        }
    }
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: &str, name: &str, test: bool, executable: Option<&str>) -> String {
        serde_json::json!({"reason": "compiler-artifact", "manifest_path": "/w/crates/haul-cli/Cargo.toml",
            "target": {"kind": [kind], "name": name}, "profile": {"test": test}, "executable": executable})
        .to_string()
    }

    #[test]
    fn tests_are_named_by_crate_and_target_and_run_in_their_crate() {
        let lines = [
            artifact("lib", "haul_cli", true, Some("/t/deps/haul_cli-1")),
            artifact("test", "lab", true, Some("/t/deps/lab-2")),
            artifact("bin", "haul", true, Some("/t/deps/haul-3")),
            artifact("lib", "haul_cli", false, None),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let built = parse(&lines.join("\n")).expect("messages of cargo");
        let named: Vec<_> = built.programs.iter().map(|program| (program.name.as_str(), program.run[0].as_str())).collect();
        let expected =
            [("haul-cli/lib", "/t/deps/haul_cli-1"), ("haul-cli/lab", "/t/deps/lab-2"), ("haul-cli/haul", "/t/deps/haul-3")];
        assert_eq!(named, expected);
        assert!(built.programs.iter().all(|program| program.dir == Path::new("/w/crates/haul-cli")));
        assert_eq!(built.environment, [], "nothing to be started by others");
    }

    #[test]
    fn programs_that_tests_start_are_named_to_them() {
        let lines = [
            artifact("bin", "haul", false, Some("/t/haul")),
            artifact("example", "copy_tree", false, Some("/t/examples/copy_tree")),
            artifact("example", "echo", false, Some("/t/examples/echo")),
        ];
        let built = parse(&lines.join("\n")).expect("messages of cargo");
        let expected = [("HAUL_BIN", PathBuf::from("/t/haul")), ("HAUL_EXAMPLES", PathBuf::from("/t/examples"))];
        assert_eq!(built.environment, expected);
        assert!(built.programs.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        assert!(parse("{half a line").is_err());
        assert_eq!(parse("   Compiling haul\n"), Ok(Built::default()), "words of others are not messages");
    }
}
