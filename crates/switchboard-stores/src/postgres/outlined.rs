//! A task whose artifacts do not all fit: those that fit are read, and the others are outlined from their records. Contents in
//! chunks are not read.

use switchboard_core::model::ArtifactId;
use switchboard_engine::ports::store::{StoreError, StoredTask};

use super::fold::{Chunks, Walk, fold};
use super::rows::TaskRow;
use super::shared::Shared;
use crate::record::{
    Chains, Gathering, HistoryBounds, StoredPart, Want, Write, decode_writes, make_earlier, too_large,
};

/// Folds a task without the contents that do not fit.
pub(super) async fn fold_within(
    shared: &Shared,
    row: TaskRow,
    bytes_max: u64,
    history: HistoryBounds,
) -> Result<StoredTask, StoreError> {
    let too_large = too_large(&row.head, bytes_max);
    fold_without(shared, row, &too_large, history).await
}

/// The same from the chains of an earlier moment. An artifact that is too large now is treated as too large then.
pub(super) async fn fold_earlier_within(
    shared: &Shared,
    mut row: TaskRow,
    bytes_max: u64,
) -> Result<StoredTask, StoreError> {
    let too_large = too_large(&row.head, bytes_max);
    make_earlier(&mut row.head);
    fold_without(shared, row, &too_large, HistoryBounds::bytes(bytes_max)).await
}

async fn fold_without(
    shared: &Shared,
    row: TaskRow,
    too_large: &[ArtifactId],
    history: HistoryBounds,
) -> Result<StoredTask, StoreError> {
    if too_large.is_empty() {
        return fold(shared, row, Want::Everything, history).await;
    }
    let gathering = gather(shared, &row, too_large).await?;
    let mut stored = fold(shared, row, Want::NoArtifacts, history).await?;
    gathering.finish(&mut stored, |_| Ok(None))?;
    Ok(stored)
}

/// Reads the writes to artifacts, a page of commits at a time; the chunks of a page are read at once.
async fn gather(shared: &Shared, row: &TaskRow, too_large: &[ArtifactId]) -> Result<Gathering, StoreError> {
    let mut gathering = Gathering::of(&row.head, too_large);
    let mut walk = Walk::new(shared, row.task_no, Chains { artifact: row.chains.artifact, ..Chains::default() });
    while gathering.goes_on() {
        let page = walk.page().await?;
        if page.is_empty() {
            break;
        }
        let mut wanted = Vec::new();
        let mut decoded = Vec::with_capacity(page.len());
        for commit in &page {
            gathering.examine(commit.record.len());
            let writes = decode_writes(&commit.record)?;
            let whole = writes.iter().filter(|write| gathering.is_whole(write.artifact_id()));
            let ranges = whole.flat_map(Write::parts).filter_map(StoredPart::chunk_range);
            wanted.extend(ranges.map(|range| (commit.version(), range)));
            decoded.push((commit.version(), writes));
        }
        let chunks = Chunks::read(shared, row.task_no, wanted).await?;
        for (version, writes) in decoded {
            gathering.take(writes, &chunks.of(version))?;
        }
    }
    Ok(gathering)
}
