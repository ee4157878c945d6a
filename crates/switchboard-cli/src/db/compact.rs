//! `switchboard db compact`: what is no longer kept goes, and its space is given back.

use std::path::Path;

use switchboard::Limits;
use switchboard::database::{self, Compacted};

use super::{needs_it_alone, size};
use crate::failure::Failure;

pub(super) fn compact(database: &Path, limits: &Limits) -> Result<String, Failure> {
    let Compacted { before, after } = database::compact(database, limits).map_err(needs_it_alone)?;
    Ok(format!(
        "removed {} tasks and {} commits from {}; {} became {}",
        before.tasks - after.tasks,
        before.commits - after.commits,
        database.display(),
        size(before.bytes),
        size(after.bytes)
    ))
}
