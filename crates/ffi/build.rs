//! Gives the shared library its name: programs linked with it look for a compatible version.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let part = |name: &str| var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    // Before 1.0, versions with another minor number are incompatible.
    let compatible = match part("MAJOR").as_str() {
        "0" => format!("0.{}", part("MINOR")),
        major => major.to_owned(),
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libascar.so.{compatible}");
}
