//! Files of one name and size whose times differ: their members hash them, and what is equal is one file.

use std::collections::{BTreeMap, HashMap};

use haul_files::Wish;

use super::desk::Desk;
use super::error::{GetError, Here};
use super::job::ReplicasBy;
use super::merge::Tree;
use super::news::{News, Said};

/// Files asked for in one message: each is 10 bytes at most.
const AT_ONCE: usize = 1 << 16;

/// Waits for the hashes of all files in doubt. One that members have with different content is a conflict.
pub(super) fn settle<B>(desk: &mut Desk<'_, B>, tree: &mut Tree) -> Result<(), GetError> {
    if desk.job.replicas_by != ReplicasBy::Hash {
        return Ok(());
    }
    // By member and its id of the file.
    let mut due: HashMap<(usize, u64), u32> = HashMap::new();
    let mut said: BTreeMap<u32, BTreeMap<u16, Option<[u8; 32]>>> = BTreeMap::new();
    let mut asked: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (node, members) in tree.doubts() {
        said.insert(node, BTreeMap::new());
        for member in members.into_iter().map(usize::from) {
            if let Some(id) =
                desk.supplies.get(member).filter(|supply| supply.down.is_none()).and_then(|supply| supply.id_of(node))
            {
                due.insert((member, id), node);
                asked.entry(member).or_default().push(id);
            }
        }
    }
    for (member, ids) in asked {
        for (ids, supply) in ids.chunks(AT_ONCE).zip(desk.supplies.get(member).into_iter().cycle()) {
            // One that is gone says so itself.
            let _ = supply.wishes.send(Wish::Digest(ids.to_vec()));
        }
    }
    while !due.is_empty() {
        desk.tell(None, |_| None, false);
        let Some(News::Member(at, news)) = desk.next(desk.tells_in())? else { continue };
        match news {
            Said::Over(result) => {
                desk.over(at, result)?;
            }
            Said::Digests(digests) => {
                for digest in digests {
                    let Some(node) = due.remove(&(at, digest.file)) else {
                        desk.down(at, "it says what it was not asked");
                        break;
                    };
                    said.entry(node).or_default().insert(at as u16, digest.hash);
                }
            }
            Said::Note(note) => desk.note(at, &note),
            _ => {
                desk.down(at, "it says what it was not asked");
            }
        }
        due.retain(|(member, _), _| desk.supplies.get(*member).is_some_and(|supply| supply.down.is_none()));
    }
    for (node, hashes) in said {
        let known: Vec<(u16, [u8; 32])> = hashes.into_iter().filter_map(|(member, hash)| Some((member, hash?))).collect();
        let Some(&(first, content)) = known.first() else { continue };
        if let Some(&(second, _)) = known.iter().find(|(_, hash)| *hash != content) {
            let name = |member: u16| desk.supplies.get(usize::from(member)).map(|supply| supply.name.clone()).unwrap_or_default();
            return Err(GetError::Conflict {
                path: tree.path(node),
                first: name(first),
                second: name(second),
                here: Here::Untouched,
            });
        }
        tree.settle(node, &known.iter().map(|(member, _)| *member).collect::<Vec<_>>());
    }
    Ok(())
}
