//! Files that wait for somebody who has them at hand.

use haul_files::protocol::Needs;

/// What waits for somebody who has it at hand, and whether it has waited long enough.
#[derive(Default)]
pub(super) struct Waiting {
    /// Files that nobody has at hand who was heard so far.
    pub(super) files: Vec<(u32, Needs)>,
    /// Something has happened after which there may be nobody to wait for.
    pub(super) is_due: bool,
}
