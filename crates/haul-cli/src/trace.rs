//! `haul trace`: a trace of HAUL_TRACE as lines, a picture, a qlog; and `haul perf --trace` and `haul cp --trace`, which make one of their own.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haul::diagnose;
use haul_trace::{Connection, Figure, Part, Trace, TraceError};

use crate::args::TraceArgs;
use crate::exit::{Exit, Failure, chain};
use crate::{clock, terminal};

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
        form.write(&trace, &|| chosen.figure(), out)?;
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

    fn write(self, trace: &Trace, figure: &dyn Fn() -> Figure, out: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::error::Error| Failure::new(format!("{}: {}", out.display(), chain(error)));
        let content = match self {
            Self::Svg => figure().svg().map_err(|error| failed(&error))?.into_bytes(),
            Self::Png => figure().png().map_err(|error| failed(&error))?,
            Self::Qlog => format!("{}\n", trace.qlog()).into_bytes(),
        };
        fs::write(out, content).map_err(|error| failed(&error))
    }
}

/// Makes a picture of a connection; the second argument says how a moment stands on the clock of the trace.
type Draw<'a> = dyn Fn(&Connection, &dyn Fn(Instant) -> f64) -> Figure + 'a;

/// A trace of this process, kept in memory.
pub struct Kept {
    lines: Lines,
    form: Form,
    out: PathBuf,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Written>>);

#[derive(Clone, Default)]
struct Written {
    text: Vec<u8>,
    /// When its first line was written, which is the moment that the line is of.
    begun: Option<Instant>,
}

impl io::Write for Lines {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.begun.get_or_insert_with(clock::now);
        io::Write::write(&mut written.text, buf)
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
        self.write_as(&|largest, _| largest.figure())
    }

    /// Writes what was kept of a copy that was begun then, with its parts.
    pub fn write_copy(&self, begun: Instant, parts: &[Part]) -> Result<(), Failure> {
        self.write_as(&|largest, at| largest.figure_of_copy(at(begun), parts))
    }

    /// `draw` is told how a moment stands on the clock of the trace.
    fn write_as(&self, draw: &Draw<'_>) -> Result<(), Failure> {
        let Written { text, begun } = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let trace = Trace::read(&text[..]).map_err(|error| Failure::new(format!("--trace: {}", chain(&error))))?;
        let first_s = trace.connections.first().map_or(0.0, |connection| connection.first().t);
        let at = |moment: Instant| match begun {
            Some(begun) => {
                let (after, before) = (moment.saturating_duration_since(begun), begun.saturating_duration_since(moment));
                first_s + after.as_secs_f64() - before.as_secs_f64()
            }
            None => 0.0,
        };
        match trace.largest() {
            Some(largest) => self.form.write(&trace, &|| draw(largest, &at), &self.out),
            None => Ok(()),
        }
    }
}
