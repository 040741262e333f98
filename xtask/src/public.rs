//! What haul-proto makes public is used outside of it: in other crates, or in programs and tests of its own that see it from outside.
//!
//! Public is what `lib.rs` re-exports, and what stands in its public modules. An item that nobody outside names may still be public where the declaration of
//! another public item names it, such as the type of a field. What else is public could be `pub(crate)`, and then the compiler says whether anybody needs it.
//!
//! The same holds for the methods of these types: one that nobody outside calls by its name, on whatever value, is none of what the crate offers.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::source::Source;
use crate::workspace::Workspace;

/// Methods that nobody in the workspace calls and that are public all the same, each with its reason.
const OFFERED: &[(&str, &str)] = &[
    ("from_certificate", "haul re-exports `Identity`: for its users that have X.509 certificates"),
    ("from_spki", "haul re-exports `PublicKey`: for its users that keep keys themselves"),
    ("as_spki", "as `from_spki`"),
];

const INSIDE: &str = "crates/haul-proto/src/";

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let (inside, outside): (Vec<&Source>, Vec<&Source>) =
        workspace.sources.iter().partition(|source| source.path.starts_with(INSIDE));
    let used: BTreeSet<&str> = outside.iter().flat_map(|source| source.words()).collect();
    let declared: BTreeSet<String> = inside.iter().flat_map(|source| declarations(source)).flat_map(|item| item.names).collect();
    let public = public(&inside, "lib", &mut BTreeSet::new());
    let idle = public.iter().filter(|item| !used.contains(item.name.as_str()) && !declared.contains(&item.name));
    let message = |name: &str| format!("{name} is public and nobody outside names it: make it pub(crate), or take it out");
    let types: BTreeSet<&str> = public.iter().map(|item| item.name.as_str()).collect();
    let called: BTreeSet<&str> = outside.iter().flat_map(|source| called(source)).collect();
    let methods: Vec<Item> = inside.iter().flat_map(|source| methods(source, &types)).collect();
    let idle_methods = methods.iter().filter(|item| !called.contains(item.name.as_str()));
    let idle_methods = idle_methods.filter(|item| !OFFERED.iter().any(|(name, _)| *name == item.name));
    idle.chain(idle_methods).map(|item| Finding { place: item.place.clone(), message: message(&item.name) }).collect()
}

/// Public methods and associated functions in a file, of types with these names.
fn methods(source: &Source, types: &BTreeSet<&str>) -> Vec<Item> {
    let mut found = Vec::new();
    let mut of_public_type = false;
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.test) {
        let code = line.code.trim_end();
        if code.starts_with("impl") {
            // What a trait asks for is the trait's to show.
            of_public_type = !code.contains(" for ") && types.iter().any(|name| implements(code, name));
        } else if code.starts_with('}') {
            of_public_type = false;
        } else if let Some(("fn", name)) = code.strip_prefix("    ").filter(|_| of_public_type).and_then(item_of) {
            found.push(Item { name: name.to_owned(), place: source.place(index + 1) });
        }
    }
    found
}

/// Whether `impl<..> path::Name<..> {` is about this name.
fn implements(code: &str, name: &str) -> bool {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\''));
    let mut words = words.filter(|word| word.starts_with(char::is_uppercase));
    words.any(|word| word == name)
}

/// Names that stand behind a point or a path's colons, as those of methods do.
fn called(source: &Source) -> Vec<&str> {
    let mut names = Vec::new();
    for line in &source.lines {
        for (at, _) in line.code.match_indices(['.', ':']) {
            let behind = line.code[at + 1..].trim_start();
            let end = behind.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(behind.len());
            names.extend(behind.get(..end).filter(|name| !name.is_empty()));
        }
    }
    names
}

/// An item that the crate shows.
struct Item {
    name: String,
    place: String,
}

/// What a module shows, those that are public below it included; `seen` ends circles.
fn public(inside: &[&Source], module: &str, seen: &mut BTreeSet<String>) -> Vec<Item> {
    let is_file =
        |path: &str| [format!("{INSIDE}{module}.rs"), format!("{INSIDE}{module}/mod.rs")].iter().any(|file| file == path);
    let Some(source) = inside.iter().find(|source| is_file(&source.path)).filter(|_| seen.insert(module.to_owned())) else {
        return Vec::new();
    };
    let mut items = Vec::new();
    for named in source.paths().into_iter().filter(|named| !named.test) {
        if let Some(import) = named.import.filter(|import| import.public && !import.restricted) {
            items.push(Item { name: import.name, place: source.place(named.line) });
        }
    }
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.test) {
        let Some((kind, name)) = item_of(&line.code) else { continue };
        if kind == "mod" {
            let below = if module == "lib" { name.to_owned() } else { format!("{module}/{name}") };
            items.extend(public(inside, &below, seen));
        } else {
            items.push(Item { name: name.to_owned(), place: source.place(index + 1) });
        }
    }
    items
}

/// Kind and name of an item that is public where it stands: `pub fn f(..`. Methods and fields are indented.
fn item_of(code: &str) -> Option<(&str, &str)> {
    let mut words =
        code.strip_prefix("pub ")?.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
    let kind = words.find(|word| kinds.contains(word))?;
    // `pub const fn`
    let next = words.next()?;
    if kind == "const" && next == "fn" { Some(("fn", words.next()?)) } else { Some((kind, next)) }
}

/// What the declaration of something public names.
struct Declaration {
    names: Vec<String>,
}

/// Declarations of public items, methods and fields, and of variants, each without its own name.
fn declarations(source: &Source) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut lines = source.lines.iter().filter(|line| !line.test).map(|line| line.code.trim());
    while let Some(line) = lines.next() {
        // The type that a trait asks for, such as `type Err = ..`, is seen by all who see the trait.
        let is_public = line.starts_with("pub ") && !line.starts_with("pub use ") && !line.starts_with("pub mod ");
        if !is_public && !line.starts_with("type ") {
            continue;
        }
        let is_enum = line.starts_with("pub enum ");
        let mut text = line.to_owned();
        let is_whole = |text: &str| {
            text.ends_with([';', '}'])
                || !is_enum && text.ends_with(['{', ',']) && text.matches('(').count() <= text.matches(')').count()
        };
        while !is_whole(&text) {
            let Some(more) = lines.next() else { break };
            text = format!("{text} {more}");
        }
        let own = item_of(&text).map(|(_, name)| name.to_owned());
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned);
        found.push(Declaration { names: words.filter(|word| !word.is_empty() && Some(word) != own.as_ref()).collect() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        let said = check(&Workspace { sources, ..Workspace::default() }).into_iter();
        said.map(|finding| finding.message.split(' ').next().unwrap_or_default().to_owned()).collect()
    }

    const LIB: &str = "crates/haul-proto/src/lib.rs";
    const NONE: [&str; 0] = [];

    #[test]
    fn what_nobody_names_is_found() {
        let user = ("crates/haul/src/lib.rs", "use haul_proto::A;");
        assert_eq!(idle(&[(LIB, "mod a;\npub use a::{A, B};"), user]), ["B"]);
        assert_eq!(idle(&[(LIB, "pub struct A;\npub const fn b() {}\npub const C: u8 = 0;"), user]), ["b", "C"]);
        let module = ("crates/haul-proto/src/a.rs", "pub struct A;\npub fn b() {}\nfn c() {}");
        assert_eq!(idle(&[(LIB, "pub mod a;"), module, user]), ["b"]);
        assert_eq!(idle(&[(LIB, "mod a;"), module, user]), NONE);
    }

    #[test]
    fn what_a_public_declaration_names_is_used() {
        let user = ("crates/haul-proto/tests/a.rs", "use haul_proto::{A, f};");
        assert_eq!(idle(&[(LIB, "pub struct A {\n    pub b: B,\n}\npub struct B;"), user]), NONE);
        assert_eq!(idle(&[(LIB, "pub fn f(\n    a: A,\n) -> B {\n}\npub struct A;\npub struct B;"), user]), NONE);
        assert_eq!(idle(&[(LIB, "pub enum A {\n    C(B),\n}\npub struct B;"), user]), NONE);
        assert_eq!(idle(&[(LIB, "pub struct A;\nimpl FromStr for A {\n    type Err = B;\n}\npub struct B;"), user]), NONE);
        assert_eq!(idle(&[(LIB, "pub struct A {\n    b: B,\n}\npub struct B;"), user]), ["B"]);
    }

    #[test]
    fn a_method_that_nobody_calls_is_found() {
        let user = ("crates/haul/src/lib.rs", "use haul_proto::A;\nfn f(a: A) {\n    a.b();\n    A::c();\n}");
        let of = |methods: &str| idle(&[(LIB, &format!("pub struct A;\nimpl A {{\n{methods}}}")), user]);
        assert_eq!(of("    pub fn b(&self) {}\n    pub const fn c() {}\n    fn d() {}\n    pub(crate) fn e() {}\n"), NONE);
        assert_eq!(of("    pub fn f(&self) {}\n    pub const fn g() {}\n"), ["f", "g"]);
        let hidden = "pub struct A;\nstruct B;\nimpl B {\n    pub fn g(&self) {}\n}\nimpl Clone for A {\n    pub fn h() {}\n}";
        assert_eq!(idle(&[(LIB, hidden), user]), NONE);
        let elsewhere = ("crates/haul-proto/src/a.rs", "impl<'a> super::A<'a> {\n    pub fn g(&self) {}\n}");
        assert_eq!(idle(&[(LIB, "mod a;\npub struct A;"), elsewhere, user]), ["g"]);
    }

    #[test]
    fn what_only_the_crate_may_see_is_not_public() {
        assert_eq!(idle(&[(LIB, "mod a;\npub(crate) use a::A;\npub(crate) struct B;")]), NONE);
    }
}
