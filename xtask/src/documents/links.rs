//! A link from one document to another leads to a file that is there, and to a heading that it has.

use std::path::{Component, Path, PathBuf};

use crate::finding::Finding;
use crate::workspace::{Document, Workspace};

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let root = crate::workspace::root();
    check_with(&workspace.documents, |path| root.join(path).exists())
}

fn check_with(documents: &[Document], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in documents {
        for (line, target) in targets(&document.text) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let to = if path.is_empty() { document.path.clone() } else { resolve(&document.path, path) };
            let page = documents.iter().find(|other| other.path == to);
            let leads = page.is_some() || exists(&to);
            let has_anchor = anchor.is_empty() || page.is_none_or(|page| anchors(&page.text).iter().any(|known| known == anchor));
            if !(leads && has_anchor) {
                let message = format!("the link to {target} leads nowhere");
                findings.push(Finding { place: format!("{}:{line}", document.path), message });
            }
        }
    }
    findings
}

/// What is linked to outside of code, with its line.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced || line.starts_with("    ") && !line.trim_start().starts_with("- ") && line.trim_start().starts_with("haul") {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let target = &rest[..rest.find(')').unwrap_or(rest.len())];
            if !target.contains("://") && !target.starts_with("mailto:") && !target.contains(' ') {
                found.push((index + 1, target.to_owned()));
            }
        }
    }
    found
}

fn resolve(from: &str, path: &str) -> String {
    let mut whole = PathBuf::new();
    let dir = Path::new(from).parent().unwrap_or(Path::new(""));
    for part in dir.join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    whole.to_string_lossy().into_owned()
}

/// The anchors of headings, as forges make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let document = |path: &str, text: &str| Document { path: path.to_owned(), text: text.to_owned() };
        let documents = [document("docs/use/a.md", text), document("docs/b.md", "# B\n\n## The law, in short\n")];
        check_with(&documents, |path| path == "README.md").into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_none() {
        assert_eq!(
            findings("[b](../b.md), [law](../b.md#the-law-in-short), [r](../../README.md), [w](https://x.example)"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_findings() {
        assert_eq!(findings("[c](c.md)"), ["the link to c.md leads nowhere"]);
        assert_eq!(findings("[b](../b.md#nothing)"), ["the link to ../b.md#nothing leads nowhere"]);
    }
}
