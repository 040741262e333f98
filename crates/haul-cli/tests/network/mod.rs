//! What tests need that make network namespaces.

use std::path::Path;

/// Nothing where root, a TUN device or one of these programs is missing: the test says so and ends, and fails if `CI` is set.
pub fn possible(who: &str, programs: &[&str]) -> Option<()> {
    let there =
        |program: &str| ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|dir| Path::new(dir).join(program).exists());
    let missing = if !rustix::process::geteuid().is_root() {
        "root"
    } else if !Path::new("/dev/net/tun").exists() {
        "/dev/net/tun"
    } else if let Some(program) = programs.iter().find(|program| !there(program)) {
        program
    } else {
        return Some(());
    };
    skip::skip(format_args!("{who} need {missing}"));
    None
}
