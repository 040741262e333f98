//! Uploads: files of this machine onto members, each onto as many as asked for.

mod error;
mod job;

pub use error::PutError;
pub use job::PutJob;
