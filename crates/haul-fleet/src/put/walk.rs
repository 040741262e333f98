//! The walk over what is to be sent: once, whatever the number of members.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul_files::store::{At, FileKind, Local, Metadata, Store};
use haul_files::{Fault, FileProblem, Filter, StoreError, Why, WirePath};

/// What was found, in the order in which it was.
pub(super) struct Item {
    /// The number of the directory that it is in, that is its place in the list and one; 0: none.
    pub parent: u32,
    /// Which of the sources it is, if it is one.
    pub source: Option<u32>,
    pub name: Box<[u8]>,
    pub metadata: Metadata,
    /// Of a symbolic link: what it says.
    pub target: Option<Box<[u8]>>,
}

/// Takes what a walk finds.
pub(super) trait Found {
    /// Takes a thing; its number, or none where the walk is to end.
    fn item(&self, item: Item) -> Option<u32>;
    fn problem(&self, problem: FileProblem);
    /// A name was left out.
    fn left_out(&self);
}

/// What is looked for.
pub(super) struct Sought<'a> {
    pub store: &'a Local,
    pub sources: &'a [WirePath],
    pub recursive: bool,
    pub filter: &'a Filter,
}

/// A directory that is to be listed.
struct Pending<D> {
    at: Whereabouts<D>,
    number: u32,
    shown: Vec<u8>,
    /// Its path below the target.
    path: Vec<u8>,
}

enum Whereabouts<D> {
    Held(Arc<D>),
    In(Arc<D>, Box<[u8]>, Metadata),
}

/// Walks the sources, depth first, without following links below them.
pub(super) fn walk(sought: &Sought<'_>, found: &impl Found) {
    for (index, spelled) in sought.sources.iter().enumerate() {
        if top(sought, index as u32, spelled, found).is_break() {
            return;
        }
    }
}

fn top(sought: &Sought<'_>, index: u32, spelled: &WirePath, found: &impl Found) -> ControlFlow<()> {
    let Sought { store, recursive, filter, .. } = *sought;
    let fail = |why: Why| {
        found.problem(FileProblem { path: spelled.clone(), fault: Fault::Source, why });
        ControlFlow::Continue(())
    };
    let Ok(top) = store.source(spelled) else { return fail(StoreError::Missing.into()) };
    let metadata = match store.stat(At::Top(&top)) {
        Ok(metadata) => metadata,
        Err(error) => return fail(error.into()),
    };
    let path = base_name(&spelled.0);
    if filter.leaves_out(&path, metadata.kind == FileKind::Directory) {
        found.left_out();
        return ControlFlow::Continue(());
    }
    let name = path.clone().into();
    let item = Item { parent: 0, source: Some(index), name, metadata, target: None };
    match metadata.kind {
        FileKind::File => found.item(item).map_or(ControlFlow::Break(()), |_| ControlFlow::Continue(())),
        FileKind::Directory if !recursive => fail(Why::DirectoryWithoutRecursive),
        FileKind::Directory => match store.directory(At::Top(&top), None) {
            Err(error) => fail(error.into()),
            Ok(dir) => {
                let Some(number) = found.item(item) else { return ControlFlow::Break(()) };
                let first = Pending { at: Whereabouts::Held(Arc::new(dir)), number, shown: spelled.0.clone(), path };
                below(store, filter, first, found)
            }
        },
        FileKind::Symlink => fail(Why::OutsideRoot),
        FileKind::Special => fail(Why::Special),
    }
}

/// Lists directories until there are none; those whose parents have others to come are held.
fn below<D, S: Store<Dir = D>>(store: &S, filter: &Filter, first: Pending<D>, found: &impl Found) -> ControlFlow<()> {
    let mut stack = vec![first];
    while let Some(Pending { at, number, shown, path: below }) = stack.pop() {
        let fail = |path: &[u8], error: StoreError| {
            found.problem(FileProblem { path: WirePath(path.to_vec()), fault: Fault::Source, why: error.into() });
        };
        let opened = match at {
            Whereabouts::Held(dir) => Ok(dir),
            Whereabouts::In(parent, name, there) => store.directory(At::In(&*parent, &name), Some(there.identity)).map(Arc::new),
        };
        let dir = match opened {
            Ok(dir) => dir,
            Err(error) => {
                fail(&shown, error);
                continue;
            }
        };
        let mut flow = ControlFlow::Continue(());
        let listed = store.list(&dir, &mut |entry| {
            let path = || join(&shown, entry.name);
            let named = join(&below, entry.name);
            let metadata = (entry.metadata)();
            if filter.leaves_out(&named, metadata.as_ref().is_ok_and(|there| there.kind == FileKind::Directory)) {
                found.left_out();
                return ControlFlow::Continue(());
            }
            let metadata = match metadata {
                Ok(metadata) => metadata,
                Err(error) => {
                    fail(&path(), error);
                    return ControlFlow::Continue(());
                }
            };
            let mut target = None;
            match metadata.kind {
                FileKind::Special => {
                    found.problem(FileProblem { path: WirePath(path()), fault: Fault::Source, why: Why::Special });
                    return ControlFlow::Continue(());
                }
                FileKind::Symlink => match store.read_link(&dir, entry.name) {
                    Ok(says) => target = Some(says.into()),
                    Err(error) => {
                        fail(&path(), error);
                        return ControlFlow::Continue(());
                    }
                },
                FileKind::File | FileKind::Directory => {}
            }
            let item = Item { parent: number, source: None, name: entry.name.into(), metadata, target };
            let Some(number) = found.item(item) else {
                flow = ControlFlow::Break(());
                return flow;
            };
            if metadata.kind == FileKind::Directory {
                let at = Whereabouts::In(dir.clone(), entry.name.into(), metadata);
                stack.push(Pending { at, number, shown: path(), path: named });
            }
            ControlFlow::Continue(())
        });
        flow?;
        if let Err(error) = listed {
            fail(&shown, error);
        }
    }
    ControlFlow::Continue(())
}

/// As a user would write a name in a directory.
pub(super) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let between: &[u8] = if dir.is_empty() || dir.ends_with(b"/") { b"" } else { b"/" };
    [dir, between, name].concat()
}

/// What a source is called at the destination; nothing where its content goes straight there. An upload is of directories of this machine: no word before a colon says which store, as
/// for haul-names'.
pub(super) fn base_name(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|&b| b == b'/').find(|part| !part.is_empty()).unwrap_or_default();
    if matches!(name, b"." | b"..") { Vec::new() } else { name.to_vec() }
}
