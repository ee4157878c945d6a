//! The folders that the commands use. They do not depend on the current folder.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies one folder below the root").to_owned()
}

/// Where cargo has put what it built together with this program.
pub(crate) fn built() -> PathBuf {
    let own = std::env::current_exe().expect("the system says where this program lies");
    own.parent().expect("a program lies in a folder").to_owned()
}

/// The target folder of cargo; the commands keep their own files there, too.
pub(crate) fn target() -> PathBuf {
    let root = root();
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}
