//! Files that lie on many members, fetched by one client.
//!
//! `get(members: Vec<Member>, job: &GetJob, observer: &dyn JobObserver, cancel: &Cancel) -> Result<JobReport, GetError>` blocks until all has arrived and is
//! durable here. Members that go are named in the report; what they had to send comes from others.

mod error;
mod job;

pub use error::GetError;
pub use job::GetJob;
