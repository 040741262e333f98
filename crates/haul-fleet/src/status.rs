//! How members are, without a job: load, memory, room.

use std::io;
use std::time::Duration;

use haul_copy::{StatusReport, ask_status};
use haul_files::WirePath;
use haul_units::Cancel;

use crate::at_once::{MEMBERS_AT_ONCE, at_once};
use crate::member::Member;

/// How a member is, or why that is not known.
#[derive(Debug)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// Its round-trip time.
    pub rtt: Duration,
    /// What it says.
    pub report: io::Result<StatusReport>,
}

/// Asks all members at once, and lets them end. Of each the room is told where its relative paths start.
pub fn status(members: Vec<Member>, cancel: &Cancel) -> Vec<MemberStatus> {
    let ask = |member: Member| {
        let path = member.path.as_ref().map(|path| WirePath::from(path.as_path()));
        let report = ask_status(&member.connection, path, cancel);
        let (name, rtt) = (member.name.clone(), member.connection.stats().rtt);
        member.part();
        MemberStatus { name, rtt, report }
    };
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let failed = || Err(io::Error::other("the thread that asks has failed"));
    let told = |(name, said): (String, Option<MemberStatus>)| {
        said.unwrap_or_else(|| MemberStatus { name, rtt: Duration::ZERO, report: failed() })
    };
    names.into_iter().zip(at_once(members, MEMBERS_AT_ONCE, ask)).map(told).collect()
}
