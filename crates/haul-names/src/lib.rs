//! Names of files, without files: which a peer may give, which are meant by patterns and lists, and how a list of them is written.
//!
//! | | |
//! |---|---|
//! | [`is_plain_name`], [`is_reserved`], [`base_name`], [`Scheme`] | which name a peer may give, and what a path is called |
//! | [`at_home`] | where a path of an account starts |
//! | [`Pattern`] | a shell's pattern of one component |
//! | [`Filter`] | what is left out: lines of a `.gitignore` |
//! | [`rules`] | the same, from files of rsync and rclone |
//! | [`Chosen`] | what is meant one by one: a list of paths |
//! | [`job_id`], [`stage_id`], [`stage_name`] | what a copy is called, so that its next run finds what it has kept |
//! | [`sum_line`] | a line of a list of checksums |
//! | [`os_str`] | what a name is to the system |
//! | [`Names`] | millions of short names in little memory |
//!
//! Names are bytes. Everything here takes what a peer may send: it is bounded, and costs time in proportion to its length.

mod chosen;
mod filter;
mod home;
mod job;
mod many;
mod pattern;
mod plain;
mod rules;
mod sums;
mod system;

pub use chosen::{Chosen, ChosenError, MAX_CHOSEN, MAX_CHOSEN_BYTES, MAX_CHOSEN_PATH};
pub use filter::{Filter, FilterError, MAX_ALL_PATTERNS, MAX_PATTERN, MAX_PATTERNS};
pub use home::at_home;
pub use job::{directory_and_name, far_source, is_stage_name, job_id, stage_id, stage_name};
pub use many::{Name, Names};
pub use pattern::{Pattern, is_pattern};
pub use plain::{MAX_NAME, STAGE_PREFIX, Scheme, base_name, is_plain_name, is_reserved, path_of};
pub use rules::{RuleError, rules};
pub use sums::sum_line;
pub use system::os_str;
