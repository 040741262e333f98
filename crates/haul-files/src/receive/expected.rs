//! Which names may stand at the top.

use std::collections::HashSet;

use haul_faults::WirePath;
use haul_names::base_name;
use haul_names::{Pattern, is_pattern};

/// Names that were asked for: who asks for `a` is not given `b`.
pub(crate) struct Expected {
    names: HashSet<Vec<u8>>,
    patterns: Vec<Pattern>,
}

impl Expected {
    /// The names of these sources.
    pub(crate) fn plain(sources: &[WirePath]) -> Self {
        Self { names: sources.iter().map(|source| base_name(&source.0)).collect(), patterns: Vec::new() }
    }

    /// The names that these sources, read as patterns, match.
    pub(crate) fn add_patterns(&mut self, sources: &[WirePath]) {
        let names = sources.iter().map(|source| base_name(&source.0));
        self.patterns = names.filter(|name| is_pattern(name)).map(|name| Pattern::new(&name)).collect();
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.names.contains(name) || self.patterns.iter().any(|pattern| pattern.matches(name))
    }
}
