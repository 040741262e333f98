//! Names the shared library: programs that were linked with one of the same soname run with this one.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = |part| env::var(format!("CARGO_PKG_VERSION_{part}")).expect("cargo says the version");
    // Until 1.0 the second number changes with the ABI, as cargo reads versions too.
    let soname = match version("MAJOR").as_str() {
        "0" => format!("libhaul.so.0.{}", version("MINOR")),
        major => format!("libhaul.so.{major}"),
    };
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
        // Its threads may still be ending when a program that has loaded it as a plug-in lets it go.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
