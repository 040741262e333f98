//! `haul cp --trace`: where the time went, as a table at the end, and in a file for programs or as a picture.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use haul_copy::Parts;

use crate::args::CpArgs;
use crate::exit::{Failure, chain};
use crate::trace::Kept;

/// What is to be made of it besides the table.
pub struct Traced {
    out: Out,
    /// Each copy of the command: when it was begun, and its parts.
    copies: Vec<(Instant, Parts)>,
}

enum Out {
    Nothing,
    /// The parts as JSON.
    Parts(PathBuf),
    /// What connections do is kept, to be drawn or logged.
    Connections(Kept),
}

impl Traced {
    /// From now on; nothing unless it is asked for.
    pub fn start(args: &CpArgs) -> Result<Option<Self>, Failure> {
        let Some(out) = &args.trace else { return Ok(None) };
        let out = match out {
            None => Out::Nothing,
            Some(out) if out.extension().is_some_and(|end| end == "json") => Out::Parts(out.clone()),
            Some(out) => Out::Connections(Kept::start(out)?),
        };
        Ok(Some(Self { out, copies: Vec::new() }))
    }

    /// A copy is over.
    pub fn copied(&mut self, begun: Instant, parts: Parts) {
        self.copies.push((begun, parts));
    }

    /// Writes the file.
    pub fn write(&self) -> Result<(), Failure> {
        match &self.out {
            Out::Nothing => Ok(()),
            Out::Parts(out) => {
                let mut all = Parts::default();
                self.copies.iter().for_each(|(_, parts)| all.add(parts));
                let written = fs::write(out, format!("{}\n", all.to_json()));
                written.map_err(|error| Failure::new(format!("{}: {}", out.display(), chain(&error))))
            }
            Out::Connections(kept) => match &self.copies[..] {
                [(begun, parts)] => {
                    let parts = parts.spans().into_iter().map(|(part, from, until)| haul_trace::Part {
                        name: part.name(),
                        from: from.as_secs_f64(),
                        until: until.as_secs_f64(),
                    });
                    kept.write_copy(*begun, &parts.collect::<Vec<_>>())
                }
                // There is one picture, of the connection that carried most: whose parts would be behind it?
                _ => kept.write(),
            },
        }
    }
}
