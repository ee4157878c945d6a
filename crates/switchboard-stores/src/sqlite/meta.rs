//! Numbers of the file as a whole, each with a name and a checksum.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::of_meta;

/// A number that the table `meta` holds under a name.
pub(super) fn read_meta(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached("SELECT value, checksum FROM meta WHERE name = ?1")?;
    let found = select.query_row([name], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
    match found {
        Some((value, checksum)) if of_meta(name, value) != checksum => {
            // A failed conversion counts as damage, as everywhere; see `Failure`.
            let reason = format!("the number {name} does not match its checksum");
            Err(rusqlite::Error::FromSqlConversionFailure(0, Type::Integer, reason.into()))
        }
        found => Ok(found.map(|(value, _)| value)),
    }
}

pub(super) fn write_meta(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    let mut write = connection.prepare_cached(
        "INSERT INTO meta (name, value, checksum) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET value = excluded.value, checksum = excluded.checksum",
    )?;
    write.execute(params![name, value, of_meta(name, value)])?;
    Ok(())
}
