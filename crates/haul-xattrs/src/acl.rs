//! The shape of an ACL in an attribute.
//!
//! A word with the version, then entries of a tag, permissions and an id, little endian (`include/uapi/linux/posix_acl_xattr.h`). The system checks the rest when it is set: which
//! entries there must be, and in which order.

/// The version that there is.
const VERSION: u32 = 2;
/// Owner, a user, owning group, a group, mask, others.
const TAGS: [u16; 6] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20];
/// A tag, permissions, an id.
const ENTRY_BYTES: usize = 8;
const HEAD_BYTES: usize = 4;

/// Whether a value is one.
pub(crate) fn is_one(value: &[u8]) -> bool {
    let Some((version, entries)) = value.split_first_chunk::<HEAD_BYTES>() else { return false };
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    u32::from_le_bytes(*version) == VERSION && rest.is_empty() && !entries.is_empty() && entries.iter().copied().all(is_entry)
}

fn is_entry([t0, t1, p0, p1, ..]: [u8; ENTRY_BYTES]) -> bool {
    TAGS.contains(&u16::from_le_bytes([t0, t1])) && u16::from_le_bytes([p0, p1]) <= 0o7
}
