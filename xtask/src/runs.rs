//! Runs that were measured, as text: directories `DATE-KIND` or `DATE-TIME-KIND` in bench/results, as `haul lab bench` and `haul lab run` make them.

use std::path::Path;
use std::{fs, io};

/// Where runs are kept.
pub const RUNS: &str = "bench/results";

/// The files of one run that say something, by their path in it.
#[derive(Debug, Default, Clone)]
pub struct Run {
    /// The name of its directory.
    pub name: String,
    pub files: Vec<(String, String)>,
}

impl Run {
    /// All runs below the root of the workspace.
    pub fn read_all(root: &Path) -> io::Result<Vec<Self>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(root.join(RUNS))? {
            let entry = entry?;
            let mut run = Self { name: entry.file_name().to_string_lossy().into_owned(), files: Vec::new() };
            collect(&entry.path(), "", &mut run.files)?;
            run.files.sort();
            if !run.files.is_empty() {
                runs.push(run);
            }
        }
        runs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(runs)
    }

    /// What was measured: the name without its date and its time.
    pub fn kind(&self) -> String {
        let is_number = |part: &str| part.chars().all(|c| c.is_ascii_digit());
        let parts: Vec<&str> = self.name.split('-').filter(|part| !(part.len() == 4 && is_number(part))).collect();
        let dated = parts.iter().take(2).all(|part| part.len() == 2 && is_number(part));
        parts[if dated { 2 } else { 0 }..].join("-")
    }

    /// Date, and time where the name has one before the kind: newer ones are greater.
    pub fn age(&self) -> (&str, &str) {
        let (date, rest) = self.name.split_at_checked(10).unwrap_or((&self.name, ""));
        let time = rest.split('-').find(|part| part.len() == 4 && part.chars().all(|c| c.is_ascii_digit()));
        (date, time.unwrap_or("9999"))
    }

    pub fn file(&self, name: &str) -> Option<&str> {
        self.files.iter().find(|(path, _)| path == name).map(|(_, text)| text.as_str())
    }
}

fn collect(dir: &Path, below: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        let speaks = [".md", ".csv", ".txt", ".json"].iter().any(|end| name.ends_with(end));
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else if speaks {
            files.push((name, fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_the_name_without_its_date_and_time() {
        let kind = |name: &str| Run { name: name.to_owned(), files: Vec::new() }.kind();
        assert_eq!(kind("2026-11-23-kernel-sharing"), "kernel-sharing");
        assert_eq!(kind("2026-11-23-0123-fleet"), "fleet");
        assert_eq!(kind("2026-11-22-sharing-0814"), "sharing");
        assert_eq!(kind("2026-11-22-10g"), "10g");
    }
}
