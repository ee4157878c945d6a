//! Builds what is compared, exactly as a user would, so that one command is enough.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Does nothing outside of `cargo run`: a binary started by hand takes what lies beside it.
pub(super) fn build_servers(with_switchboard: bool) -> Result<()> {
    let (Some(cargo), Some(manifest)) = (std::env::var_os("CARGO"), std::env::var_os("CARGO_MANIFEST_DIR")) else {
        return Ok(());
    };
    let root = Path::new(&manifest).parent().context("the bench folder lies in the workspace")?;
    // Two builds and not one: built together, the server could get features that plain `cargo build` does not give it.
    let switchboard: &[&[&str]] = if with_switchboard { &[&["build", "--release"]] } else { &[] };
    for arguments in switchboard.iter().chain([&["build", "--release", "-p", "bench", "--bins"][..]].iter()) {
        let status = Command::new(&cargo).args(*arguments).current_dir(root).status().context("cannot run cargo")?;
        ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
