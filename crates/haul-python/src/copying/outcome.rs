//! What a call has copied, all its hosts together.

use haul_copy::PathReport;
use haul_files::{Change, FileProblem, Report, Verified, Why, Would};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::fault_name;

/// Totals of the reports, and the last verdict.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    total: Report,
    verdict: String,
    path: Option<PathReport>,
    would: Vec<Would>,
    would_count: u64,
}

impl Outcome {
    /// One more copy.
    pub fn add(&mut self, report: &Report, verdict: String, path: Option<PathReport>) {
        self.total.add(report);
        self.verdict = verdict;
        self.path = path;
    }

    /// What a dry run has found: the first of it, and how much it is.
    pub fn would(&mut self, (first, count): (Vec<Would>, u64)) {
        (self.would, self.would_count) = (first, count);
    }

    /// What was not copied.
    pub fn problems(&self) -> &[FileProblem] {
        &self.total.problems
    }

    /// A line for a log.
    pub fn in_short(&self) -> String {
        let Report { files, bytes, skipped_files, removed, problem_count, .. } = &self.total;
        let bytes = bytes.as_u64();
        format!("{files} files, {bytes} bytes, {skipped_files} skipped, {removed} deleted, {problem_count} problems")
    }

    /// For Python.
    pub fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let total = &self.total;
        let told = PyDict::new(py);
        told.set_item("files", total.files)?;
        told.set_item("directories", total.directories)?;
        told.set_item("symlinks", total.symlinks)?;
        told.set_item("hard_links", total.hard_links)?;
        told.set_item("bytes", total.bytes.as_u64())?;
        told.set_item("resumed_bytes", total.resumed.as_u64())?;
        told.set_item("skipped_files", total.skipped_files)?;
        told.set_item("newer_files", total.newer_files)?;
        told.set_item("skipped_bytes", total.skipped.as_u64())?;
        told.set_item("changed_files", total.changed_files)?;
        told.set_item("left_out", total.left_out)?;
        told.set_item("removed", total.removed)?;
        told.set_item("discarded_bytes", total.discarded.as_u64())?;
        told.set_item("problem_count", total.problem_count)?;
        let problems: PyResult<Vec<_>> = total.problems.iter().map(|problem| told_problem(py, problem)).collect();
        told.set_item("problems", PyList::new(py, problems?)?)?;
        let would: PyResult<Vec<_>> = self.would.iter().map(|would| told_change(py, would)).collect();
        told.set_item("would", PyList::new(py, would?)?)?;
        told.set_item("would_count", self.would_count)?;
        told.set_item("notes", total.notes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        told.set_item("verified", total.verified.map(verified_name))?;
        told.set_item("seconds", total.elapsed.as_secs_f64())?;
        told.set_item("verdict", &self.verdict)?;
        let path = self.path.unwrap_or_default();
        told.set_item("rtt", path.rtt_us as f64 / 1e6)?;
        told.set_item("sent_packets", path.sent_pkts)?;
        told.set_item("lost_packets", path.lost_pkts)?;
        told.set_item("retransmitted_bytes", path.retransmitted_bytes)?;
        Ok(told)
    }
}

fn told_problem<'py>(py: Python<'py>, problem: &FileProblem) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("path", problem.path.0.as_slice())?;
    told.set_item("fault", fault_name(problem.fault))?;
    let why = match problem.why {
        // As it is said here.
        Why::DirectoryWithoutRecursive => "is a directory: not copied without recursive=True".to_owned(),
        ref why => why.to_string(),
    };
    told.set_item("why", why)?;
    told.set_item("errno", if let Why::Os(number) = problem.why { Some(number) } else { None })?;
    Ok(told)
}

fn told_change<'py>(py: Python<'py>, would: &Would) -> PyResult<Bound<'py, PyDict>> {
    let (what, size) = match would.change {
        Change::New(size) => ("copy", Some(size)),
        Change::Replaced(size) => ("replace", Some(size)),
        Change::Directory => ("make", None),
        Change::Link => ("link", None),
        Change::Removed => ("delete", None),
        Change::Attributes => ("attributes", None),
    };
    let told = PyDict::new(py);
    told.set_item("what", what)?;
    told.set_item("path", would.path.0.as_slice())?;
    told.set_item("size", size)?;
    Ok(told)
}

const fn verified_name(verified: Verified) -> &'static str {
    match verified {
        Verified::No => "off",
        Verified::OnArrival => "arrival",
        Verified::ReadBack => "read-back",
    }
}
