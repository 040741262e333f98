//! `cargo xtask ablation`: which rows of the golden tables depend on which number of the engine of `fair` and its siblings.
//!
//! A copy of the workspace in target/ablation gets constants that ask for their value ([`rewrite`]), is built once, and writes its tables once for each
//! number times [`FACTORS`]: the tables of the engine alone, and where it moves none of them, those beside others. What came out stands in a file, a line each, and is not measured again: the command goes on where it was stopped.

mod rewrite;
mod table;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rewrite::{File, Number};
use table::{Moved, Tables};

use crate::workspace;

/// By how much numbers are moved, one way and the other.
const FACTORS: [f64; 2] = [1.3, 0.7];
/// What writes tables, in this order.
const PROGRAMS: [Tested; 2] = [
    Tested { package: "haul-cc", program: "simulated", tests: &[], tables: &[] },
    Tested {
        package: "haul-scenarios",
        program: "scenarios",
        tests: &["sharing::sharing", "robustness::robustness"],
        tables: &["sharing.txt", "robustness.txt"],
    },
];
const HEADER: &str = "number,value,factor,rows moved,by more than a tenth,bounds broken,tables\n";

/// A test program that writes golden tables.
struct Tested {
    package: &'static str,
    program: &'static str,
    /// All, where none is named.
    tests: &'static [&'static str],
    /// What these write; all, where none is named.
    tables: &'static [&'static str],
}

/// Measures the numbers whose names have one of these parts; all, where none is named.
pub fn run(wanted: &[&str]) -> ExitCode {
    match ablation(wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn ablation(wanted: &[&str]) -> Result<(), String> {
    let (root, scratch) = (workspace::root(), workspace::root().join("target/ablation"));
    let numbers = copy(root, &scratch.join("source"))?;
    let programs: Vec<Written> =
        PROGRAMS.iter().map(|tested| Written::build(tested, root, &scratch)).collect::<Result<_, _>>()?;
    let (holds, moved) = programs[0].play(None)?;
    if !holds || moved.count() > 0 {
        return Err(format!("the copy in {} writes other tables with its numbers as they are", scratch.display()));
    }
    let record = scratch.join("ablation.csv");
    let mut known = fs::read_to_string(&record).unwrap_or_default();
    if known.is_empty() {
        known.push_str(HEADER);
        append(&record, HEADER)?;
    }
    let is_wanted = |number: &&Number| wanted.is_empty() || wanted.iter().any(|part| number.name.contains(part));
    // One way for all of them first: who stops it early knows something of each.
    let moves = FACTORS.into_iter().flat_map(|factor| numbers.iter().filter(is_wanted).map(move |number| (number, factor)));
    for (number, factor) in moves {
        let place = format!("{},{},{factor},", number.name, number.value);
        if known.lines().any(|line| line.starts_with(&place)) {
            continue;
        }
        let (mut holds, mut moved) = (true, Moved::default());
        for program in &programs {
            (holds, moved) = program.play(Some((&number.name, factor)))?;
            if !holds || moved.count() > 0 {
                break;
            }
        }
        let broken = if holds { "" } else { "yes" };
        let line = format!("{place}{},{},{broken},{}\n", moved.count(), moved.much, moved.by_table());
        print!("{line}");
        append(&record, &line)?;
    }
    println!("{}", record.display());
    Ok(())
}

/// Copies what git knows, and rewrites the engine there; a file that has not changed keeps its time, and is not compiled again.
fn copy(root: &Path, to: &Path) -> Result<Vec<Number>, String> {
    let listed = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output();
    let listed = listed.map_err(|error| format!("git: {error}"))?;
    let paths = String::from_utf8_lossy(&listed.stdout).into_owned();
    let paths: Vec<&str> = paths.split('\0').filter(|path| !path.is_empty() && !path.starts_with("bench/results")).collect();
    let mut engine = Vec::new();
    for path in paths {
        let from = root.join(path);
        if !from.is_file() {
            continue;
        }
        let bytes = fs::read(&from).map_err(|error| format!("{path}: {error}"))?;
        if path.starts_with(rewrite::FOLDER) && Path::new(path).extension().is_some_and(|extension| extension == "rs") {
            engine.push(File { path: path.to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() });
        } else {
            put(&to.join(path), &bytes)?;
        }
    }
    let numbers = rewrite::numbers(&engine);
    for file in &engine {
        put(&to.join(&file.path), rewrite::rewritten(file, &numbers).as_bytes())?;
    }
    Ok(numbers)
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let failed = |error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    fs::write(path, bytes).map_err(failed)
}

/// A test program that was built, and the tables that it writes with the numbers as they are.
struct Written {
    tested: &'static Tested,
    program: PathBuf,
    golden: PathBuf,
    before: Tables,
}

impl Written {
    fn build(tested: &'static Tested, root: &Path, scratch: &Path) -> Result<Self, String> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(scratch.join("source")).env("CARGO_TARGET_DIR", scratch.join("build"));
        cargo.args(["test", "--locked", "--package", tested.package, "--test", tested.program]);
        let output = cargo.args(["--no-run", "--message-format", "json"]).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let mut programs = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
        let program = programs.next_back().filter(|_| output.status.success());
        let program = program.ok_or_else(|| format!("the copy of {} does not compile: see above", tested.package))?;
        let golden = format!("crates/{}/tests/golden", tested.package);
        let mut before = tables(&root.join(&golden))?;
        before.retain(|name, _| tested.tables.is_empty() || tested.tables.contains(&name.as_str()));
        Ok(Self { tested, program, golden: scratch.join("source").join(golden), before })
    }

    /// Writes the tables, with a number moved; whether all bounds of the tests hold, and what differs.
    fn play(&self, moved: Option<(&str, f64)>) -> Result<(bool, Moved), String> {
        for name in self.before.keys() {
            // It may be missing: a test that fails early writes none.
            let _ = fs::remove_file(self.golden.join(name));
        }
        let mut command = Command::new(&self.program);
        command.args(self.tested.tests).env("HAUL_GOLDEN", "write").stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((name, factor)) = moved {
            command.env(rewrite::VARIABLE, format!("{name}={factor}"));
        }
        let status = command.status().map_err(|error| format!("{}: {error}", self.program.display()))?;
        Ok((status.success(), table::moved(&self.before, &tables(&self.golden)?)))
    }
}

fn tables(dir: &Path) -> Result<Tables, String> {
    let failed = |error| format!("{}: {error}", dir.display());
    let mut tables = Tables::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tables.insert(name, fs::read_to_string(&path).map_err(failed)?);
    }
    Ok(tables)
}

fn append(path: &Path, line: &str) -> Result<(), String> {
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| format!("{}: {error}", path.display()))
}
