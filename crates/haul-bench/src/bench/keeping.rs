//! Where results are kept, and the files that they are.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::measurement::Results;
use super::{figures, machine, report};

/// Results that cannot be kept.
#[derive(Debug, Error)]
pub enum KeepError {
    /// Their directory cannot be made.
    #[error("cannot make {}: {error}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A chart cannot be drawn.
    #[error("cannot draw {name}: {error}")]
    Draw {
        /// Which.
        name: String,
        /// Why.
        error: haul_plot::PlotError,
    },
    /// They are no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Makes the directory of results: the one that is asked for; otherwise `bench/results/DATE-NAME` in a checkout of haul, and what `elsewhere` makes of the date in other places.
pub fn directory(asked: Option<PathBuf>, name: &str, elsewhere: impl FnOnce(&str) -> String) -> Result<PathBuf, KeepError> {
    let path = asked.unwrap_or_else(|| {
        let date = machine::date().replace(' ', "-").replace(':', "");
        let is_checkout = Path::new("Cargo.toml").exists() && Path::new("crates/haul-bench").exists();
        if is_checkout { Path::new("bench/results").join(format!("{date}-{name}")) } else { elsewhere(&date).into() }
    });
    fs::create_dir_all(&path).map_err(|error| KeepError::Directory { path: path.clone(), error })?;
    Ok(path)
}

impl Results {
    /// One object.
    pub fn json(&self) -> Result<String, KeepError> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// Writes all that there is of them into `dir`: JSON, CSV, tables and charts.
    pub fn write(&self, dir: &Path) -> Result<(), KeepError> {
        let put = |name: &str, content: &[u8]| {
            let path = dir.join(name);
            fs::write(&path, content).map_err(|error| KeepError::Write { path, error })
        };
        put("results.json", self.json()?.as_bytes())?;
        put("results.csv", report::csv(self).as_bytes())?;
        put("results.txt", report::text(self).as_bytes())?;
        for (name, figure) in figures::figures(self) {
            let drawn = figure.svg().and_then(|svg| Ok((svg, figure.png()?)));
            let (svg, png) = drawn.map_err(|error| KeepError::Draw { name: name.clone(), error })?;
            put(&format!("{name}.svg"), svg.as_bytes())?;
            put(&format!("{name}.png"), &png)?;
        }
        Ok(())
    }
}
