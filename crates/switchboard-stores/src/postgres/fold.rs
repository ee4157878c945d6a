//! Folds a task from the commits that a reader must fold. They are found by following two chains back from the head: one of
//! messages and status changes (columns named `story`), one of artifact writes. Commits that only report progress are on
//! neither chain. One statement follows the chains for a page of commits; commits never change, so pages need no snapshot.

use std::collections::HashMap;
use std::ops::Range;

use switchboard_engine::ports::store::{StoreError, StoredTask, TaskKey};

use super::error::corrupt;
use super::rows::{LogRow, TaskRow, get, of_chunk};
use super::shared::Shared;
use crate::checksum::ContentHash;
use crate::record::{Chains, ChunkSource, Contents, Folding, HistoryBounds, ParsedCommit, Want, missing};

/// How many commits of a chain are read at once.
const CHAIN_PAGE: i32 = 64;

const WALK: &str = "
with recursive walk as (
    select $2::bigint as story, $3::bigint as artifact, $4::bigint as status, 0 as n, null::bigint as version,
           null::bigint as last_seq, null::int as visible, null::bigint as at, null::bigint as nonce, null::bigint as prev_story,
           null::bigint as prev_artifact, null::bigint as checksum, null::text as record
    union all
    select case when w.story = l.version then l.prev_story else w.story end,
           case when w.artifact = l.version then l.prev_artifact else w.artifact end,
           case when w.status = l.version then 0 else w.status end,
           w.n + 1, l.version, l.last_seq, l.visible, l.at, l.nonce, l.prev_story, l.prev_artifact, l.checksum, l.record
      from walk w join log l on l.task_no = $1::bigint and l.version = greatest(w.story, w.artifact, w.status)
     where w.n < $5::int)
select $1::bigint, version, last_seq, visible, at, nonce, prev_story, prev_artifact, checksum, record, story, artifact, status
  from walk where n > 0 order by n";

/// The commits on chains, newest first, a page at a time.
pub(super) struct Walk<'s> {
    shared: &'s Shared,
    task_no: i64,
    next: Chains,
}

impl<'s> Walk<'s> {
    pub(super) fn new(shared: &'s Shared, task_no: i64, chains: Chains) -> Self {
        Self { shared, task_no, next: chains }
    }

    /// The next commits; none at the end.
    pub(super) async fn page(&mut self) -> Result<Vec<LogRow>, StoreError> {
        let Chains { story, artifact, status } = self.next;
        let newest = story.max(artifact).max(status);
        if newest == 0 {
            return Ok(Vec::new());
        }
        let found = self.shared.database.read(WALK, &[&self.task_no, &story, &artifact, &status, &CHAIN_PAGE]).await?;
        let Some(last) = found.last() else { return Err(missing(self.task_no, newest)) };
        self.next = Chains { story: get(last, 10)?, artifact: get(last, 11)?, status: get(last, 12)? };
        let next = self.next.story.max(self.next.artifact).max(self.next.status);
        let is_short = found.len() < usize::try_from(CHAIN_PAGE).unwrap_or(0);
        if is_short && next != 0 {
            return Err(missing(self.task_no, next));
        }
        found.iter().map(LogRow::read).collect()
    }

    pub(super) async fn all(mut self) -> Result<Vec<LogRow>, StoreError> {
        let mut rows = Vec::new();
        loop {
            let page = self.page().await?;
            if page.is_empty() {
                return Ok(rows);
            }
            rows.extend(page);
        }
    }
}

/// Folds the commits on the chains, oldest first. Of messages beyond the bounds the contents are not read.
pub(super) async fn fold(
    shared: &Shared,
    row: TaskRow,
    want: Want,
    bounds: HistoryBounds,
) -> Result<StoredTask, StoreError> {
    let artifact = if want == Want::NoArtifacts { 0 } else { row.chains.artifact };
    let found = Walk::new(shared, row.task_no, Chains { artifact, ..row.chains }).all().await?;
    let mut folding = Folding::of(&row.head, row.chains.status, bounds);
    let mut parsed = Vec::with_capacity(found.len());
    let mut wanted = Vec::new();
    for commit in &found {
        let version = commit.version();
        let mut stored = ParsedCommit::of(&commit.record)?;
        let contents = folding.wants(version, &stored);
        stored.restrict(want, contents);
        wanted.extend(stored.chunk_ranges().into_iter().map(|range| (version, range)));
        parsed.push((version, stored));
    }
    let chunks = Chunks::read(shared, row.task_no, wanted).await?;
    let mut commits = Vec::with_capacity(parsed.len());
    for (version, stored) in parsed {
        commits.push((version, stored.into_events(want, Contents::All, &chunks.of(version))?));
    }
    Ok(folding.finish(TaskKey(row.task_no), row.head, &commits))
}

/// Chunks that were read before the records that refer to them are decoded.
#[derive(Default)]
pub(super) struct Chunks {
    found: HashMap<(i64, i64), Vec<u8>>,
}

const CHUNKS: &str = "
select c.version, c.chunk_no, c.checksum, c.bytes
  from unnest($2::bigint[], $3::int[], $4::int[]) as r(version, first_no, end_no)
  join chunk c on c.task_no = $1::bigint and c.version = r.version and c.chunk_no >= r.first_no and c.chunk_no < r.end_no";

impl Chunks {
    /// Reads ranges of chunks, each of one commit.
    pub(super) async fn read(
        shared: &Shared,
        task_no: i64,
        wanted: Vec<(i64, Range<i64>)>,
    ) -> Result<Self, StoreError> {
        let mut chunks = Self::default();
        if wanted.is_empty() {
            return Ok(chunks);
        }
        let number = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
        let versions: Vec<i64> = wanted.iter().map(|(version, _)| *version).collect();
        let firsts: Vec<i32> = wanted.iter().map(|(_, range)| number(range.start)).collect();
        let ends: Vec<i32> = wanted.iter().map(|(_, range)| number(range.end)).collect();
        for row in &shared.database.read(CHUNKS, &[&task_no, &versions, &firsts, &ends]).await? {
            let (version, chunk_no): (i64, i64) = (get(row, 0)?, get::<i32>(row, 1)?.into());
            let bytes: Vec<u8> = get(row, 3)?;
            if get::<i64>(row, 2)? != of_chunk(task_no, version, chunk_no, ContentHash::of(&bytes)) {
                return Err(corrupt(format_args!("piece {chunk_no} of commit {version} does not match its checksum")));
            }
            chunks.found.insert((version, chunk_no), bytes);
        }
        Ok(chunks)
    }

    /// How many bytes were read.
    pub(super) fn bytes(&self) -> usize {
        self.found.values().map(Vec::len).sum()
    }

    /// The chunks of one commit.
    pub(super) fn of(&self, version: i64) -> CommitChunks<'_> {
        CommitChunks { chunks: self, version }
    }
}

pub(super) struct CommitChunks<'c> {
    chunks: &'c Chunks,
    version: i64,
}

impl ChunkSource for CommitChunks<'_> {
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        for number in first..first.saturating_add(count) {
            let found = self.chunks.found.get(&(self.version, number));
            let absent = || corrupt(format_args!("piece {number} of commit {} is missing", self.version));
            bytes.extend_from_slice(found.ok_or_else(absent)?);
        }
        Ok(bytes)
    }
}
