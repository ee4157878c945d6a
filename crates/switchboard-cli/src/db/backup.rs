//! `switchboard db backup`: a copy of the database at one moment, whether a server is using it or not.

use std::path::Path;

use switchboard::database;

use super::size;
use crate::failure::Failure;

pub(super) fn backup(database: &Path, to: &Path) -> Result<String, Failure> {
    let bytes = database::backup(database, to).map_err(Failure::runtime)?;
    Ok(format!(
        "copied {} to {} ({})\ncheck it: switchboard db verify --file {}",
        database.display(),
        to.display(),
        size(bytes),
        to.display()
    ))
}
