//! What a copy is called, so that its next run finds what this one has kept: hashes of what it copies, and of what that is to be called.

use crate::plain::{STAGE_PREFIX, base_name, is_plain_name};

/// Names a copy by its sources, for the stage; the receiver adds the place. However the command spells them, and in whatever order, they are the same.
pub fn job_id(direction: &[u8], mut sources: Vec<Vec<u8>>) -> [u8; 32] {
    sources.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for part in std::iter::once(direction).chain(sources.iter().map(|path| &**path)) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// A source elsewhere without what does not matter in its spelling.
pub fn far_source(source: &[u8]) -> Vec<u8> {
    let parts = source.split(|&b| b == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let content = base_name(source).is_empty();
    let root: &[u8] = if source.starts_with(b"/") { b"/" } else { b"" };
    [root, &parts.collect::<Vec<_>>().join(&b'/'), if content { b"/." } else { b"" }].concat()
}

/// By what the stage of a job is found in a place: where its one source gets another name there, that is added.
pub fn stage_id(job: &[u8; 32], rename: Option<&[u8]>) -> [u8; 32] {
    rename.map_or(*job, |name| *blake3::Hasher::new().update(job).update(name).finalize().as_bytes())
}

/// The stage's name for its id: the first, or where that is taken a later one.
pub fn stage_name(id: &[u8; 32], number: u32) -> String {
    let hash = *blake3::Hasher::new().update(id).update(&number.to_le_bytes()).finalize().as_bytes();
    let source = if number == 0 { id } else { &hash };
    format!("{STAGE_PREFIX}{:08x}", source.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes)))
}

/// Whether it is one of those names.
pub fn is_stage_name(name: &[u8]) -> bool {
    let digits = name.strip_prefix(STAGE_PREFIX.as_bytes());
    digits.is_some_and(|digits| digits.len() == 8 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// The directory that a path is in, and its name there; none where it ends in no name.
pub fn directory_and_name(path: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let end = path.iter().rposition(|&b| b != b'/')?;
    let path = path.get(..=end)?;
    let (directory, name) = match path.iter().rposition(|&b| b == b'/') {
        Some(at) => (path.get(..=at)?, path.get(at + 1..)?),
        None => (&b"."[..], path),
    };
    is_plain_name(name).then(|| (directory.to_vec(), name.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_where_its_name_begins() {
        let parts = |path: &str| {
            let (directory, name) = directory_and_name(path.as_bytes())?;
            Some((String::from_utf8(directory).expect("text"), String::from_utf8(name).expect("text")))
        };
        let split = |directory: &str, name: &str| Some((directory.to_owned(), name.to_owned()));
        assert_eq!(parts("new"), split(".", "new"));
        assert_eq!(parts("in/a/new//"), split("in/a/", "new"));
        assert_eq!((parts("/new"), parts("gfarm:/new")), (split("/", "new"), split("gfarm:/", "new")));
        assert_eq!([parts(""), parts("/"), parts("a/."), parts("a/..")], [None, None, None, None]);
    }

    #[test]
    fn a_stage_is_of_its_job_and_of_the_name_that_it_is_to_get() {
        let job = |sources: &[&str]| job_id(b"pull", sources.iter().map(|source| far_source(source.as_bytes())).collect());
        assert_eq!(job(&["a/b/", "c"]), job(&["c", "./a//b"]));
        assert_ne!(job(&["a/b"]), job(&["a/b/."]));
        assert_ne!(job(&["/a"]), job(&["a"]));
        let job = job(&["a"]);
        assert_eq!(stage_id(&job, None), job);
        assert_ne!(stage_id(&job, Some(b"x")), stage_id(&job, Some(b"y")));
        assert_ne!(stage_name(&job, 0), stage_name(&job, 1));
        let name = stage_name(&job, 3);
        assert!(crate::is_reserved(name.as_bytes()) && is_stage_name(name.as_bytes()) && !is_stage_name(b".haul-1"));
    }
}
