//! Has the linker place the functions that requests run beside each other, in the release build for Linux (docs/decisions/0026). Requests take
//! about a tenth less CPU by it; a binary that is linked without the script does the same, more slowly.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=hot-functions.ld");
    let of = |name| var(name).unwrap_or_default();
    let is_release = of("OPT_LEVEL") == "3";
    let is_linux = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    // These linkers do not take the script; GNU's and LLVM's, one of which Rust uses by itself, do.
    let asked = [of("CARGO_ENCODED_RUSTFLAGS"), of("RUSTC_LINKER")].join(" ");
    let takes_script = !["mold", "gold"].iter().any(|linker| asked.contains(linker));
    if is_release && is_linux && takes_script {
        println!("cargo::rustc-link-arg-bins=-T{}/hot-functions.ld", of("CARGO_MANIFEST_DIR"));
    }
}
