//! What options ask of the other side beyond their request: words that came after version 3 of the protocol, with a feature each.
//!
//! They are said before the request, so that nothing is begun without them. Who receives decides by itself, and says only what its sender has to do.

use crate::job::{Options, Same};
use crate::protocol::{ATTRIBUTES, CHOOSES, DELETES, DRY_RUNS, FOLLOWS, LEAVES_OUT, SAMENESS, Term, What};
use haul_names::Filter;

/// What the server is to know of these options.
pub(crate) fn terms_of(what: &What, options: &Options) -> Vec<Term> {
    let mut terms = Vec::new();
    match what {
        What::Push { .. } => {
            terms.extend(options.dry_run.then_some(Term::DryRun));
            terms.extend((options.same != Same::Time).then_some(Term::Same(options.same)));
            terms.extend(options.delete.map(Term::Delete));
        }
        What::Pull { .. } => {
            terms.extend((options.same == Same::Content).then_some(Term::Same(Same::Content)));
            terms.extend(options.follow.then_some(Term::Follow));
        }
        What::Ordered { .. } => return terms,
    }
    terms.extend(options.keep.any().then_some(Term::Keep(options.keep)));
    terms
}

/// What a server cannot do of it, for which `has` says whether it has a feature; a filter is its business where it is said at all.
pub(crate) fn lacking(terms: &[Term], said: &Filter, has: impl Fn(u64) -> bool) -> Option<&'static str> {
    let lacks = |term: &Term| match term {
        Term::DryRun => (!has(DRY_RUNS)).then_some("say what it would do"),
        Term::Same(_) => (!has(SAMENESS)).then_some("tell by size or content what is the same"),
        Term::Delete(_) => (!has(DELETES)).then_some("remove what the source has not"),
        Term::Follow => (!has(FOLLOWS)).then_some("follow symbolic links"),
        Term::Keep(_) => (!has(ATTRIBUTES)).then_some("keep extended attributes and ACLs"),
    };
    let leaves_out = (!said.is_empty() && !has(LEAVES_OUT)).then_some("leave out what matches a pattern");
    let chooses = (said.chosen().is_some() && !has(CHOOSES)).then_some("take a list of names");
    terms.iter().find_map(lacks).or(leaves_out).or(chooses)
}

/// Puts what a client said into its options.
pub(crate) fn apply(terms: &[Term], options: &mut Options) {
    for term in terms {
        match term {
            Term::DryRun => options.dry_run = true,
            Term::Same(same) => options.same = *same,
            Term::Delete(delete) => options.delete = Some(*delete),
            Term::Follow => options.follow = true,
            Term::Keep(keep) => options.keep = *keep,
        }
    }
}
