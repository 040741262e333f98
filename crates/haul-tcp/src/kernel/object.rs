//! Programs for the kernel as haul carries them: packed by `build.rs`, which leaves a sixth of them.

use std::sync::OnceLock;

/// An object of clang's.
pub(crate) struct Object {
    packed: &'static [u8],
    unpacked: OnceLock<Vec<u8>>,
}

impl Object {
    /// What the build left; nothing where it had no clang.
    pub(crate) const fn packed(packed: &'static [u8]) -> Self {
        Self { packed, unpacked: OnceLock::new() }
    }

    /// Whether haul was built without it.
    pub(crate) const fn is_missing(&self) -> bool {
        self.packed.is_empty()
    }

    /// As packed: two builds that differ in this differ in the programs.
    pub(crate) const fn mark(&self) -> &'static [u8] {
        self.packed
    }

    /// What libbpf reads.
    pub(crate) fn bytes(&'static self) -> &'static [u8] {
        self.unpacked.get_or_init(|| zstd::decode_all(self.packed).expect("this build has packed it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_out_once() {
        static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
        static OBJECT: OnceLock<Object> = OnceLock::new();
        let packed = PACKED.get_or_init(|| zstd::bulk::compress(&vec![7; 100_000], 19).unwrap());
        let object = OBJECT.get_or_init(|| Object::packed(packed));
        assert!(!object.is_missing() && object.mark().len() < 1000);
        assert_eq!(object.bytes(), vec![7; 100_000]);
        assert_eq!(object.bytes().as_ptr(), object.bytes().as_ptr());
        assert!(Object::packed(&[]).is_missing());
    }
}
