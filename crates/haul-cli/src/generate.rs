//! Manual pages and completion scripts, from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output;

/// `haul man [DIR]`.
pub fn man(dir: Option<&Path>) -> Result<Exit, Failure> {
    let pages = pages().map_err(|error| Failure::new(format!("manual pages: {error}")))?;
    let Some(dir) = dir else {
        if let Some((_, page)) = pages.first() {
            let _ = output::out_bytes(page);
        }
        return Ok(Exit::Done);
    };
    for (name, page) in pages {
        let path = dir.join(name);
        fs::write(&path, page).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    }
    Ok(Exit::Done)
}

/// `haul completions SHELL`.
pub fn completions(shell: Shell, name: &str) -> Exit {
    let mut command = match name {
        "hcp" => args::hcp(),
        "hperf" => args::hperf(),
        _ => args::haul(),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    let _ = output::out_bytes(&script);
    Exit::Done
}

/// File names and content of all pages, haul(1) first.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut haul = args::haul();
    haul.build();
    let mut pages = Vec::new();
    add_pages(&haul, "haul", &mut pages)?;
    pages.push(("hcp.1".to_owned(), b".so man1/haul-cp.1\n".to_vec()));
    pages.push(("hperf.1".to_owned(), b".so man1/haul-perf.1\n".to_vec()));
    Ok(pages)
}

fn add_pages(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut page = Vec::new();
    let named = command.clone().display_name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    Man::new(named).title(name.to_uppercase()).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
    {
        add_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), pages)?;
    }
    Ok(())
}
