//! What talks to the kernel: the bpf system call, libbpf for loading, routes by netlink, namespaces, sysctls, cgroups. All unsafe code of the crate is here.

pub(crate) mod bpf;
pub(crate) mod cgroup;
pub(crate) mod library;
pub(crate) mod mount;
pub(crate) mod netns;
pub(crate) mod object;
pub(crate) mod refusal;
pub(crate) mod route;
#[cfg(test)]
pub(crate) mod trial;
