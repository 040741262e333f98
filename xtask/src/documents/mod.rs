//! The documents: what is generated in them is current, their lines are short, their links lead somewhere.
//!
//! `cargo xtask docs` writes all of it again; the checks fail where a document is not what that command leaves.

pub mod dates;
mod golden;
pub mod links;
mod numbers;
mod records;

use crate::finding::Finding;
use crate::results;
use crate::workspace::{Document, Workspace};
use crate::wrap;

/// Generated parts are current, and lines at most [`wrap::WIDTH`] columns long.
pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let changed = updated(workspace).into_iter().filter(|made| {
        let known = workspace.documents.iter().find(|known| known.path == made.path);
        made.path != results::PAGE && known.is_none_or(|known| known.text != made.text)
    });
    let message = "lines are too long, or a generated part is not current: run cargo xtask docs";
    changed.map(|made| Finding { place: made.path, message: message.to_owned() }).collect()
}

/// All documents as they are to be.
pub fn updated(workspace: &Workspace) -> Vec<Document> {
    let mut made: Vec<Document> = Vec::new();
    for document in &workspace.documents {
        let text = match document.path.as_str() {
            results::PAGE => results::page(&workspace.runs),
            numbers::PAGE => numbers::page(workspace),
            _ if wrap::is_wrapped(&document.path) => {
                wrap::wrapped(&records::filled(&golden::filled(&document.text, &workspace.golden), &workspace.runs))
            }
            _ => document.text.clone(),
        };
        made.push(Document { path: document.path.clone(), text });
    }
    for (path, text) in [(results::PAGE, results::page(&workspace.runs)), (numbers::PAGE, numbers::page(workspace))] {
        if !made.iter().any(|document| document.path == path) {
            made.push(Document { path: path.to_owned(), text });
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_a_finding_and_what_the_command_leaves_is_none() {
        let document = Document { path: "docs/a.md".to_owned(), text: format!("{}\n", "word ".repeat(40)) };
        let mut workspace = Workspace { documents: vec![document], ..Workspace::default() };
        assert!(check(&workspace).iter().any(|finding| finding.place == "docs/a.md"));
        workspace.documents = updated(&workspace);
        assert_eq!(check(&workspace), []);
    }
}
