//! Manual pages, from the definition of the command line.
//!
//! What stands behind the options in the help, in paragraphs, gets the sections that readers of manual pages look for: EXAMPLES, EXIT STATUS, and NOTES for the rest.
//! ENVIRONMENT, FILES and SEE ALSO are here.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output;

/// `haul man [DIR]`.
pub fn man(dir: Option<&Path>) -> Result<Exit, Failure> {
    let pages = pages().map_err(|error| Failure::new(format!("manual pages: {error}")))?;
    let Some(dir) = dir else {
        if let Some((_, page)) = pages.first() {
            output::out_all(page);
        }
        return Ok(Exit::Done);
    };
    for (name, page) in pages {
        let path = dir.join(name);
        fs::write(&path, page).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    }
    Ok(Exit::Done)
}

/// File names and content of all pages, haul(1) first.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut haul = args::haul();
    haul.build();
    let mut pages = Vec::new();
    add_pages(&haul, "haul", None, &mut pages)?;
    pages.push(("hcp.1".to_owned(), b".so man1/haul-cp.1\n".to_vec()));
    pages.push(("hperf.1".to_owned(), b".so man1/haul-perf.1\n".to_vec()));
    Ok(pages)
}

fn add_pages(command: &Command, name: &str, above: Option<&str>, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let below = |command: &Command| format!("{name}-{}", command.get_name());
    let has_page = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    let related: Vec<String> =
        above.map(str::to_owned).into_iter().chain(command.get_subcommands().filter(has_page).map(below)).collect();
    pages.push((format!("{name}.1"), page(command, name, &related)?));
    for subcommand in command.get_subcommands().filter(has_page) {
        add_pages(subcommand, &below(subcommand), Some(name), pages)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str, related: &[String]) -> io::Result<Vec<u8>> {
    let named = command.clone().display_name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    let usage = named.clone().render_usage().to_string();
    let after = named.get_after_long_help().or_else(|| named.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let has_subcommands = named.has_subcommands();
    let man = Man::new(named).title(name.to_uppercase()).manual("User Commands").source(SOURCE);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend(section("SYNOPSIS", &literal(usage.trim_start_matches("Usage:").lines().map(str::trim))).into_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(closing(&after, name, related).into_bytes());
    Ok(page)
}

/// The sections behind the options.
fn closing(after: &str, name: &str, related: &[String]) -> String {
    let (mut examples, mut status, mut notes) = (String::new(), String::new(), String::new());
    for paragraph in after.split("\n\n") {
        if let Some(lines) = paragraph.strip_prefix("Examples:\n").or_else(|| paragraph.strip_prefix("Example:\n")) {
            examples += &literal(lines.lines());
        } else {
            // One line of a paragraph may be about the status.
            for line in paragraph.lines().filter(|line| !line.is_empty()) {
                match line.strip_prefix("Exit status:") {
                    Some(line) => drop(writeln!(status, "{}", escaped(line.trim()))),
                    None if line.starts_with("  ") => notes += &literal(std::iter::once(line)),
                    None => drop(writeln!(notes, "{}", escaped(line))),
                }
            }
            notes += if notes.is_empty() || notes.ends_with(".PP\n") { "" } else { ".PP\n" };
        }
    }
    if status.is_empty() {
        escaped(USUAL_STATUS).clone_into(&mut status);
        status.push('\n');
    }
    let mut text = String::new();
    let notes = notes.trim_end_matches(".PP\n");
    for (head, content) in [("NOTES", notes), ("EXAMPLES", &examples), ("EXIT STATUS", &status)] {
        if !content.is_empty() {
            text += &section(head, content);
        }
    }
    text += &section("ENVIRONMENT", &tagged(ENVIRONMENT));
    text += &section("FILES", &tagged(FILES));
    text += &section("SEE ALSO", &see_also(name, related));
    text
}

fn section(head: &str, content: &str) -> String {
    format!(".SH \"{head}\"\n{content}")
}

/// Lines as they are.
fn literal<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = ".nf\n".to_owned();
    for line in lines {
        let _ = writeln!(text, "{}", escaped(line));
    }
    text + ".fi\n"
}

fn tagged(entries: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (term, what) in entries {
        let _ = write!(text, ".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(what));
    }
    text
}

fn see_also(name: &str, related: &[String]) -> String {
    let besides: &[&str] = match name {
        "haul-cp" | "haul" => &["scp(1)", "ssh(1)", "rsync(1)"],
        "haul-perf" | "haul-perf-mesh" => &["iperf3(1)", "ssh(1)"],
        "haul-rsync" => &["rsync(1)", "ssh(1)"],
        "haul-rsh" => &["ssh(1)", "ssh_config(5)"],
        "haul-serve" | "haul-key" => &["ssh-keygen(1)", "systemd.service(5)"],
        "haul-tcp" | "haul-pace" => &["tc(8)", "ip-route(8)", "tcp(7)"],
        _ => &[],
    };
    let pages = related.iter().map(|page| format!("{page}(1)")).chain(besides.iter().map(|page| (*page).to_owned()));
    let pages: Vec<String> = pages.map(|page| escaped(&page)).collect();
    pages.join(",\n") + "\n"
}

/// Text that troff sets as it stands.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// What the foot of a page names: the package, not the command.
const SOURCE: &str = concat!("haul ", env!("CARGO_PKG_VERSION"));

const USUAL_STATUS: &str = "0 done, 1 done in part, 2 wrong usage or failure, 130 interrupted.";

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "HAUL_LOG",
        "What the libraries tell on standard error: a level (error, warn, info, debug, trace), or directives such as haul_proto=debug.",
    ),
    ("HAUL_TRACE", "A file to which each connection appends what it does, for haul-trace(1)."),
    (
        "HAUL_KEYLOG",
        "A file of this user alone to which the keys of all connections are appended, for captured packets. Who reads it reads them.",
    ),
    ("NO_COLOR", "Set and not empty: no colours."),
    ("XDG_CONFIG_HOME", "Where the directory of keys is, unless --state says: ~/.config without it."),
];

const FILES: &[(&str, &str)] = &[
    ("~/.config/haul/", "Keys and what is remembered, for a user; /etc/haul/ for root. --state DIR names another."),
    ("identity", "In it: this user's private key, which haul-key(1) makes."),
    ("known_hosts, authorized_keys", "In it: the keys of daemons that are trusted, and those that may connect."),
    ("paths", "In it: what was learnt of paths, for --mode quickstart."),
    ("tokens", "In it: with what to return to daemons without a round trip more."),
    ("config.toml", "In it: what holds for which host; see haul-config(1)."),
    ("~/.cache/haul/", "Programs that --bootstrap has brought."),
    (".haul-xxxxxxxx", "In or beside the target of a copy: what has arrived, until all has; see haul-cp(1), --list-interrupted."),
    ("~/.ssh/config", "ssh reads it for all hosts that it reaches, by haul too."),
];

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> String {
        let pages = pages().expect("into memory");
        let (_, page) = pages.into_iter().find(|(file, _)| *file == format!("{name}.1")).expect("a page");
        String::from_utf8(page).expect("text")
    }

    #[test]
    fn every_page_has_the_sections_that_are_looked_for() {
        for (name, page) in pages().expect("into memory").iter().filter(|(name, _)| name.starts_with("haul")) {
            let page = String::from_utf8_lossy(page);
            let heads: Vec<&str> =
                page.lines().filter_map(|line| line.strip_prefix(".SH ")).map(|head| head.trim_matches('"')).collect();
            for head in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"] {
                assert_eq!(heads.iter().filter(|found| **found == head).count(), 1, "{name}: {head} in {heads:?}");
            }
            assert!(!heads.contains(&"EXTRA"), "{name}: {heads:?}");
            let title = page.lines().find(|line| line.starts_with(".TH ")).expect("a title");
            assert!(title.ends_with(&format!(" \"haul {}\" \"User Commands\"", env!("CARGO_PKG_VERSION"))), "{name}: {title}");
        }
    }

    #[test]
    fn names_are_those_that_are_typed_and_pages_that_are_named_are_there() {
        let mesh = text("haul-perf-mesh");
        assert!(mesh.contains("\nhaul perf mesh [OPTIONS] HOST..."), "{mesh}");
        assert!(mesh.contains(".SH \"EXAMPLES\"\n.nf\n  haul perf mesh nict kyushu ehime"), "{mesh}");
        assert!(
            mesh.contains(".SH \"EXIT STATUS\"\n0 all measured, 1 some were, 2 wrong usage or none, 130 interrupted.\n"),
            "{mesh}"
        );
        let pages = pages().expect("into memory");
        for (name, page) in &pages {
            let page = String::from_utf8_lossy(page).replace("\\-", "-");
            let also = page.rsplit(".SH \"SEE ALSO\"\n").next().unwrap_or_default();
            for page in also.split([',', '\n']).filter(|page| page.starts_with("haul")) {
                assert!(pages.iter().any(|(there, _)| there.strip_suffix(".1") == page.strip_suffix("(1)")), "{name}: {page}");
            }
        }
    }
}
