//! Compares the tables, indexes and views of the file with those that this build creates. SQLite checks only what
//! exists; it cannot know that an index is missing and look-ups read whole tables.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::super::error::Failure;
use super::super::moved::MOVE_TABLE;
use super::super::schema::MIGRATIONS;
use super::Inspection;

/// The name of each table, index and view, and its SQL.
type Schema = BTreeMap<(String, String), Option<String>>;

impl Inspection<'_> {
    pub(super) fn schema(&mut self) -> Result<(), Failure> {
        let fresh = Connection::open_in_memory()?;
        for migration in MIGRATIONS {
            fresh.execute_batch(migration.sql)?;
        }
        let (made, mut found) = (schema_of(&fresh)?, schema_of(self.connection)?);
        for ((kind, name), sql) in made {
            match found.remove(&(kind.clone(), name.clone())) {
                None => self.fault(None, format!("the {kind} {name} is missing")),
                Some(other) if other != sql => {
                    self.fault(None, format!("the {kind} {name} is not made as this build makes it"));
                }
                Some(_) => {}
            }
        }
        for (kind, name) in found.into_keys() {
            self.fault(None, format!("the {kind} {name} is none that this build makes"));
        }
        Ok(())
    }
}

fn schema_of(connection: &Connection) -> Result<Schema, Failure> {
    // Tables of SQLite's ANALYZE are not damage, nor is the mark of a file that is moved.
    let sql = format!(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' AND name <> '{MOVE_TABLE}'"
    );
    let mut select = connection.prepare(&sql)?;
    let rows = select.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
