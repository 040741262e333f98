//! The entry points: client and server, sender and receiver.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::destination::destination;
use crate::expand::{Expanded, MAX_SOURCES, expand};
use crate::job::{Destination, Options, PullJob, PushJob, SourceSpec};
use crate::observe::{Asked, Event, Observer};
use crate::protocol::{Hello, MAX_FRAME, Message, PATTERNS, PLACES, Request, Term, VERSION, What};
use crate::receive::{Expected, ReceiveJob, Target, receive};
use crate::report::Report;
use crate::send::{Feed, Origin, SendJob, send};
use crate::session::{self, Incoming, Session};
use crate::store::unwritten::{self, Unwritten};
use crate::store::{Named, Place, Store};
use crate::terms::{self, terms_of};
use crate::transport::{Link, Transport};
use haul_faults::{CopyError, FileProblem, Note, Stop, WirePath};
use haul_names::{Chosen, Filter, MAX_CHOSEN, MAX_CHOSEN_BYTES, base_name, far_source, is_pattern, job_id};
use haul_units::Cancel;
use haul_xattrs::Keep;

/// Sends files of a store to the server at the other end of `link`.
///
/// Blocks until all has arrived and is durable there. Problems with single files are in the report; an error means that the copy ended early.
pub fn push_from<T: Transport, S: Store>(
    link: Link<T>,
    store: &S,
    job: &PushJob,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    session::run(link, observer, cancel, |session, incoming| {
        let spelled: Vec<WirePath> = job.sources.iter().map(SourceSpec::spelled).collect();
        check_list(&job.filter, &spelled)?;
        check_keeps::<S>(job.options)?;
        let destination: WirePath = job.destination.as_path().into();
        let stream = job.sources.iter().any(|source| matches!(source, SourceSpec::Stdin(_)));
        // A stream cannot be sent anew, and is not to be read for a copy that is refused.
        let early = !stream;
        let request = Request {
            job: job_id(b"push", job.sources.iter().map(|source| own_source(store, source)).collect()),
            what: What::Push { destination, sources: spelled.len() as u32, stream, early },
            options: job.options,
        };
        let terms = terms_of(&request.what, &request.options);
        // The server does not list the sources; it is told what to leave alone.
        let told = if job.options.delete.is_some() { job.filter.patterns() } else { Filter::default() };
        introduce(session, request, &terms, &told)?;
        let origin = |source: &SourceSpec| match source {
            SourceSpec::Path(path) => Named::new(store, &path.as_path().into()).map(Origin::Named),
            SourceSpec::Stdin(stream) => Ok(Origin::Stream(stream.clone())),
        };
        let tops = job.sources.iter().map(origin).collect::<Result<_, _>>().map_err(CopyError::Stopped)?;
        let job = SendJob {
            tops,
            options: job.options,
            in_order: false,
            is_client: true,
            early,
            ordered: false,
            feed: None,
            filter: job.filter.clone(),
            tells: false,
        };
        send(session, incoming, store, job, |incoming| {
            check_hello(session, incoming.next())?;
            check_terms(session, &terms, &told)
        })
    })
}

/// As [`push_from`], of what `feed` says, while it goes: for whoever sends parts of one tree to several servers. The sources are those of the tree, streams are none.
///
/// All goes into the destination, which is a directory; it is made where its parent is there. What is left out is the feed's business.
pub fn push_fed<T: Transport, S: Store>(
    link: Link<T>,
    store: &S,
    job: &PushJob,
    feed: Arc<dyn Feed>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    session::run(link, observer, cancel, |session, incoming| {
        let destination: WirePath = job.destination.as_path().into();
        let sources = job.sources.iter().map(|source| own_source(store, source));
        let request = Request {
            job: job_id(&[b"part ", feed.part()].concat(), sources.collect()),
            what: What::Push { destination, sources: 0, stream: false, early: false },
            options: job.options,
        };
        introduce(session, request, &[], &Filter::default())?;
        let tops = job.sources.iter().map(|source| Named::new(store, &source.spelled()).map(Origin::Named));
        let tops = tops.collect::<Result<_, _>>().map_err(CopyError::Stopped)?;
        let job = SendJob {
            tops,
            options: job.options,
            in_order: false,
            is_client: true,
            early: false,
            ordered: false,
            feed: Some(feed),
            filter: Filter::default(),
            tells: false,
        };
        send(session, incoming, store, job, |incoming| check_hello(session, incoming.next()))
    })
}

/// Fetches files from the server at the other end of `link` into a store.
///
/// Blocks until all has arrived and is durable here.
pub fn pull_into<T: Transport, S: Store>(
    link: Link<T>,
    store: &S,
    job: &PullJob,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    pull_to(link, store, job, |path, many, id| target(store, path, many, id), observer, cancel)
}

pub(crate) fn pull_to<T: Transport, S: Store>(
    link: Link<T>,
    store: &S,
    job: &PullJob,
    find: impl FnOnce(&Path, bool, &[u8; 32]) -> Result<Target<S::Dir>, CopyError>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    session::run(link, observer, cancel, |session, incoming| {
        let sources: Vec<WirePath> = job.sources.iter().map(|path| path.as_path().into()).collect();
        check_list(&job.filter, &sources)?;
        let id = job_id(b"pull", sources.iter().map(|source| far_source(&source.0)).collect());
        let (target, spelled) = match &job.destination {
            Destination::Path(path) => (find(path, sources.len() > 1, &id)?, path.as_path().into()),
            Destination::Stdout(stream) => (Target::Stream(stream.clone()), WirePath(b"-".to_vec())),
        };
        let in_order = matches!(target, Target::Stream(_));
        // Directories have no place in a stream.
        let keep = if in_order { Keep::NONE } else { job.options.keep };
        let options = Options { recursive: job.options.recursive && !in_order, keep, ..job.options };
        check_keeps::<S>(options)?;
        let patterns = sources.iter().any(|source| is_pattern(&source.0));
        let mut expected = Expected::plain(&sources);
        let request = Request { what: What::Pull { sources: sources.clone(), in_order }, options, job: id };
        let terms = terms_of(&request.what, &request.options);
        introduce(session, request, &terms, &job.filter)?;
        let receive_it = |incoming: &mut Incoming, target, expected, meet: &dyn Fn(&mut Incoming) -> Result<(), CopyError>| {
            let (expected, filter) = (Some(expected), job.filter.clone());
            let job = ReceiveJob { target, options, job: id, expected, early: false, filter, takes_what_fits: false, note: None };
            receive_or_look(session, incoming, store, job, meet)
        };
        let meet = |incoming: &mut Incoming| {
            check_hello(session, incoming.next())?;
            check_terms(session, &terms, &job.filter)
        };
        if !patterns {
            return receive_it(incoming, target, expected, &meet);
        }
        meet(incoming)?;
        if session.peer_has(PATTERNS) {
            let Message::Matched(count) = incoming.next()? else {
                return Err(CopyError::PeerMisbehaved("no word on the patterns"));
            };
            expected.add_patterns(&sources);
            if let Target::Tree(place) = &target
                && place.rename.is_some()
                && count > 1
            {
                return Err(CopyError::Stopped(Stop::NeedsDirectory { path: spelled }));
            }
        }
        receive_it(incoming, target, expected, &|_| Ok(()))
    })
}

/// Receives, or in a dry run looks what would become of it.
fn receive_or_look<T: Transport, S: Store>(
    session: &Session<'_, T>,
    incoming: &mut Incoming,
    store: &S,
    job: ReceiveJob<S::Dir>,
    meet: impl FnOnce(&mut Incoming) -> Result<(), CopyError>,
) -> Result<Report, CopyError> {
    if !job.options.dry_run {
        return receive(session, incoming, store, job, meet);
    }
    let ReceiveJob { target, options, job, expected, early, filter, takes_what_fits, note } = job;
    let Target::Tree(place) = target else {
        return Err(CopyError::Stopped(Stop::Unavailable("a stream has no dry run".into())));
    };
    let target = Target::Tree(unwritten::place(place));
    let job = ReceiveJob { target, options, job, expected, early, filter, takes_what_fits, note };
    receive(session, incoming, &Unwritten(store), job, meet)
}

/// Answers one request of the client at the other end of `link`, a push or a pull, of a store that decides what the client may do.
pub fn serve_store<T: Transport, S: Store>(
    link: Link<T>,
    store: &S,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    serve_asked(link, observer, cancel, |asking| asking.serve(store))
}

/// As [`serve_store`], where the store depends on what the client asks for: `choose` looks at the [paths](Asking::paths) and serves it, or says why not.
pub fn serve_asked<T: Transport>(
    link: Link<T>,
    observer: &dyn Observer,
    cancel: &Cancel,
    choose: impl FnOnce(Asking<'_, '_, T>) -> Result<Report, CopyError>,
) -> Result<Report, CopyError> {
    session::run(link, observer, cancel, |session, incoming| {
        hello(session, incoming)?;
        let mut message = incoming.next()?;
        let (mut filter, mut terms) = (Filter::default(), Vec::new());
        if let Message::Terms(said) = message {
            terms = said;
            message = incoming.next()?;
        }
        if let Message::LeaveOut { lines } = message {
            filter = Filter::new(lines).map_err(|_| CopyError::PeerMisbehaved("patterns that cannot be used"))?;
            message = incoming.next()?;
        }
        let (mut chosen, mut bytes): (Vec<WirePath>, usize) = (Vec::new(), 0);
        let is_chosen = matches!(message, Message::Choose(_));
        while let Message::Choose(paths) = message {
            bytes += paths.iter().map(|path| path.0.len()).sum::<usize>();
            chosen.extend(paths);
            if chosen.len() > MAX_CHOSEN || bytes > MAX_CHOSEN_BYTES {
                return Err(CopyError::PeerMisbehaved("more names than can be remembered"));
            }
            message = incoming.next()?;
        }
        if is_chosen {
            let chosen = Chosen::new(chosen.iter().map(|path| &*path.0));
            filter = filter.of(chosen.map_err(|_| CopyError::PeerMisbehaved("a list with names that lead elsewhere"))?);
        }
        let Message::Request(mut request) = message else {
            return Err(CopyError::PeerMisbehaved("no request"));
        };
        terms::apply(&terms, &mut request.options);
        choose(Asking { session, incoming, request, filter, at: None, note: None })
    })
}

/// A client's request that is not answered yet.
pub struct Asking<'a, 's, T> {
    session: &'a Session<'s, T>,
    incoming: &'a mut Incoming,
    request: Request,
    filter: Filter,
    /// What its paths mean, where that is not what they say.
    at: Option<Vec<WirePath>>,
    note: Option<Note>,
}

impl<T: Transport> Asking<'_, '_, T> {
    /// What it wants to read, or where it wants to write, as it spells that, or as that was told to [mean](Self::at).
    pub fn paths(&self) -> &[WirePath] {
        if let Some(at) = &self.at {
            return at;
        }
        match &self.request.what {
            What::Push { destination, .. } => std::slice::from_ref(destination),
            What::Pull { sources, .. } | What::Ordered { sources } => sources,
        }
    }

    /// By what its job is known, where it wants to write.
    pub fn writes(&self) -> Option<&[u8; 32]> {
        matches!(self.request.what, What::Push { .. }).then_some(&self.request.job)
    }

    /// Its paths mean these, one for each; where it writes, it hears of this.
    #[must_use]
    pub fn at(self, paths: Vec<WirePath>, note: Option<Note>) -> Self {
        Self { at: Some(paths), note: note.filter(|_| self.session.peer_has(PLACES)), ..self }
    }

    /// Serves it of a store, which decides what the client may do.
    pub fn serve<S: Store>(self, store: &S) -> Result<Report, CopyError> {
        let at = self.paths().to_vec();
        let Self { session, incoming, request, filter, note, .. } = self;
        check_keeps::<S>(request.options)?;
        let tells = !filter.is_empty();
        let options = request.options;
        session.observer.event(Event::Asked(match (&request.what, &at[..]) {
            (What::Push { .. }, [at]) => Asked::Write(at),
            (_, at) => Asked::Read(at),
        }));
        match request.what {
            What::Push { destination: spelled, sources, stream, early } => {
                let named = at.first().unwrap_or(&spelled);
                let mut place = destination(store, named, sources > 1, &request.job).map_err(CopyError::Stopped)?;
                place.spelled.clone_from(&spelled);
                if sources == 0 && !options.dry_run {
                    make_destination(store, &mut place).map_err(CopyError::Stopped)?;
                }
                if stream && place.rename.is_none() {
                    return Err(CopyError::Stopped(Stop::NeedsFileName { path: spelled }));
                }
                let job = ReceiveJob {
                    target: Target::Tree(place),
                    options,
                    job: request.job,
                    expected: None,
                    early,
                    filter: if options.delete.is_some() { filter } else { Filter::default() },
                    takes_what_fits: sources == 0,
                    note,
                };
                receive_or_look(session, incoming, store, job, |_| Ok(()))
            }
            What::Pull { ref sources, .. } | What::Ordered { ref sources } => {
                let tops = origins(session, store, sources, &at)?;
                let job = SendJob {
                    tops,
                    options,
                    in_order: matches!(request.what, What::Pull { in_order: true, .. }),
                    is_client: false,
                    early: false,
                    ordered: matches!(request.what, What::Ordered { .. }),
                    feed: None,
                    filter,
                    tells,
                };
                send(session, incoming, store, job, |_| Ok(()))
            }
        }
    }
}

/// What a client asks for; what of it there is not is told.
fn origins<T: Transport, S: Store>(
    session: &Session<'_, T>,
    store: &S,
    sources: &[WirePath],
    at: &[WirePath],
) -> Result<Vec<Origin<S>>, CopyError> {
    if sources.len() > MAX_SOURCES {
        return Err(CopyError::PeerMisbehaved("too many sources"));
    }
    let Expanded { tops, problems } = requested(session, store, at)?;
    // The client knows them as it has spelled them.
    let mut spelled = HashMap::new();
    for (source, at) in sources.iter().zip(at) {
        spelled.entry(at).or_insert(source);
    }
    let asked = |path: WirePath| spelled.get(&path).map_or(path, |&source| source.clone());
    for problem in problems {
        session.problem(FileProblem { path: asked(problem.path), ..problem })?;
    }
    Ok(tops.into_iter().map(|named| Origin::Named(Named { spelled: asked(named.spelled), ..named })).collect())
}

/// A destination that is to be a directory is made one at once, so that the next run finds the same place.
fn make_destination<S: Store>(store: &S, place: &mut Place<S::Dir>) -> Result<(), Stop> {
    let Some(name) = place.rename.take() else { return Ok(()) };
    let made = store.make_directory(&place.root, &name, 0o777);
    let made = made.map_err(|error| Stop::Destination { path: place.spelled.clone(), why: error.into() })?;
    place.root = Arc::new(made.dir);
    place.directory_only = false;
    Ok(())
}

/// What a client asks for, and how many that is where it cannot know.
fn requested<T: Transport, S: Store>(
    session: &Session<'_, T>,
    store: &S,
    sources: &[WirePath],
) -> Result<Expanded<S>, CopyError> {
    if !session.peer_has(PATTERNS) || !sources.iter().any(|source| is_pattern(&source.0)) {
        let tops = sources.iter().map(|source| Named::new(store, source));
        let tops = tops.collect::<Result<_, _>>().map_err(CopyError::Stopped)?;
        return Ok(Expanded { tops, problems: Vec::new() });
    }
    let expanded = expand(store, sources, || session.check())?;
    session.send(&Message::Matched(expanded.tops.len() as u32))?;
    Ok(expanded)
}

/// The client's first words; what else it has to say need not wait for the answer.
pub(crate) fn introduce<T: Transport>(
    session: &Session<'_, T>,
    request: Request,
    terms: &[Term],
    filter: &Filter,
) -> Result<(), CopyError> {
    session.send(&Message::Hello(Hello::ours()))?;
    if !terms.is_empty() {
        session.send(&Message::Terms(terms.to_vec()))?;
    }
    if !filter.is_empty() {
        session.send(&Message::LeaveOut { lines: filter.lines().to_vec() })?;
    }
    if let Some(chosen) = filter.chosen() {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for path in chosen.paths() {
            bytes += path.len() + 4;
            batch.push(WirePath(path));
            if bytes > MAX_FRAME / 4 {
                session.send(&Message::Choose(std::mem::take(&mut batch)))?;
                bytes = 0;
            }
        }
        session.send(&Message::Choose(batch))?;
    }
    session.send(&Message::Request(request))
}

/// The server's first words.
fn hello<T: Transport>(session: &Session<'_, T>, incoming: &mut Incoming) -> Result<(), CopyError> {
    check_hello(session, incoming.next())?;
    session.say(&Message::Hello(Hello::ours()))
}

pub(crate) fn check_hello<T: Transport>(session: &Session<'_, T>, message: Result<Message, CopyError>) -> Result<(), CopyError> {
    match message {
        Ok(Message::Hello(hello)) if hello.version == VERSION => {
            session.meet(hello.features);
            Ok(())
        }
        Ok(Message::Hello(Hello { version: theirs, .. })) | Err(CopyError::Refused(Stop::Version { speaks: theirs })) => {
            Err(CopyError::PeerUnsupported { ours: VERSION, theirs })
        }
        Ok(_) => Err(CopyError::PeerMisbehaved("no hello")),
        Err(error) => Err(error),
    }
}

/// Whether the peer does what it was told before the request: one that does not know how would do something else.
pub(crate) fn check_terms<T: Transport>(session: &Session<'_, T>, terms: &[Term], said: &Filter) -> Result<(), CopyError> {
    terms::lacking(terms, said, |feature| session.peer_has(feature)).map_or(Ok(()), |what| Err(CopyError::PeerLacks(what)))
}

/// Whether a store has what is to be kept.
fn check_keeps<S: Store>(options: Options) -> Result<(), CopyError> {
    if S::KEEPS || !options.keep.any() {
        return Ok(());
    }
    let why = format!("{} keeps no extended attributes and no ACLs (-X, -A)", S::CALLED);
    Err(CopyError::Stopped(Stop::Unavailable(why.into())))
}

/// A list is of what is in its source, so the source has no name at the destination.
fn check_list<'a>(filter: &Filter, sources: impl IntoIterator<Item = &'a WirePath>) -> Result<(), CopyError> {
    let is_named = |source: &WirePath| !base_name(&source.0).is_empty();
    if filter.chosen().is_some() && sources.into_iter().any(is_named) {
        let why = "a list of names is of what is in a directory: name it as DIRECTORY/.";
        return Err(CopyError::Stopped(Stop::Unavailable(why.into())));
    }
    Ok(())
}

pub(crate) fn target<S: Store>(store: &S, path: &Path, many: bool, job: &[u8; 32]) -> Result<Target<S::Dir>, CopyError> {
    destination(store, &path.into(), many, job).map(Target::Tree).map_err(CopyError::Stopped)
}

/// What a source of this side is.
fn own_source<S: Store>(store: &S, source: &SourceSpec) -> Vec<u8> {
    match source {
        SourceSpec::Path(path) => store.identify(&path.as_path().into()),
        SourceSpec::Stdin(_) => b"-".to_vec(),
    }
}
