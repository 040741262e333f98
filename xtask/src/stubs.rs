//! Nothing half done is kept: no stub, no test that is switched off, no debugging print.

use crate::finding::Finding;
use crate::workspace::Workspace;

const STUBS: &[(&str, &str)] = &[
    ("todo!(", "a stub: write it or leave it out"),
    ("unimplemented!(", "a stub: write it or leave it out"),
    ("dbg!(", "a debugging print: take it out"),
    ("#[ignore", "a test that never runs: make it run or delete it"),
];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &workspace.sources {
        for (index, line) in source.lines.iter().enumerate() {
            let found = STUBS.iter().filter(|(stub, _)| line.code.contains(stub));
            findings.extend(found.map(|(_, why)| Finding { place: source.place(index + 1), message: (*why).to_owned() }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn places(text: &str) -> Vec<String> {
        let workspace = Workspace { sources: vec![Source::new("a.rs", text)], ..Workspace::default() };
        check(&workspace).into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn each_stub_is_found_with_its_line() {
        for (stub, _) in STUBS {
            assert_eq!(places(&format!("fn f() {{}}\n{stub}")), ["a.rs:2"], "{stub}");
        }
    }

    #[test]
    fn talking_about_stubs_is_allowed() {
        assert_eq!(places("// todo!(later)\nconst A: &str = \"dbg!(x)\";"), Vec::<String>::new());
    }
}
