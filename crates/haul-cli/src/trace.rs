//! `haul trace`: a trace of HAUL_TRACE as lines, a picture, a qlog; and `haul perf --trace`, which makes one of its own.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haul::diagnose;
use haul_trace::{Connection, Trace, TraceError};

use crate::args::TraceArgs;
use crate::exit::{Exit, Failure, chain};
use crate::terminal;

/// Runs the command.
pub fn run(args: &TraceArgs) -> Result<Exit, Failure> {
    let form = args.out.as_deref().map(Form::of).transpose()?;
    let name = args.file.display();
    let failed = |error: &dyn std::error::Error| Failure::new(format!("{name}: {}", chain(error)));
    let input: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(
            File::open(&args.file).map_err(|error| failed(&error).hint("name a file that HAUL_TRACE wrote"))?,
        ))
    };
    let trace =
        Trace::read(input).map_err(|error| failed(&error).hint("name a file that HAUL_TRACE wrote: docs/use/debugging.md"))?;
    let chosen = match &args.id {
        Some(id) => trace.connections.iter().rfind(|connection| connection.id == id.as_str()).ok_or_else(|| {
            let known: Vec<&str> = trace.connections.iter().map(|connection| &*connection.id).collect();
            Failure::new(format!("{name}: no connection {id} is in it")).hint(format!("there are {}", known.join(", ")))
        })?,
        None => trace.largest().ok_or_else(|| failed(&TraceError::Empty))?,
    };
    if let (Some(out), Some(form)) = (&args.out, form) {
        form.write(&trace, chosen, out)?;
        return Ok(Exit::Done);
    }
    for connection in &trace.connections {
        terminal::out_wrapped(&connection.summary().to_string());
    }
    Ok(Exit::Done)
}

/// What a trace becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Svg,
    Png,
    Qlog,
}

impl Form {
    fn of(out: &Path) -> Result<Self, Failure> {
        match out.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("qlog") => Ok(Self::Qlog),
            _ => Err(Failure::new(format!("{}: the end of the name says nothing", out.display()))
                .hint("let it end in .svg or .png for a picture, in .qlog for a log")),
        }
    }

    fn write(self, trace: &Trace, chosen: &Connection, out: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::error::Error| Failure::new(format!("{}: {}", out.display(), chain(error)));
        let content = match self {
            Self::Svg => chosen.figure().svg().map_err(|error| failed(&error))?.into_bytes(),
            Self::Png => chosen.figure().png().map_err(|error| failed(&error))?,
            Self::Qlog => format!("{}\n", trace.qlog()).into_bytes(),
        };
        fs::write(out, content).map_err(|error| failed(&error))
    }
}

/// A trace of this process, kept in memory.
pub struct Kept {
    lines: Lines,
    form: Form,
    out: PathBuf,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    /// From now on what connections do is kept, to be written to `out`.
    pub fn start(out: &Path) -> Result<Self, Failure> {
        let form = Form::of(out)?;
        let lines = Lines::default();
        if !diagnose::trace(Box::new(lines.clone())) {
            return Err(Failure::new("--trace: HAUL_TRACE is set, and there is one trace at a time")
                .hint("unset it, or draw what it wrote: haul trace FILE -o OUT.svg"));
        }
        Ok(Self { lines, form, out: out.to_owned() })
    }

    /// Writes what was kept.
    pub fn write(&self) -> Result<(), Failure> {
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let trace = Trace::read(&lines[..]).map_err(|error| Failure::new(format!("--trace: {}", chain(&error))))?;
        match trace.largest() {
            Some(largest) => self.form.write(&trace, largest, &self.out),
            None => Ok(()),
        }
    }
}
