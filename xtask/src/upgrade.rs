//! `xtask upgrade`: servers of the build before beside those of this one, on one database in PostgreSQL whose schema is upgraded under load. The
//! test `crash::upgrade` does it; this gives it the binary.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) fn run(options: &[&str]) -> Result<bool> {
    let ["--before", before] = options else {
        bail!("expected --before BINARY, which is `switchboard` of the build before")
    };
    let before = Path::new(before).canonicalize().with_context(|| format!("{before} cannot be found"))?;
    let cargo = |arguments: &[&str]| -> Result<bool> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).env("SWITCHBOARD_BEFORE", &before);
        Ok(cargo.status().context("cargo cannot be run")?.success())
    };
    // The test finds the binary of this build beside itself. The whole workspace is built, as scripts/test does, so that nothing is built twice.
    let test = ["test", "--profile", "ci", "--workspace", "--test", "it", "--locked", "--", "crash::upgrade"];
    Ok(cargo(&["build", "--profile", "ci", "--workspace", "--all-targets", "--locked"])?
        && cargo(&[&test[..], &["--ignored", "--nocapture"]].concat())?)
}
