//! What is known of a directory until all is in it, in little memory: there may be millions.

use crate::stamp::Stamp;

/// What is known of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirInfo {
    /// Made by this run: nothing was in it.
    pub created: bool,
    /// It is there, and may be written to.
    pub usable: bool,
    /// Its mode lets this user do more than it will.
    pub opened: bool,
    /// What is still to be done to it.
    pub finish: Finish,
}

impl DirInfo {
    /// One that failed, or is not to be.
    pub const UNUSABLE: Self =
        Self { created: false, usable: false, opened: false, finish: Finish { mode: None, mtime: None, owner: None } };
}

/// What a directory gets once all is in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finish {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Modification time.
    pub mtime: Option<Stamp>,
    /// Owner and group.
    pub owner: Option<(u32, u32)>,
}

impl Finish {
    /// Whether there is anything.
    pub fn any(&self) -> bool {
        self.mode.is_some() || self.mtime.is_some() || self.owner.is_some()
    }
}

/// [`DirInfo`] in 40 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Packed {
    id: u64,
    secs: i64,
    nanos: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    flags: u8,
}

const CREATED: u8 = 1;
const USABLE: u8 = 2;
const MODE: u8 = 4;
const MTIME: u8 = 8;
const OWNER: u8 = 16;
const OPENED: u8 = 32;

impl Packed {
    /// Of the directory of this id.
    pub fn new(id: u64, DirInfo { created, usable, opened, finish: Finish { mode, mtime, owner } }: DirInfo) -> Self {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(created, CREATED)
            | flag(usable, USABLE)
            | flag(opened, OPENED)
            | flag(mode.is_some(), MODE)
            | flag(mtime.is_some(), MTIME)
            | flag(owner.is_some(), OWNER);
        let Stamp { secs, nanos } = mtime.unwrap_or_default();
        let (uid, gid) = owner.unwrap_or_default();
        Self { id, secs, nanos, uid, gid, mode: (mode.unwrap_or(0) & 0o7777) as u16, flags }
    }

    /// Its id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What was packed.
    pub fn unpack(&self) -> DirInfo {
        let has = |flag| self.flags & flag != 0;
        let finish = Finish {
            mode: has(MODE).then_some(self.mode.into()),
            mtime: has(MTIME).then_some(Stamp { secs: self.secs, nanos: self.nanos }),
            owner: has(OWNER).then_some((self.uid, self.gid)),
        };
        DirInfo { created: has(CREATED), usable: has(USABLE), opened: has(OPENED), finish }
    }
}
