//! Has the linker place the functions that requests run beside each other, in the release build for Linux (docs/decisions/0026). Requests take
//! about a tenth less CPU by it; a binary that is linked without the script does the same, more slowly.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=hot-functions.ld");
    let of = |name| var(name).unwrap_or_default();
    let is_release = of("OPT_LEVEL") == "3";
    let is_linux = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    // Mold takes no scripts. The linkers that Rust uses by itself do.
    let takes_scripts = ![of("CARGO_ENCODED_RUSTFLAGS"), of("RUSTC_LINKER")].join(" ").contains("mold");
    if is_release && is_linux && takes_scripts {
        println!("cargo::rustc-link-arg-bins=-T{}/hot-functions.ld", of("CARGO_MANIFEST_DIR"));
    }
}
