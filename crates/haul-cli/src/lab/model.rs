//! `haul lab wan check --model`: the simulator's TCP beside the kernel's, as a table.

use std::io;

use haul_lab::check::{Extent, ModelRow, TOLERANCE, run_model};
use haul_units::Cancel;

use super::commands::COMMANDS;
use super::print::{print, write};
use crate::exit::{Exit, Failure};

/// Prints the table; partial where a row is not within the tolerance.
pub fn run(extent: Extent, markdown: bool) -> Result<Exit, Failure> {
    let mut table = Table { markdown, rows: 0, within: 0, log_ratios: 0.0 };
    table.head().map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    // An interrupt ends this process, and the emulator with it.
    let lacking = run_model(extent, COMMANDS, &Cancel::new(), |row| table.row(row))?;
    for algorithm in lacking {
        print(&format!("{algorithm:<6}not compared: this kernel has no {algorithm}\n"))?;
    }
    table.end()
}

/// What has been printed.
struct Table {
    markdown: bool,
    rows: u32,
    within: u32,
    log_ratios: f64,
}

impl Table {
    fn head(&self) -> io::Result<()> {
        self.cells(["TCP", "link", "flows", "kernel, Mbit/s each", "model", "ratio", "second half", "model", "ratio", ""])?;
        if self.markdown { write("|---|---|---|---|---|---|---|---|---|---|\n") } else { Ok(()) }
    }

    fn row(&mut self, row: &ModelRow) -> io::Result<()> {
        self.rows += 1;
        self.within += u32::from(row.is_within());
        self.log_ratios += row.ratio().ln();
        let link = format!("{} Mbit/s, {} ms, {} %", row.rate_mbps, row.rtt_ms, row.loss_percent);
        let figure = |[mean, error]: [f64; 2]| format!("{mean:.2} ± {error:.2}");
        self.cells([
            row.algorithm,
            &link,
            &format!("{} x {} s", row.flows, row.seconds),
            &figure(row.kernel.whole_mbps),
            &figure(row.model.whole_mbps),
            &format!("{:.2}", row.ratio()),
            &figure(row.kernel.half_mbps),
            &figure(row.model.half_mbps),
            &format!("{:.2}", row.ratio_of_half()),
            if row.is_within() { "ok" } else { "off" },
        ])
    }

    fn end(&self) -> Result<Exit, Failure> {
        let mean = (self.log_ratios / f64::from(self.rows.max(1))).exp();
        let tolerance = TOLERANCE * 100.0;
        print(&format!(
            "\n{} of {} rows within {tolerance:.0} %; the model is {mean:.2} of the kernel on average.\n",
            self.within, self.rows
        ))?;
        Ok(if self.within == self.rows { Exit::Done } else { Exit::Partial })
    }

    fn cells(&self, cells: [&str; 10]) -> io::Result<()> {
        if self.markdown {
            return write(&format!("| {} |\n", cells.join(" | ")));
        }
        let [tcp, link, flows, kernel, model, ratio, half, model_half, ratio_half, verdict] = cells;
        write(&format!(
            "{tcp:<6}{link:<26}{flows:<11}{kernel:<21}{model:<16}{ratio:<7}{half:<16}{model_half:<16}{ratio_half:<7}{verdict}\n"
        ))
    }
}
