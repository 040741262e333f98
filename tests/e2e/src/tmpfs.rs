//! A small disk, to fill up, and who sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory; unmounted with this value.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Where a lab's disk is, below its scratch directory.
    pub fn place(scratch: &Path) -> PathBuf {
        scratch.join("disk")
    }

    /// Mounts it in a scratch directory. Size as mount(8) takes it.
    pub fn mount(scratch: &Path, size: &str) -> Self {
        let dir = &Self::place(scratch);
        std::fs::create_dir_all(dir).expect("making the mount point");
        let options = format!("size={size},nodev,nosuid");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "haul-e2e"]).arg(dir).status();
        assert!(status.expect("mount(8)").success(), "mounting a tmpfs at {}", dir.display());
        Self(dir.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it another size.
    pub fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(status.expect("mount(8)").success(), "resizing {}", self.0.display());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A directory below which every program sees what is mounted after it was started. `ip netns exec` gives each one mounts of its own, and those
/// hear only of what is below a shared mount.
pub struct SharedMounts(PathBuf);

impl SharedMounts {
    /// Makes a directory one.
    pub fn below(dir: &Path) -> Self {
        let status = Command::new("mount").args(["--bind", "--make-shared"]).args([dir, dir]).status();
        assert!(status.expect("mount(8)").success(), "mounting {} on itself", dir.display());
        Self(dir.to_owned())
    }
}

impl Drop for SharedMounts {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
