//! Manual pages of section 3, made of the header: a page a group, and a name for each function that leads to it.

use std::fmt::Write as _;

use super::header::{Group, Header};

/// Names and contents.
pub fn pages(header: &Header) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for group in &header.groups {
        pages.push((format!("{}.3", group.name), page(group, header)));
        for item in &group.items {
            if let Some(function) = item.function().filter(|function| function.name != group.name) {
                pages.push((format!("{}.3", function.name), format!(".so man3/{}.3\n", group.name)));
            }
        }
    }
    pages
}

fn page(group: &Group, header: &Header) -> String {
    let functions: Vec<_> = group.items.iter().filter_map(|item| Some((item.function()?.name, item))).collect();
    let mut names: Vec<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
    if !names.contains(&group.name.as_str()) {
        names.insert(0, &group.name);
    }
    let mut text = format!(
        ".\\\" Made of haul.h: HAUL_ABI=write cargo test -p haul-ffi --test programs abi\n.TH {} 3 \"\" haul \"Library Functions Manual\"\n",
        group.name.to_uppercase()
    );
    let _ = write!(text, ".SH NAME\n{} \\- {}\n", names.join(", "), escaped(&group.title));
    text += ".SH LIBRARY\nlibhaul (pkg-config haul)\n.SH SYNOPSIS\n.nf\n.B #include <haul.h>\n";
    let mut after_number = false;
    for item in group.items.iter().filter(|item| !item.is_version()) {
        let is_number = item.shown.starts_with("#define");
        let apart = if is_number && after_number && item.text.is_empty() { "" } else { ".PP\n" };
        let _ = writeln!(text, "{apart}{}", escaped(&item.shown));
        after_number = is_number;
    }
    text += ".fi\n";
    if !group.text.is_empty() {
        let _ = write!(text, ".SH DESCRIPTION\n{}\n", paragraphs(&group.text));
    }
    let told: Vec<_> = functions.iter().filter(|(_, item)| !item.text.is_empty()).collect();
    if !told.is_empty() {
        text += ".SH FUNCTIONS\n";
        for (name, item) in told {
            let _ = write!(text, ".TP\n.BR {name} ()\n{}\n", paragraphs(&item.text));
        }
    }
    text += ".SH ERRORS\nWhat can fail gives a negative code; see\n.BR haul_error_message (3).\n.SH SEE ALSO\n";
    let others: Vec<_> = header.groups.iter().filter(|other| other.name != group.name).collect();
    for (at, other) in others.iter().enumerate() {
        let _ = writeln!(text, ".BR {} (3){}", other.name, if at + 1 < others.len() { "," } else { "" });
    }
    text
}

/// Paragraphs and points, as they are divided in the header.
fn paragraphs(text: &str) -> String {
    let mut made = String::new();
    for line in text.lines() {
        match (line.trim(), line.strip_prefix("- ")) {
            ("", _) => made += ".PP\n",
            (_, Some(point)) => {
                let _ = write!(made, ".IP \\(bu 2\n{}\n", escaped(point));
            }
            (words, None) => {
                let _ = writeln!(made, "{}", escaped(words));
            }
        }
    }
    made.trim_end().to_owned()
}

/// What roff would take for its own.
fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.into() })
        .collect::<Vec<_>>()
        .join("\n")
}
