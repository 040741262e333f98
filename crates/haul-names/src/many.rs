//! Many short names in one allocation. Which names a peer may give is decided in `plain.rs`.
//!
//! A tree of millions of directories and links is remembered to the end of its copy; a `Vec` for each name would cost more than the name.

/// A name in [`Names`]: where it begins, and in the lowest byte how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name(u64);

/// Names of up to [`MAX_NAME`](crate::MAX_NAME) bytes.
#[derive(Default)]
pub struct Names(Vec<u8>);

impl Names {
    /// Adds a name; what is beyond the longest that a file system takes is cut off.
    pub fn add(&mut self, name: &[u8]) -> Name {
        let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
        let at = self.0.len() as u64;
        self.0.extend(name.iter().take(length.into()));
        Name(at << 8 | u64::from(length))
    }

    /// The name.
    pub fn get(&self, Name(name): Name) -> &[u8] {
        let (at, length) = ((name >> 8) as usize, (name & 0xff) as usize);
        self.0.get(at..).and_then(|rest| rest.get(..length)).unwrap_or_default()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back() {
        let mut names = Names::default();
        let given: Vec<Vec<u8>> = (0..=255_u8).map(|length| vec![length; length.into()]).collect();
        let kept: Vec<Name> = given.iter().map(|name| names.add(name)).collect();
        for (name, kept) in given.iter().zip(kept) {
            assert_eq!(names.get(kept), name);
        }
        assert_eq!(Names::default().get(Name(7 << 8 | 9)), b"");
    }
}
