//! What the checks look at: the packages as `cargo metadata` reports them, the text of every Rust file and of every document, golden files and records of runs.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

use crate::runs::{RUNS, Run};
use crate::source::Source;

/// The document that has the picture of the crates.
pub const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The workspace as text, so that a check needs no file system.
#[derive(Default)]
pub struct Workspace {
    /// Members of the workspace.
    pub packages: Vec<Package>,
    /// Every Rust file below the root, generated and downloaded ones left out.
    pub sources: Vec<Source>,
    /// The text of [`ARCHITECTURE`].
    pub architecture: String,
    /// Every page of Markdown that belongs to the project, records of runs left out.
    pub documents: Vec<Document>,
    /// What was measured, in bench/results.
    pub runs: Vec<Run>,
    /// Golden files of the simulated tests, by their name.
    pub golden: Vec<(String, String)>,
}

/// A page of Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Path from the root of the workspace.
    pub path: String,
    pub text: String,
}

/// One member and what it needs of other members.
#[derive(Clone, Default)]
pub struct Package {
    pub name: String,
    /// What its `Cargo.toml` says that it is.
    pub description: String,
    /// Its directory, from the root of the workspace, such as `crates/haul-cc`.
    pub dir: String,
    pub needs: Vec<Need>,
}

/// One dependency as written in a `Cargo.toml`.
#[derive(Clone)]
pub struct Need {
    pub name: String,
    /// Only for tests and benches.
    pub dev: bool,
}

impl Workspace {
    /// Reads the workspace that this program was built from.
    pub fn read() -> Result<Self, Box<dyn Error>> {
        let root = root();
        let mut paths = Vec::new();
        walk(root, "rs", &mut paths)?;
        paths.sort();
        let mut sources = Vec::with_capacity(paths.len());
        for path in &paths {
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            sources.push(Source::new(&name, &fs::read_to_string(path)?));
        }
        Source::mark_test_modules(&mut sources);
        let architecture = fs::read_to_string(root.join(ARCHITECTURE))?;
        let (documents, runs) = (documents(root)?, Run::read_all(root)?);
        Ok(Self { packages: packages(root)?, sources, architecture, documents, runs, golden: golden(root)? })
    }

    /// The files below `src` of a member.
    pub fn sources_of(&self, package: &Package) -> impl Iterator<Item = &Source> {
        let dir = format!("{}/src/", package.dir);
        self.sources.iter().filter(move |source| source.path.starts_with(&dir))
    }

    /// Lines below `src` of a member, test code not counted.
    pub fn lines_of(&self, package: &Package) -> usize {
        self.sources_of(package).map(Source::length).sum()
    }
}

/// The directory of the workspace that this program was built from.
pub fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

fn packages(root: &Path) -> Result<Vec<Package>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(["metadata", "--no-deps", "--format-version=1"]).current_dir(root).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(parse_metadata(&serde_json::from_slice(&output.stdout)?, root))
}

fn parse_metadata(metadata: &Value, root: &Path) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let need = |dependency: &Value| Need { name: text(&dependency["name"]), dev: dependency["kind"] == "dev" };
    let dir = |manifest: &str| {
        let dir = Path::new(manifest).parent().unwrap_or(root);
        dir.strip_prefix(root).unwrap_or(dir).to_string_lossy().into_owned()
    };
    let package = |package: &Value| Package {
        name: text(&package["name"]),
        description: text(&package["description"]),
        dir: dir(&text(&package["manifest_path"])),
        needs: list(&package["dependencies"]).iter().map(need).collect(),
    };
    list(&metadata["packages"]).iter().map(package).collect()
}

fn documents(root: &Path) -> Result<Vec<Document>, Box<dyn Error>> {
    let mut paths = Vec::new();
    walk(root, "md", &mut paths)?;
    paths.sort();
    let mut documents = Vec::new();
    for path in paths.iter().filter(|path| !path.starts_with(root.join(RUNS))) {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        documents.push(Document { path: name, text: fs::read_to_string(path)? });
    }
    Ok(documents)
}

/// Where tests keep golden tables.
const GOLDEN: &str = "crates/haul-scenarios/tests/golden";

fn golden(root: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut paths = Vec::new();
    walk(&root.join(GOLDEN), "txt", &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, fs::read_to_string(path)?));
    }
    Ok(files)
}

/// Files of a kind, what is built and what is hidden left out.
fn walk(dir: &Path, kind: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&path, kind, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == kind) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_with_their_kind() {
        let metadata = serde_json::json!({"packages": [{"name": "a", "description": "letters",
            "manifest_path": "/w/crates/a/Cargo.toml", "dependencies": [
            {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}]}]});
        let packages = parse_metadata(&metadata, Path::new("/w"));
        assert_eq!((packages[0].description.as_str(), packages[0].dir.as_str()), ("letters", "crates/a"));
        let needs: Vec<_> = packages[0].needs.iter().map(|need| (need.name.as_str(), need.dev)).collect();
        assert_eq!(needs, [("b", false), ("c", true), ("d", false)]);
    }

    #[test]
    fn this_workspace_is_found() {
        let workspace = Workspace::read().expect("the workspace that this test was built from");
        assert!(workspace.packages.iter().any(|package| package.name == "xtask"));
        assert!(workspace.sources.iter().any(|source| source.path == "xtask/src/workspace.rs"));
    }
}
