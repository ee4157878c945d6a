//! `switchboard db reset`: forgetting everything, on purpose.

use std::path::{Path, PathBuf};

use switchboard::database;

use super::needs_it_alone;
use crate::failure::Failure;

pub(super) fn reset(database: &Path, really: bool) -> Result<String, Failure> {
    let files = database::files(database).map_err(Failure::runtime)?;
    if files.is_empty() {
        return Ok(format!("{} does not exist; nothing to delete", database.display()));
    }
    if !really {
        let list = list(&files);
        return Err(Failure::Usage(format!("this would delete every task for ever:\n{list}\nsay --yes to do it")));
    }
    let deleted = database::reset(database).map_err(needs_it_alone)?;
    Ok(format!("deleted\n{}", list(&deleted)))
}

fn list(files: &[PathBuf]) -> String {
    let lines: Vec<String> = files.iter().map(|file| format!("  {}", file.display())).collect();
    lines.join("\n")
}
