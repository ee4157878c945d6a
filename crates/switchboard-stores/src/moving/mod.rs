//! Moves everything from one database into another, empty one: a file, or a schema in PostgreSQL. No server uses either of them meanwhile.
//!
//! Rows go over in pages, and with each page the target notes how far it has come; so a move that was interrupted anywhere goes on where it
//! was. Then every row of both sides is read and compared, and the target is verified. Only after that servers open the target, and none
//! opens the source any more.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::ports::system::ClockRecord;

use crate::checked::{Checked, Fault};
use crate::moving_rows::{Cursor, Row, Stage, WebhookRow};
use crate::moving_state::{DONE, MoveRole, MoveState};
use crate::postgres::moving::{SchemaSide, alone};
use crate::postgres::{PostgresError, PostgresOptions};
use crate::secret_keys::{Place as SecretPlace, SecretKeys};
use crate::sqlite::moving::{FileSide, keys_of};
use crate::sqlite::{FileError, SecretKeySource};

/// After how many rows it is told how far the move has come.
const TOLD_EVERY: u64 = if cfg!(test) { 1 } else { 20_000 };
/// How many faults of the target are told.
const FAULTS_TOLD_MAX: usize = 20;

/// One side of a move.
#[derive(Clone, Debug)]
pub enum Place {
    File(PathBuf),
    Postgres(PostgresOptions),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            // The address may have a password in it.
            Self::Postgres(options) => write!(f, "PostgreSQL, schema {}", options.schema_name()),
        }
    }
}

/// What is moved, and how.
pub struct Move {
    pub from: Place,
    pub to: Place,
    /// The keys of the secrets of webhooks, which servers of the target have, too. With [`SecretKeySource::Beside`] they are beside the file that
    /// is moved.
    pub keys: SecretKeySource,
    /// Whether webhooks are moved whose secrets the keys cannot read.
    pub without_secrets: bool,
    /// What the audit log of the source says about the move.
    pub entry: AuditEntry,
    pub clock: Arc<dyn Clock>,
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The target, as it was verified.
    pub checked: Checked,
    /// Whether an earlier move had begun, which this one has finished.
    pub was_resumed: bool,
    /// Webhooks whose secrets cannot be read with the keys.
    pub unread_secrets: u64,
}

/// Why a move did not take place, or was not finished.
#[derive(Debug)]
pub struct MoveError(String);

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MoveError {}

impl From<FileError> for MoveError {
    fn from(error: FileError) -> Self {
        Self(error.to_string())
    }
}

impl From<PostgresError> for MoveError {
    fn from(error: PostgresError) -> Self {
        Self(error.to_string())
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, MoveError> {
    Err(MoveError(why.into()))
}

/// Moves a database, or goes on with a move that was interrupted. `tell` gets a line about each step.
///
/// # Errors
/// When a server uses one of the two, the target holds something else, rows are damaged, or a database cannot be reached, read or written.
/// What was moved until then stays, and the same call goes on with it.
pub fn move_database(wanted: &Move, tell: &mut dyn FnMut(&str)) -> Result<Moved, MoveError> {
    alone(async { Ok(moved(wanted, tell).await) })?
}

async fn moved(wanted: &Move, tell: &mut dyn FnMut(&str)) -> Result<Moved, MoveError> {
    let Move { from, to, keys, without_secrets, entry, clock } = wanted;
    let found_keys = match (from, keys) {
        (Place::File(path), keys) => keys_of(path, keys)?,
        (Place::Postgres(_), SecretKeySource::Keys(keys)) => Some(keys.clone()),
        (Place::Postgres(_), _) => None,
    };
    let source = match from {
        Place::File(path) => Side::File(FileSide::source(path, keys, clock.clone())?),
        Place::Postgres(options) => Side::Schema(SchemaSide::source(options).await?),
    };
    let target = match to {
        Place::File(path) => Side::File(FileSide::target(path, clock.clone())?),
        Place::Postgres(options) => Side::Schema(SchemaSide::target(options).await?),
    };
    let mut work = Work { source, target, at: clock.now().as_ms(), tell };
    let (state, is_new) = work.agree().await?;
    let unread_secrets = work.unread_secrets(found_keys.as_ref()).await?;
    if unread_secrets > 0 && !without_secrets {
        if is_new {
            work.forget().await?;
        }
        return refused(format!(
            "the secrets of {unread_secrets} webhooks cannot be read: their key is not among those that are given; give the right one \
             (SWITCHBOARD_SECRETS_KEY_FILE, or secrets_key_file in the configuration), or say --without-secrets if it is lost: receivers then get what is posted without them"
        ));
    }
    if is_new {
        work.source.record(entry.clone()).await?;
    }
    let checked = work.run(state, found_keys.as_ref()).await?;
    Ok(Moved { checked, was_resumed: !is_new, unread_secrets })
}

struct Work<'a> {
    source: Side,
    target: Side,
    at: i64,
    tell: &'a mut dyn FnMut(&str),
}

impl Work<'_> {
    /// Finds out whether this is a new move or one that was begun, and marks both sides. Returns the state of the target.
    async fn agree(&mut self) -> Result<(MoveState, bool), MoveError> {
        let (source, target) = (self.source.state().await?, self.target.state().await?);
        let (from, to) = (self.source.describe(), self.target.describe());
        match (source, target) {
            (Some(source), _) if source.role != MoveRole::Source => refused(format!("{from}: {}", source.refusal())),
            (_, Some(target)) if target.role != MoveRole::Target => refused(format!("{to}: {}", target.refusal())),
            (Some(source), Some(target)) if source.id == target.id => {
                // Marks again, which finds out whether servers run.
                self.source.set_state(Some(&source)).await?;
                self.target.set_state(Some(&target)).await?;
                self.at = source.at;
                (self.tell)(&format!("goes on with {}", target.stage));
                Ok((target, false))
            }
            (Some(source), _) => refused(format!("{from}: {}", source.refusal())),
            (None, Some(target)) if !self.target.is_empty().await? => {
                refused(format!("{to} is part of another move: {}", target.refusal()))
            }
            (None, _) => {
                if !self.target.is_empty().await? {
                    return refused(format!(
                        "{to} is not empty; move into an empty one, or delete what is in it with `switchboard db reset`"
                    ));
                }
                let id = format!("{:016x}{:016x}", random()?, random()?);
                let begin = |role, other: &str| MoveState {
                    role,
                    id: id.clone(),
                    other: other.to_owned(),
                    at: self.at,
                    stage: String::new(),
                    cursor: String::new(),
                };
                let (mut of_target, of_source) = (begin(MoveRole::Target, &from), begin(MoveRole::Source, &to));
                Stage::ALL[0].name().clone_into(&mut of_target.stage);
                self.target.set_state(Some(&of_target)).await?;
                if let Err(error) = self.source.set_state(Some(&of_source)).await {
                    self.target.set_state(None).await?;
                    return Err(error);
                }
                Ok((of_target, true))
            }
        }
    }

    /// Removes the marks of a move that has not begun.
    async fn forget(&mut self) -> Result<(), MoveError> {
        self.source.set_state(None).await?;
        self.target.set_state(None).await
    }

    /// How many webhooks have secrets that cannot be read.
    async fn unread_secrets(&mut self, keys: Option<&SecretKeys>) -> Result<u64, MoveError> {
        let (mut after, mut unread) = (Cursor::default(), 0);
        loop {
            let page = self.source.read(Stage::Webhooks, &after, self.at).await?;
            let Some(last) = page.last() else { return Ok(unread) };
            after = last.cursor();
            let is_unread = |row: &&Row| matches!(row, Row::Webhook(webhook) if !is_readable(webhook, keys));
            unread += page.iter().filter(is_unread).count() as u64;
        }
    }

    async fn run(&mut self, mut state: MoveState, keys: Option<&SecretKeys>) -> Result<Checked, MoveError> {
        if state.stage != DONE {
            let from = Stage::ALL.iter().position(|stage| stage.name() == state.stage).unwrap_or_default();
            for stage in Stage::ALL.into_iter().skip(from) {
                self.copy(stage, &mut state).await?;
            }
            for stage in Stage::ALL {
                self.compare(stage).await?;
            }
        }
        let clock = self.source.clock().await?;
        self.target.settle(clock).await?;
        let checked = self.verify(keys).await?;
        // In this order, so that a move that is interrupted here is finished by the next one.
        DONE.clone_into(&mut state.stage);
        self.target.set_state(Some(&state)).await?;
        if let Some(source) = self.source.state().await? {
            self.source.set_state(Some(&MoveState { stage: DONE.to_owned(), ..source })).await?;
        }
        self.target.set_state(None).await?;
        Ok(checked)
    }

    /// Moves what is left of one table.
    async fn copy(&mut self, stage: Stage, state: &mut MoveState) -> Result<(), MoveError> {
        let mut after: Cursor = serde_json::from_str(&state.cursor).unwrap_or_default();
        let (mut count, mut told) = (0, 0);
        loop {
            let page = self.source.read(stage, &after, self.at).await?;
            let Some(last) = page.last() else { break };
            after = last.cursor();
            stage.name().clone_into(&mut state.stage);
            state.cursor = serde_json::to_string(&after).map_err(|error| MoveError(error.to_string()))?;
            self.target.write(stage, &page, state).await?;
            count += page.len() as u64;
            if count / TOLD_EVERY > told {
                told = count / TOLD_EVERY;
                (self.tell)(&format!("{}: {count} moved so far", stage.name()));
            }
        }
        state.cursor = String::new();
        if let Some(next) = Stage::ALL.iter().skip_while(|known| **known != stage).nth(1) {
            next.name().clone_into(&mut state.stage);
        }
        (self.tell)(&format!("{}: {count} moved", stage.name()));
        Ok(())
    }

    /// Reads one table on both sides, and compares each row.
    async fn compare(&mut self, stage: Stage) -> Result<(), MoveError> {
        let (mut ours, mut theirs) = (Reader::default(), Reader::default());
        let mut count: u64 = 0;
        loop {
            let pair =
                (ours.next(&self.source, stage, self.at).await?, theirs.next(&self.target, stage, self.at).await?);
            let unlike = match pair {
                (None, None) => break,
                (Some(ours), Some(theirs)) => {
                    let place = ours.place();
                    (ours.comparable() != theirs.comparable()).then(|| format!("{place} is not the same in both"))
                }
                (Some(missing), None) => Some(format!("{} was not moved", missing.place())),
                (None, Some(stray)) => Some(format!("{} is in the target alone", stray.place())),
            };
            if let Some(unlike) = unlike {
                return refused(format!(
                    "{unlike}; delete the target with `switchboard db reset`, take the source into use again with `switchboard db move \
                     --reopen`, and report this"
                ));
            }
            count += 1;
        }
        (self.tell)(&format!("{}: {count} compared", stage.name()));
        Ok(())
    }

    async fn verify(&mut self, keys: Option<&SecretKeys>) -> Result<Checked, MoveError> {
        let mut faults: Vec<String> = Vec::new();
        let mut keep = |fault: Fault| {
            if faults.len() < FAULTS_TOLD_MAX {
                faults.push(fault.to_string());
            }
        };
        let checked = self.target.verify(keys, &mut keep).await?;
        if checked.faults > 0 {
            let (count, list) = (checked.faults, faults.join("\n  "));
            return refused(format!(
                "the target has {count} faults, which the source has, too (switchboard db verify), or the move has made:\n  {list}"
            ));
        }
        (self.tell)(&format!("verified: {} tasks with {} commits", checked.tasks, checked.commits));
        Ok(checked)
    }
}

/// Whether the keys can read the secrets of a webhook.
fn is_readable(webhook: &WebhookRow, keys: Option<&SecretKeys>) -> bool {
    let WebhookRow { task_no, config_id, token, auth_credentials, .. } = webhook;
    [("token", token), ("auth_credentials", auth_credentials)].into_iter().all(|(column, sealed)| {
        let place = SecretPlace { task_no: *task_no, config_id, column };
        sealed.as_ref().is_none_or(|sealed| keys.is_some_and(|keys| keys.open(&place, sealed).is_some()))
    })
}

/// The rows of one table, read in pages.
#[derive(Default)]
struct Reader {
    after: Cursor,
    page: VecDeque<Row>,
}

impl Reader {
    async fn next(&mut self, side: &Side, stage: Stage, at: i64) -> Result<Option<Row>, MoveError> {
        if self.page.is_empty() {
            self.page = side.read(stage, &self.after, at).await?.into();
            if let Some(last) = self.page.back() {
                self.after = last.cursor();
            }
        }
        Ok(self.page.pop_front())
    }
}

fn random() -> Result<u64, MoveError> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| MoveError("the system gives no randomness".to_owned()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// A database that is open for a move.
enum Side {
    File(FileSide),
    Schema(SchemaSide),
}

impl Side {
    fn describe(&self) -> String {
        match self {
            Self::File(side) => side.describe(),
            Self::Schema(side) => side.describe(),
        }
    }

    async fn state(&self) -> Result<Option<MoveState>, MoveError> {
        Ok(match self {
            Self::File(side) => side.state()?,
            Self::Schema(side) => side.state().await?,
        })
    }

    async fn set_state(&self, state: Option<&MoveState>) -> Result<(), MoveError> {
        match self {
            Self::File(side) => side.set_state(state)?,
            Self::Schema(side) => side.set_state(state).await?,
        }
        Ok(())
    }

    async fn is_empty(&self) -> Result<bool, MoveError> {
        Ok(match self {
            Self::File(side) => side.is_empty()?,
            Self::Schema(side) => side.is_empty().await?,
        })
    }

    async fn read(&self, stage: Stage, after: &Cursor, at: i64) -> Result<Vec<Row>, MoveError> {
        Ok(match self {
            Self::File(side) => side.read(stage, after)?,
            Self::Schema(side) => side.read(stage, after, at).await?,
        })
    }

    async fn write(&self, stage: Stage, rows: &[Row], state: &MoveState) -> Result<(), MoveError> {
        match self {
            Self::File(side) => side.write(rows, state)?,
            Self::Schema(side) => side.write(stage, rows, state).await?,
        }
        Ok(())
    }

    async fn record(&self, entry: AuditEntry) -> Result<(), MoveError> {
        match self {
            Self::File(side) => side.record(entry)?,
            Self::Schema(side) => side.record(&entry).await?,
        }
        Ok(())
    }

    async fn clock(&self) -> Result<ClockRecord, MoveError> {
        Ok(match self {
            Self::File(side) => side.clock()?,
            Self::Schema(side) => side.clock().await?,
        })
    }

    async fn settle(&self, clock: ClockRecord) -> Result<(), MoveError> {
        match self {
            Self::File(side) => side.settle(clock)?,
            Self::Schema(side) => side.settle(clock).await?,
        }
        Ok(())
    }

    async fn verify(&self, keys: Option<&SecretKeys>, tell: &mut dyn FnMut(Fault)) -> Result<Checked, MoveError> {
        Ok(match self {
            Self::File(side) => side.verify(keys, tell)?,
            Self::Schema(side) => side.verify(tell).await?,
        })
    }
}

#[cfg(test)]
mod postgres_tests;
