//! One page of HTML that needs nothing else: no scripts, nothing from elsewhere, and a policy that forbids both.

use std::fmt::Write as _;

use haul_plot::Figure;

use super::error::ReportError;
use super::escape::escape;
use super::record::JobRecord;
use super::{tables, timeline};

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
    <title>haul fleet report</title>\n<style>\n\
    body { font-family: sans-serif; max-width: 1120px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }\n\
    table { border-collapse: collapse; margin: 1em 0 }\n\
    th, td { text-align: left; padding: 0.2em 0.8em; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums }\n\
    svg { max-width: 100%; height: auto; display: block; margin: 1em 0 }\n\
    </style>\n</head>\n<body>\n<h1>haul fleet report</h1>\n";

pub(super) fn page(jobs: &[JobRecord], charts: &[(String, Figure)]) -> Result<String, ReportError> {
    let mut page = HEAD.to_owned();
    if jobs.len() > 1 {
        page.push_str("<h2>Rate against number of members</h2>\n");
        push_table(&mut page, &tables::jobs(jobs));
        for (_, figure) in charts.iter().filter(|(name, _)| name == "members") {
            push_svg(&mut page, &figure.svg()?);
        }
    }
    for job in jobs {
        push_job(&mut page, job)?;
        let prefix = format!("{}-", job.name);
        for (_, figure) in charts.iter().filter(|(name, _)| name.starts_with(&prefix)) {
            push_svg(&mut page, &figure.svg()?);
        }
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn push_job(page: &mut String, job: &JobRecord) -> Result<(), ReportError> {
    let _ = writeln!(page, "<h2>{}</h2>\n<p>{}</p>", escape(&tables::heading(job)), escape(&tables::summary(job)));
    push_table(page, &tables::members(job));
    if !job.problems.is_empty() {
        page.push_str("<h3>Not transferred</h3>\n<ul>\n");
        for (path, why) in &job.problems {
            let _ = writeln!(page, "<li>{}: {}</li>", escape(path), escape(why));
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<h3>Files of each member over time</h3>\n");
    push_svg(page, &timeline::of(job).svg()?);
    Ok(())
}

/// Inside a page an SVG has no declaration of its own.
fn push_svg(page: &mut String, svg: &str) {
    page.push_str(svg.find("<svg").and_then(|start| svg.get(start..)).unwrap_or_default());
    page.push('\n');
}

fn push_table(page: &mut String, rows: &[Vec<String>]) {
    page.push_str("<table>\n");
    for (at, row) in rows.iter().enumerate() {
        let cell = if at == 0 { "th" } else { "td" };
        page.push_str("<tr>");
        for text in row {
            let _ = write!(page, "<{cell}>{}</{cell}>", escape(text));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
}
