//! The number of times that the file was opened for writing.

use rusqlite::Connection;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::system::ClockRecord;

use super::call_rows::void_claims;
use super::meta::{read_meta, write_meta};
use super::rows::of_push_times;
use super::unindexed::index_leftovers;
use super::wall_clock;

/// How often the file has been opened for writing, in `meta`.
pub(super) const EPOCH: &str = "epoch";
/// No epoch has begun, so nothing may be written yet.
pub(super) const NO_EPOCH: i64 = 0;

/// Begins an epoch. The lock proves that the earlier process is dead: its leases belong to older epochs, and its
/// deliveries under way become due again. If the clock was set back meanwhile, waiting times are shifted, so that each
/// keeps its length.
pub(super) fn begin_epoch(connection: &Connection, clock: ClockRecord, now: Timestamp) -> rusqlite::Result<i64> {
    let transaction = connection.unchecked_transaction()?;
    if let Some(back_ms) = clock.last_seen.and_then(|seen| wall_clock::set_back_ms(seen, now)) {
        wall_clock::set_back(&transaction, back_ms, now)?;
    }
    wall_clock::write_seen(&transaction, now)?;
    index_leftovers(&transaction)?;
    let epoch = read_meta(&transaction, EPOCH)?.unwrap_or(0) + 1;
    write_meta(&transaction, EPOCH, epoch)?;
    transaction.execute(
        "UPDATE push SET due_at = ?1, claimed_until = NULL, times_checksum = ?2
          WHERE due_at IS NOT NULL AND claimed_until IS NOT NULL",
        [now.as_ms(), of_push_times(Some(now.as_ms()), None)],
    )?;
    void_claims(&transaction, now)?;
    transaction.commit()?;
    Ok(epoch)
}
