//! Layers within a crate: folders of which each sees only those that it is told to see.
//!
//! [`circles`](crate::circles) keeps files from needing each other; this says in which direction they may. What a layer gives, others use; whom it uses stands here.

use crate::circles::{Modules, Name};
use crate::finding::Finding;
use crate::workspace::Workspace;

/// A layer, and those that it sees.
type Layer = (&'static str, &'static [&'static str]);

/// A crate, a module of it, and the layers in that module, each with the ones it sees. Other modules below it see all of them.
const KNOWN: &[(&str, &str, &[Layer])] = &[(
    "haul-cc",
    "lfn",
    &[
        ("mode", &[]),
        ("measure", &[]),
        ("cross_traffic", &["measure"]),
        ("law", &["mode", "measure", "cross_traffic"]),
        ("phase", &["measure", "law"]),
        ("start", &["measure"]),
    ],
)];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    KNOWN.iter().flat_map(|(package, module, layers)| check_layers(workspace, package, module, layers)).collect()
}

fn check_layers(workspace: &Workspace, name: &str, module: &str, layers: &[Layer]) -> Vec<Finding> {
    let finding = |message| Finding { place: name.to_owned(), message };
    let Some(package) = workspace.packages.iter().find(|package| package.name == name) else {
        return vec![finding("no such crate; mend xtask/src/layers.rs".to_owned())];
    };
    let modules = Modules::of(workspace, package);
    let layer_of = |name: &Name| match name.strip_prefix(&[module.to_owned()][..]) {
        Some([layer, ..]) => Some(layer.clone()),
        Some([]) => Some(String::new()),
        None => None,
    };
    let mut findings: Vec<Finding> = layers
        .iter()
        .filter(|(layer, _)| !modules.names().any(|name| layer_of(name).as_deref() == Some(*layer)))
        .map(|(layer, _)| finding(format!("{module} has no layer {layer}; mend xtask/src/layers.rs")))
        .collect();
    for (from, targets) in modules.arrows() {
        let Some((layer, sees)) = layers.iter().find(|(layer, _)| layer_of(&from).as_deref() == Some(*layer)) else { continue };
        for (to, path) in targets {
            let Some(other) = layer_of(&to).filter(|other| other != layer && !sees.contains(&other.as_str())) else { continue };
            let other = if other.is_empty() { "the module above it".to_owned() } else { other };
            findings.push(finding(format!(
                "{} ({path}) needs {other}, which {layer} does not see: it sees {sees:?}",
                from.join("::")
            )));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::workspace::Package;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let package = Package { name: "a".to_owned(), dir: "crates/a".to_owned(), ..Package::default() };
        let sources = files.iter().map(|(path, text)| Source::new(&format!("crates/a/src/{path}"), text)).collect();
        let workspace = Workspace { packages: vec![package], sources, ..Workspace::default() };
        let layers: &[Layer] = &[("low", &[]), ("high", &["low"])];
        check_layers(&workspace, "a", "m", layers).into_iter().map(|finding| finding.message).collect()
    }

    const NONE: [&str; 0] = [];
    const TREE: [(&str, &str); 3] =
        [("lib.rs", "mod m;"), ("m/mod.rs", "mod low;\nmod high;\npub struct Top;"), ("b.rs", "pub struct B;")];

    #[test]
    fn a_layer_sees_those_below_it() {
        let low = ("m/low.rs", "pub struct Low;");
        let high = ("m/high/mod.rs", "mod part;\nuse super::low::Low;\nuse crate::b::B;");
        assert_eq!(findings(&[&TREE[..], &[low, high, ("m/high/part.rs", "use crate::m::low::Low;")]].concat()), NONE);
    }

    #[test]
    fn and_nothing_else() {
        let high = ("m/high/mod.rs", "pub struct High;");
        let up = findings(&[&TREE[..], &[("m/low.rs", "use crate::m::high::High;"), high]].concat());
        assert!(up.len() == 1 && up[0].starts_with("m::low (crate::m::high::High) needs high"), "{up:?}");
        let above = findings(&[&TREE[..], &[("m/low.rs", "use super::Top;"), high]].concat());
        assert!(above.len() == 1 && above[0].contains("the module above it"), "{above:?}");
    }

    #[test]
    fn a_layer_that_is_gone_is_told() {
        let gone = findings(&[&TREE[..], &[("m/low.rs", "")]].concat());
        assert_eq!(gone, ["m has no layer high; mend xtask/src/layers.rs"]);
    }
}
