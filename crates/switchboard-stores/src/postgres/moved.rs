//! The mark of a database that is moved to another one, or that another one is moved into. No server uses such a database.
//!
//! The mark is a table of its own with one text, which exists only while it is needed.

use tokio_postgres::Client;

use super::error::PostgresError;
use super::offline::failed;
use crate::moving_state::MoveState;

/// The mark of the schema that the connection uses, if it has one.
pub(super) async fn read_move(client: &Client) -> Result<Option<MoveState>, PostgresError> {
    let row = client.query_one("select to_regclass('db_move') is not null", &[]).await.map_err(failed)?;
    if !row.try_get::<_, bool>(0).map_err(failed)? {
        return Ok(None);
    }
    let Some(row) = client.query_opt("select state from db_move", &[]).await.map_err(failed)? else { return Ok(None) };
    row.try_get(0).map(|text| Some(MoveState::parse(text))).map_err(failed)
}

/// Refuses a database that has been moved, or is being moved. The caller has told the others before that it is there, and a move asks for
/// that after it has made its mark; so one of the two sees the other.
pub(super) async fn check_not_moved(client: &Client) -> Result<(), PostgresError> {
    match read_move(client).await? {
        Some(state) => Err(PostgresError(state.refusal())),
        None => Ok(()),
    }
}
